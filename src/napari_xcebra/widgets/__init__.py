"""The docks, and how a recording and its scores look in napari."""
