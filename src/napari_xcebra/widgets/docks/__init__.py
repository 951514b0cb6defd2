"""The docks, one folder each."""
