"""Every single bit of a small journal flipped: a decision that changes must be noticed."""

from __future__ import annotations

import random
from pathlib import Path

from breaking.tally import Tally
from napari_xcebra.curation import Curation, Journal
from napari_xcebra.curation.changes import Contents, read_journal
from napari_xcebra.errors import InputError

CELLS = range(100, 112)


def family(home: Path, rng: random.Random, tally: Tally, step: int = 1) -> None:
    """Read the journal once for each of its bits, or for every few."""
    home.mkdir(parents=True)
    path = small_journal(home / "journal.jsonl")
    content, truth = path.read_bytes(), read_journal(path)
    flipped = home / "flipped.jsonl"
    for place in range(0, 8 * len(content), step):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        flipped.write_bytes(changed)
        tally.trials += 1
        check(truth, flipped, tally)


def check(truth: Contents, path: Path, tally: Tally) -> None:
    """Compare what is read with what was written; a note about it makes it noticed."""
    try:
        found = read_journal(path)
    except InputError:
        return
    except Exception as error:
        tally.broke("other", type(error).__name__)
        return
    if found.notes(path):
        return
    if decisions(found) != decisions(truth):
        tally.broke("lost", "a decision is another, or gone, and nothing is said")
    elif found.steps != truth.steps:
        tally.broke("lost", "who decided, or when, is another, and nothing is said")
    elif found.header != truth.header:
        tally.broke("mixed", "the first line is another, and nothing is said")


def decisions(contents: Contents) -> list[object]:
    """What was decided, without who and when."""
    aside = ("curator", "time", "sum", "checksum", "crc")
    return [{k: v for k, v in step.items() if k not in aside} for step in contents.steps]


def small_journal(path: Path) -> Path:
    """A few decisions of each kind."""
    about = {"source": "mouse3", "curator": "Ann", "fingerprint": {"cells": 12, "frames": 60}}
    journal = Journal(path, header=about, curator="Ann")
    with Curation(CELLS, journal=journal, curator="Ann") as curation:
        curation.decide([1, 2], "accepted")
        curation.decide([3], "rejected")
        curation.tag([3], "dendrite", on=True)
        curation.write_note(4, "two cells?")
        curation.undo()
    return path
