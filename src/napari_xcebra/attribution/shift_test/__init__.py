"""Tests which cells carry a factor by more than chance, with labels shifted in time."""
