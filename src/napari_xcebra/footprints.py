"""Where the cells lie in the field of view."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from napari_xcebra.errors import InputError


@dataclass(frozen=True)
class Footprints:
    """Where the cells are: weighted pixels of all cells, one after the other.

    Parameters
    ----------
    shape : (height, width)
        Field of view, in pixels.
    cell, row, column : (pixels,) int
        Position of the cell in the recording, and its pixels.
    weight : (pixels,) float32
        Share of the pixel that belongs to the cell; larger wins where cells overlap.
    """

    shape: tuple[int, int]
    cell: np.ndarray
    row: np.ndarray
    column: np.ndarray
    weight: np.ndarray

    def __post_init__(self) -> None:
        lengths = {len(self.cell), len(self.row), len(self.column), len(self.weight)}
        if len(lengths) > 1:
            raise InputError(
                "Footprints need the same number of cell, row, column and weight entries; "
                f"found {sorted(lengths)}."
            )
        for name, size in (("row", self.shape[0]), ("column", self.shape[1])):
            position = getattr(self, name)
            if len(position) and not (0 <= position.min() and position.max() < size):
                raise InputError(
                    f"Footprints have a {name} of {position.min()} to {position.max()}, outside "
                    f"the field of view of {self.shape[0]} × {self.shape[1]} pixels."
                )

    @property
    def n_cells(self) -> int:
        """Number of cells that own at least one pixel, counted by the last of them."""
        return int(self.cell.max()) + 1 if len(self.cell) else 0

    def label_image(self) -> np.ndarray:
        """Dense labels: cell i has label i + 1, background is 0.

        A shared pixel goes to the cell with the larger weight; a cell that would lose every
        pixel that way keeps its heaviest one, so that no cell disappears.

        Returns
        -------
        (height, width) uint16, or int32 past 65,534 cells
        """
        dtype = np.uint16 if self.n_cells < np.iinfo(np.uint16).max else np.int32
        labels = np.zeros(self.shape, dtype)
        order = np.argsort(self.weight, kind="stable")
        cell, row, column = self.cell[order], self.row[order], self.column[order]
        labels[row, column] = cell + 1
        lost = np.setdiff1d(np.unique(cell), np.unique(labels) - 1.0)
        for i in lost:
            self._rescue(labels, int(i), cell, row, column)
        return labels

    @staticmethod
    def _rescue(
        labels: np.ndarray, lost: int, cell: np.ndarray, row: np.ndarray, column: np.ndarray
    ) -> None:
        """Give a hidden cell its heaviest pixel whose owner has others to spare."""
        own = np.flatnonzero(cell == lost)[::-1]
        owners = labels[row[own], column[own]]
        spare = [p for p, o in zip(own, owners, strict=True) if (labels == o).sum() > 1]
        if spare:
            labels[row[spare[0]], column[spare[0]]] = lost + 1

    @classmethod
    def from_masks(cls, masks: Iterable[np.ndarray]) -> Footprints:
        """Footprints from one (height, width) image of weights per cell."""
        masks = [np.asarray(mask, np.float32) for mask in masks]
        if not masks:
            raise InputError("masks is empty: an image for each cell is needed.")
        pixels = [np.nonzero(mask) for mask in masks]
        return cls(
            shape=(int(masks[0].shape[0]), int(masks[0].shape[1])),
            cell=np.concatenate([np.full(len(p[0]), i, np.int32) for i, p in enumerate(pixels)]),
            row=np.concatenate([p[0].astype(np.int32) for p in pixels]),
            column=np.concatenate([p[1].astype(np.int32) for p in pixels]),
            weight=np.concatenate([m[p] for m, p in zip(masks, pixels, strict=True)]),
        )

    @classmethod
    def on_a_grid(cls, n_cells: int, spacing: int = 12, radius: float = 4.5) -> Footprints:
        """Discs on a grid, for recordings that came without footprints."""
        across = int(np.ceil(np.sqrt(n_cells)))
        down = int(np.ceil(n_cells / across))
        y, x = np.mgrid[:spacing, :spacing] - (spacing - 1) / 2
        disc_row, disc_column = np.nonzero(y**2 + x**2 <= radius**2)
        cell, pixel = np.divmod(np.arange(n_cells * len(disc_row)), len(disc_row))
        return cls(
            shape=(down * spacing, across * spacing),
            cell=cell.astype(np.int32),
            row=(cell // across * spacing + disc_row[pixel]).astype(np.int32),
            column=(cell % across * spacing + disc_column[pixel]).astype(np.int32),
            weight=np.ones(len(cell), np.float32),
        )
