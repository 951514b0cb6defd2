"""Arrays of traces by their names and either way round."""
