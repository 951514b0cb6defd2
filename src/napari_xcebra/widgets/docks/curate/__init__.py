"""The Curate dock: decide on cells by hand."""
