"""Draw the house: which folder makes what. `{{ house }}` in a page becomes this picture.

A module that no room names is put into the last one.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

SOURCE = Path(__file__).parents[2] / "src" / "napari_xcebra"
WIDTH, ROW = 860, 18


class Room(NamedTuple):
    """A stage of the flow, and where it lives."""

    title: str
    modules: tuple[str, ...]
    about: str


STAGES = (
    Room("path", (), "what an extractor wrote"),
    Room("Recording", ("io", "simulate"), "traces, clock, footprints, behaviour"),
    Room("Fit", ("learn",), "encoder, goodness, verdict"),
    Room("Attribution", ("attribution",), "score of each cell, each factor"),
    Room("decisions", ("curation",), "accepted, rejected, why"),
)
ROOMS = (
    Room(
        "what a recording is",
        (
            "recording",
            "recording_facts",
            "traces",
            "footprints",
            "tuning",
            "fingerprint",
            "matching",
            "opening",
            "matching",
        ),
        "values, checked once at the border",
    ),
    Room(
        "what is kept",
        ("runs", "sessions", "exports", "files", "knobs"),
        "runs, sessions, files written whole or not at all",
    ),
    Room(
        "what went wrong",
        ("errors", "logs", "diagnostics", "privacy"),
        "in sentences, and in a log without data or folders",
    ),
    Room(
        "many at once",
        ("jobs", "sweeps", "processor"),
        "processes that can be cancelled, alone or in hundreds",
    ),
    Room(
        "pictures and pages",
        (
            "figures",
            "method_figure",
            "dimension_figure",
            "session_figure",
            "montage",
            "verdicts",
            "report",
        ),
        "without a window",
    ),
    Room("when something goes wrong", ("logs", "diagnostics", "privacy"), "told without data"),
    Room("without Python", ("cli",), "the same from a shell"),
    Room(
        "in napari", ("widgets", "readers", "sample_data"), "docks, painting, picking: the only Qt"
    ),
)


def drawn() -> str:
    """The picture as SVG."""
    named = {name for room in (*STAGES, *ROOMS) for name in room.modules}
    there = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    others = tuple(sorted(there - named - {"__init__", "__pycache__"}))
    rooms = [*ROOMS, Room("and beside", others, "")] if others else ROOMS
    parts, step = [], (WIDTH - 20) / len(STAGES)
    for place, stage in enumerate(STAGES):
        left = 10 + place * step
        parts.append(_box(left, 30, step - 26, 112, "stage"))
        parts.append(_text(left + 10, 54, stage.title, "title"))
        parts.append(_text(left + 10, 76, _folders(stage.modules), "code"))
        parts += _wrapped(left + 10, 96, stage.about, 18)
        if place + 1 < len(STAGES):
            parts.append(_text(left + step - 24, 86, "▶", "arrow"))
    width = (WIDTH - 20) / 2
    for place, room in enumerate(rooms):
        left, top = 10 + (place % 2) * width, 166 + (place // 2) * 118
        parts.append(_box(left, top, width - 14, 106, "room"))
        parts.append(_text(left + 10, top + 24, room.title, "title"))
        folders = _wrapped(left + 10, top + 46, _folders(room.modules), 46, "code")
        parts += folders
        parts += _wrapped(left + 10, top + 46 + ROW * len(folders), room.about, 56)
    height = 166 + 118 * -(-len(rooms) // 2) + 8
    style = (
        "text{font-family:system-ui,sans-serif;font-size:13px;fill:#333}"
        ".title{font-weight:600;font-size:15px;fill:#1a237e}.code{font-family:monospace;fill:#00695c}"
        ".arrow{font-size:18px;fill:#1a237e}"
        ".stage{fill:#e8eaf6;stroke:#3949ab}.room{fill:#f5f5f5;stroke:#bbb}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="Which folder makes what"><style>{style}</style>'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _folders(modules: tuple[str, ...]) -> str:
    return " ".join(f"{name}/" if (SOURCE / name).is_dir() else f"{name}.py" for name in modules)


def _box(left: float, top: float, width: float, height: float, kind: str) -> str:
    return (
        f'<rect class="{kind}" x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" rx="8"/>'
    )


def _text(left: float, top: float, text: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{left:.0f}" y="{top:.0f}">{escape(text)}</text>'


def _wrapped(left: float, top: float, text: str, width: int, kind: str = "") -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > width and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return [_text(left, top + ROW * number, line, kind) for number, line in enumerate(lines)]
