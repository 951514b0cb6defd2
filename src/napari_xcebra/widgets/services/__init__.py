"""What works in the background for all docks of a window."""
