"""A run before there is one: what was asked for, and what can be seen of it so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from napari_xcebra.attribution.method_notes import title_of_method
from napari_xcebra.runs import now

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.learn.parts import Factor
    from napari_xcebra.sessions import Opened


@dataclass(frozen=True, eq=False)
class Asked:
    """What a run was asked for; `others` are trained together with it, and get runs as well."""

    opened: Opened
    name: str
    factors: Mapping[str, Factor]
    created: str = field(default_factory=now)
    others: tuple[Opened, ...] = ()


@dataclass(frozen=True, eq=False)
class LiveRun:
    """What is painted of a run before there is one; it is never saved.

    Parameters
    ----------
    opened : Opened
        The recording it is trained on.
    name, created : str
        Those that the run will have, so that its layers stay.
    attribution : Attribution
        The map so far.
    done, total : int
        Steps at which the map was made, and in all.
    """

    opened: Opened
    name: str
    created: str
    attribution: Attribution
    done: int
    total: int

    @property
    def title(self) -> str:
        """For a list of runs."""
        return f"{self.name} · training, {self.done / self.total:.0%}"

    @property
    def sentence(self) -> str:
        """What to think of the map."""
        frames = self.opened.recording.n_frames
        return (
            f"Provisional: {title_of_method(self.attribution.method)} after {self.done} of "
            f"{self.total} training steps, over {self.attribution.n_frames:,} of {frames:,} "
            "frames. There is no verdict yet, and it still changes."
        )
