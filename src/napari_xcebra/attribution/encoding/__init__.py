"""Predicts every cell from all variables at once, on held-out frames."""
