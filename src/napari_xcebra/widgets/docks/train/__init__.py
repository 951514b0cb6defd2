"""The Train dock: choose variables, train, read the verdict."""
