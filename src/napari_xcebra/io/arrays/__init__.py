"""Arrays of traces, recognised by name and in either orientation."""
