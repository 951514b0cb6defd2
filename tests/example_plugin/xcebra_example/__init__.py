"""An example of a package that brings a format and a method to napari-xcebra."""
