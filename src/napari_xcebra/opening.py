"""How a recording was opened, so that it can be opened the same way again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from napari_xcebra.io import OpenSettings, open_recording
from napari_xcebra.recording import Kind, Recording


@dataclass(frozen=True)
class Opening:
    """Arguments of `open_recording`, kept.

    Parameters
    ----------
    path : Path
    behavior : tuple of Path
    footprints : Path or None
    kinds : mapping of str to kind
    settings : OpenSettings
    """

    path: Path
    behavior: tuple[Path, ...] = ()
    footprints: Path | None = None
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    settings: OpenSettings = field(default_factory=OpenSettings)

    def open(self) -> Recording:
        """The recording."""
        return open_recording(
            self.path,
            self.behavior or None,
            footprints=self.footprints,
            kinds=self.kinds,
            settings=self.settings,
        )
