"""Describes a report in plain values: sections, paragraphs, pictures and tables.

How they are drawn is up to the template of the page.
"""

from __future__ import annotations

import base64
import gzip
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from napari_xcebra.learn.quality.verdict import NOTHING, Tone
from napari_xcebra.spreadsheets import csv_text

if TYPE_CHECKING:
    import pandas as pd

LARGEST_PLAIN = 2**20
"""Bytes up to which a table is put into the page as it is; larger ones are compressed."""


@dataclass(frozen=True)
class Paragraph:
    """One or more sentences."""

    kind: ClassVar[str] = "paragraph"
    text: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class PagePicture:
    """A picture that is part of the page.

    Parameters
    ----------
    source : str
        The picture itself, as a data: address.
    alt : str
        What it shows, for those who do not see it.
    caption : str
    width : int
        In pixels of the page, where there is room.
    """

    kind: ClassVar[str] = "picture"
    source: str
    alt: str
    caption: str = ""
    width: int = 760


@dataclass(frozen=True)
class PictureRow:
    """Pictures beside each other, where there is room."""

    kind: ClassVar[str] = "row"
    pictures: tuple[PagePicture, ...]


@dataclass(frozen=True)
class Heading:
    """A column of a table; `help` shows under the mouse and, if `listed`, below the table."""

    title: str
    help: str = ""
    numeric: bool = True
    listed: bool = True


@dataclass(frozen=True)
class Entry:
    """One entry of a table; sorted by `order` where that differs from its text."""

    text: str
    order: float | None = None
    tone: Tone = "plain"


@dataclass(frozen=True)
class Download:
    """A file that is part of the page."""

    kind: ClassVar[str] = "download"
    name: str
    source: str
    text: str


@dataclass(frozen=True)
class Table:
    """A table; one that can be sorted by its columns if `sortable`."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: tuple[Heading, ...]
    rows: tuple[tuple[Entry, ...], ...]
    sortable: bool = False
    compact: bool = False

    @property
    def classes(self) -> str:
        """How it is set; a short one is kept on one page."""
        asked = {"sortable": self.sortable, "compact": self.compact, "short": len(self.rows) <= 15}
        return " ".join(name for name, wanted in asked.items() if wanted)

    @property
    def key(self) -> list[Heading]:
        """Columns explained below the table."""
        return [column for column in self.columns if column.help and column.listed]


@dataclass(frozen=True)
class TypedCommand:
    """A command to type."""

    kind: ClassVar[str] = "command"
    text: str


@dataclass(frozen=True)
class Reference:
    """A publication to cite."""

    kind: ClassVar[str] = "reference"
    text: str
    address: str


Block = Paragraph | PagePicture | PictureRow | Table | Download | TypedCommand | Reference


@dataclass(frozen=True)
class Section:
    """A part of a report under a heading, and the parts of that."""

    title: str
    blocks: tuple[Block, ...] = ()
    parts: tuple[Section, ...] = ()


@dataclass(frozen=True)
class Document:
    """A whole report.

    Parameters
    ----------
    title, subtitle : str
    summary : tuple of block
        What to know if nothing else is read.
    sections : tuple of Section
    made : str
        When, and by which version.
    """

    title: str
    subtitle: str
    summary: tuple[Block, ...]
    sections: tuple[Section, ...]
    made: str = ""


def download(name: str, table: pd.DataFrame, text: str) -> Download:
    """A table as CSV inside the page, for a click to save."""
    content = csv_text(table).encode()
    kind = "text/csv"
    if len(content) > LARGEST_PLAIN:
        name, kind = f"{name}.gz", "application/gzip"
        content = gzip.compress(content, mtime=0)
    return Download(name, data_address(content, kind), text)


def data_address(content: bytes, kind: str) -> str:
    """Content as an address, so that it can stand in the page."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def number(value: float, form: str = "#.3g") -> Entry:
    """A number in a table; sorted by what it is rather than by its digits.

    >>> number(-0.0421).text, number(1.0).text, number(float("nan")).text
    ('−0.0421', '1.00', '–')
    """
    if not np.isfinite(value):
        return Entry(NOTHING, float("nan"))
    return Entry(f"{value:{form}}".rstrip(".").replace("-", "−"), float(value))
