"""Plots, drawn with pyqtgraph."""
