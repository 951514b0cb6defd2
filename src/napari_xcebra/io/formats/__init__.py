"""Formats of recordings, a room each; see `napari_xcebra.io.discovery`."""
