"""Measures a fit: goodness, chance, decoding and consistency."""
