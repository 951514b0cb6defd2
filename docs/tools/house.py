"""Draws the house from the code: every folder, what it is for, and what it holds.

`{{ house }}` in a page becomes this picture. What a folder is for is the first sentence of its
`__init__.py`; the order of the stages is that of the work.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

SOURCE = Path(__file__).parents[2] / "src" / "napari_xcebra"
WIDTH, ROW = 860, 18
STAGES = {
    "path": "",
    "Recording": "io",
    "Fit": "learn",
    "Attribution": "attribution",
    "layers": "widgets",
    "decisions": "curation",
}
"""Values on the way from files to decisions, and the folder that makes each."""
FIRST = ("recording", "io", "simulate", "learn", "attribution", "curation")
"""Folders in the order of work; the others follow."""
LAST = ("widgets",)


class Room(NamedTuple):
    """A folder: its name, what it is for, the folders in it, and how many modules."""

    name: str
    about: str
    parts: tuple[str, ...]
    modules: int


def rooms() -> list[Room]:
    """Every folder of the package, in the order of work, then the modules of the root."""
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    between = sorted(folders - {*FIRST, *LAST})
    names = [*FIRST, *between, *LAST]
    root = tuple(sorted(path.stem for path in SOURCE.glob("[!_]*.py")))
    return [*(_room(SOURCE / name) for name in names), Room("", "", root, len(root))]


def drawn() -> str:
    """The picture as SVG."""
    parts, step = [], (WIDTH - 20) / len(STAGES)
    for place, (title, folder) in enumerate(STAGES.items()):
        left = 10 + place * step
        parts.append(_box(left, 16, step - 26, 58, "stage"))
        parts.append(_text(left + 10, 40, title, "title"))
        parts.append(_text(left + 10, 62, f"{folder}/" if folder else "", "code"))
        if place + 1 < len(STAGES):
            parts.append(_text(left + step - 24, 50, "▶", "arrow"))
    width, tops = (WIDTH - 20) / 2, [92.0, 92.0]
    for room in rooms():
        column = tops.index(min(tops))
        drawing, height = _drawn(room, 10 + column * width, tops[column], width - 14)
        parts += drawing
        tops[column] += height + 12
    height = max(tops)
    style = (
        "text{font-family:system-ui,sans-serif;font-size:13px;fill:#333}"
        ".title{font-weight:600;font-size:15px;fill:#1a237e}.code{font-family:monospace;fill:#00695c}"
        ".count{fill:#777;text-anchor:end}.arrow{font-size:18px;fill:#1a237e}"
        ".stage{fill:#e8eaf6;stroke:#3949ab}.room{fill:#f5f5f5;stroke:#bbb}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="The folders of the package and what each is for"><style>{style}</style>'
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _room(folder: Path) -> Room:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    modules = [path for path in folder.rglob("*.py") if path.name != "__init__.py"]
    inside = sorted(path.parent.name for path in folder.glob("*/__init__.py"))
    if folder.name in LAST:
        inside = _in_order(inside)
    return Room(folder.name, text.split("\n\n")[0].replace("\n", " "), tuple(inside), len(modules))


def _in_order(layers: list[str]) -> list[str]:
    """Layers of the window from the top down, as the import contract has them."""
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (order,) = (each["layers"] for each in contracts if each["type"] == "layers")
    return sorted(layers, key=order.index)


def _drawn(room: Room, left: float, top: float, width: float) -> tuple[list[str], float]:
    """The box of a room and what stands in it; and how high it is."""
    slash = "/" if room.name else ".py"
    lines = _lines(room.about, 54)
    inside = _lines("  ".join(f"{name}{slash}" for name in room.parts), 48)
    height = 34 + ROW * (len(lines) + len(inside))
    parts = [_box(left, top, width, height, "room")]
    parts.append(_text(left + 10, top + 22, f"{room.name}/" if room.name else "the root", "title"))
    parts.append(_text(left + width - 10, top + 22, f"{room.modules} modules", "count"))
    places = enumerate([*((line, "") for line in lines), *((line, "code") for line in inside)])
    parts += [_text(left + 10, top + 42 + ROW * n, line, kind) for n, (line, kind) in places]
    return parts, height


def _lines(text: str, width: int) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + len(word) < width:
            lines[-1] = f"{lines[-1]} {word}"
        else:
            lines.append(word)
    return lines


def _box(left: float, top: float, width: float, height: float, kind: str) -> str:
    return (
        f'<rect class="{kind}" x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" rx="8"/>'
    )


def _text(left: float, top: float, text: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{left:.0f}" y="{top:.0f}">{escape(text)}</text>'
