"""Formats of neural recordings: one module each, see `napari_xcebra.io.discovery`.

`load(path, settings)` gives an `Extraction`, or a `Recording` where nothing is left to choose.
"""
