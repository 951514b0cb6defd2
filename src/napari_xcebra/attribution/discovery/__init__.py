"""Finds what is in the cells that nobody recorded."""
