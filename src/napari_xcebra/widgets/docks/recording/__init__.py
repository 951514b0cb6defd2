"""The Recording dock: open a recording and say what its variables are."""
