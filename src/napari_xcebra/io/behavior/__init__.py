"""Behaviour formats, one module each; see `napari_xcebra.io.discovery`.

`load(path, settings)` gives a `Behavior`.
"""
