"""The command line: the same analysis without a window."""

from napari_xcebra.cli.commands import main

__all__ = ["main"]
