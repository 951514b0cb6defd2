"""A module that needs a package that is not installed."""

raise ImportError("No module named 'scanner_sdk'")
