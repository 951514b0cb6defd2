"""What a report consists of: plain values that say nothing about how they are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

Tone = Literal["plain", "good", "warning"]


@dataclass(frozen=True)
class Paragraph:
    """A sentence or several."""

    kind: ClassVar[str] = "paragraph"
    text: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Picture:
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
class Row:
    """Pictures beside each other, where there is room."""

    kind: ClassVar[str] = "row"
    pictures: tuple[Picture, ...]


@dataclass(frozen=True)
class Column:
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
    columns: tuple[Column, ...]
    rows: tuple[tuple[Entry, ...], ...]
    sortable: bool = False
    compact: bool = False

    @property
    def classes(self) -> str:
        """How it is set; a short one is kept on one page."""
        asked = {"sortable": self.sortable, "compact": self.compact, "short": len(self.rows) <= 15}
        return " ".join(name for name, wanted in asked.items() if wanted)

    @property
    def key(self) -> list[Column]:
        """Columns that need a word."""
        return [column for column in self.columns if column.help and column.listed]


@dataclass(frozen=True)
class Command:
    """What to type."""

    kind: ClassVar[str] = "command"
    text: str


@dataclass(frozen=True)
class Reference:
    """A publication to cite."""

    kind: ClassVar[str] = "reference"
    text: str
    address: str


Block = Paragraph | Picture | Row | Table | Download | Command | Reference


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
    made: str = field(default="")

    def texts(self) -> Iterator[str]:
        """Text of all paragraphs, in their order."""
        for block in (*self.summary, *_blocks_of(self.sections)):
            if isinstance(block, Paragraph):
                yield block.text


def _blocks_of(sections: Sequence[Section]) -> Iterator[Block]:
    for section in sections:
        yield from section.blocks
        yield from _blocks_of(section.parts)
