"""What is painted, and how."""

from __future__ import annotations

from dataclasses import dataclass

from napari_xcebra.attribution.method_notes import DEFAULT
from napari_xcebra.widgets.painting import COLORMAP


@dataclass(frozen=True)
class Shown:
    """What is painted.

    Parameters
    ----------
    run, factor, method : str
    latent : int, str or None
        One latent of the factor, or "lag" for the lags of the cells; None for the factor as a
        whole.
    threshold : float
        z above which a cell is selected.
    colormap : str
    dim : bool
        Whether cells below the threshold are dimmed.
    q_limit : float
        q up to which a cell counts as more than chance.
    q_only : bool
        Whether only those stand in the table, and the others are dimmed.
    stable_only : bool
        Whether only cells on which all seeds agree stand in the table, and the others are dimmed.
    over_time : bool
    smoothing : float
        Seconds over which scores are averaged when they follow the time slider.
    blind : bool
        Whether all scores are hidden, for decisions that do not know them.
    statistics : tuple of str
        Single-cell statistics that stand in the table.
    """

    run: str = ""
    factor: str = ""
    method: str = DEFAULT
    latent: int | str | None = None
    threshold: float = 0.0
    colormap: str = COLORMAP
    dim: bool = False
    q_limit: float = 0.1
    q_only: bool = False
    stable_only: bool = False
    over_time: bool = False
    smoothing: float = 1.0
    blind: bool = False
    statistics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # a session file has lists
        object.__setattr__(self, "statistics", tuple(self.statistics))
