"""Makes, paints and picks napari layers."""
