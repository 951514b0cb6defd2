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
    shape : (height, width) or (planes, height, width)
        Field of view, in pixels.
    cell, row, column : (pixels,) int
        Position of the cell in the recording, and its pixels.
    weight : (pixels,) float32
        Share of the pixel that belongs to the cell; larger wins where cells overlap.
    plane : (pixels,) int or None
        Where the field of view has planes, the one of each pixel.
    """

    shape: tuple[int, ...]
    cell: np.ndarray
    row: np.ndarray
    column: np.ndarray
    weight: np.ndarray
    plane: np.ndarray | None = None

    def __post_init__(self) -> None:
        if len(self.shape) != (2 if self.plane is None else 3):
            raise InputError(
                f"Footprints have the shape {self.shape}: height and width are needed, and the "
                "number of planes before them if pixels have a plane."
            )
        lengths = {len(self.cell), len(self.weight), *(len(p) for p in self.pixels)}
        if len(lengths) > 1:
            raise InputError(
                "Footprints need the same number of cell, row, column and weight entries; "
                f"found {sorted(lengths)}."
            )
        names = ("plane", "row", "column")[-len(self.shape) :]
        for name, size in zip(names, self.shape, strict=True):
            position = getattr(self, name)
            if len(position) and not (0 <= position.min() and position.max() < size):
                raise InputError(
                    f"Footprints have a {name} of {position.min()} to {position.max()}, outside "
                    f"the field of view of {' × '.join(map(str, self.shape))} pixels."
                )

    @property
    def n_cells(self) -> int:
        """Number of cells that own at least one pixel, counted by the last of them."""
        return int(self.cell.max()) + 1 if len(self.cell) else 0

    @property
    def pixels(self) -> tuple[np.ndarray, ...]:
        """Index of all pixels into an image of the field of view."""
        place = (self.row, self.column)
        return place if self.plane is None else (self.plane, *place)

    def label_image(self) -> np.ndarray:
        """Dense labels: cell i has label i + 1, background is 0.

        A shared pixel goes to the cell with the larger weight; a cell that would lose every
        pixel that way keeps its heaviest one, so that no cell disappears.

        Returns
        -------
        (height, width) or (planes, height, width) uint16, or int32 past 65,534 cells
        """
        dtype = np.uint16 if self.n_cells < np.iinfo(np.uint16).max else np.int32
        labels = np.zeros(self.shape, dtype)
        order = np.argsort(self.weight, kind="stable")
        cell, pixels = self.cell[order], tuple(axis[order] for axis in self.pixels)
        labels[pixels] = cell + 1
        owned = np.bincount(labels.ravel(), minlength=self.n_cells + 1)
        for lost in np.setdiff1d(np.unique(cell), np.flatnonzero(owned) - 1):
            # its heaviest pixel whose owner has others to spare
            for own in np.flatnonzero(cell == lost)[::-1]:
                place = tuple(axis[own] for axis in pixels)
                if owned[labels[place]] > 1:
                    owned[labels[place]] -= 1
                    owned[lost + 1] = 1
                    labels[place] = lost + 1
                    break
        return labels

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
