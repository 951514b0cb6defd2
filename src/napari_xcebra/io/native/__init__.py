"""napari-xcebra's own format."""
