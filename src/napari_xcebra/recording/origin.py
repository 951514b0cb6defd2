"""Says what a recording was read from, and what its traces are."""

from __future__ import annotations

from dataclasses import dataclass

_AXES = {
    "raw": "F (a.u.)",
    "corrected": "F (a.u.)",
    "dff": "ΔF/F",
    "denoised": "denoised",
    "events": "events",
    "zscored": "z score",
}
"""Short enough to stand beside a low plot."""
_UNITS = {"dff": "ΔF/F", "zscored": "SD", "": ""}


@dataclass(frozen=True)
class Origin:
    """What a recording was read from.

    Parameters
    ----------
    format : str
        Format of the file, in words; empty if it was not read from one.
    signal : str
        Kind of the traces, one of `TraceKind`; empty if unknown.
    traces : str
        How the traces were computed, in words.
    without_movie : str
        Why there is no movie, in words; empty if there is one, or none was looked for.
    """

    format: str = ""
    signal: str = ""
    traces: str = ""
    without_movie: str = ""

    @property
    def axis(self) -> str:
        """What an axis with values of the traces is called."""
        return _AXES.get(self.signal, "activity")

    @property
    def unit(self) -> str:
        """Unit of the traces, for a scale bar; empty if nothing is known about them."""
        return _UNITS.get(self.signal, "a.u.")

    def notes(self, name: str) -> tuple[str, str]:
        """The sentences on a file of that name and on its traces."""
        return f"Opened {name} as {self.format}.", f"Traces are {self.traces}."
