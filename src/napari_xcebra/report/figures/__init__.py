"""Draws figures of a result, for files and for the pages of a report."""
