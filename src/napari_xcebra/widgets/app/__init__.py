"""The window as a whole: all docks at once, entries of napari's menus, painting from a script."""
