"""Encoding models: every cell predicted from all variables at once, on frames not fitted."""
