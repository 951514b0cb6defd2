"""Folders with one file damaged: a bit flipped, its end cut off, zeros in it, or gone."""

import random
import shutil
from pathlib import Path


def damaged_copies(folder, place, rounds, seed=0, names="*"):
    """Copies of a folder, one after the other in the same place, each with one file damaged."""
    chance = random.Random(seed)
    files = sorted(p.relative_to(folder) for p in Path(folder).rglob(names) if p.is_file())
    for _ in range(rounds):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(folder, place)
        damage(place / chance.choice(files), chance)
        yield place


def damage(path, chance):
    content = bytearray(path.read_bytes())
    how = chance.choice(["flip", "flip", "flip", "cut", "zeros", "swap", "gone"])
    if how == "gone":
        path.unlink()
        return
    at = chance.randrange(len(content))
    if how == "flip":
        content[at] ^= 1 << chance.randrange(8)
    elif how == "cut":
        del content[at:]
    elif how == "zeros":
        content[at : at + 64] = bytes(len(content[at : at + 64]))
    else:
        content[at] = chance.randrange(256)
    path.write_bytes(content)
