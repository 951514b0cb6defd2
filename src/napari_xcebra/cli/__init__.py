"""The command line: the same work without a window."""

from napari_xcebra.cli.parser import main

__all__ = ["main"]
