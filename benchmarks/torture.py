"""Does the program keep its promises about files when everything goes wrong?

Nine families of trials, each in a world of files of its own (see `breaking/`): crafted pickles,
damaged files, bombs, processes killed while they write, races, failing file operations, flipped
bits, hostile folders, and files and windows that go away. Counted are: files touched that are
neither in the recording nor ours; answers that take over 20 s; memory above 2 GB; results that are
lost or mixed of two versions; decisions that are lost; exceptions that are no sentence for a user
(a crash is one); and what is left behind in folders. Every count should be 0.

    python benchmarks/torture.py [--only killed raced] [--minutes 20] [--seed 0]
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # also of processes that are forked

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from breaking.tally import COLUMNS, EXAMPLES, Tally
from report import header, row, typed

FAMILIES = {
    "pickled": ("crafted pickles", 0.0),
    "damaged": ("damaged files", 0.25),
    "bombs": ("bombs", 0.0),
    "killed": ("killed while writing", 0.2),
    "raced": ("races", 0.1),
    "faults": ("failing file operations", 0.2),
    "flipped": ("flipped bits", 0.0),
    "hostile": ("hostile folders", 0.0),
    "pulled_away": ("pulled away", 0.0),
    "orientation": ("orientation", 0.0),
    "clocks": ("clock tables", 0.0),
    "labs": ("files of labs", 0.0),
    "changed": ("changed recordings", 0.0),
    "killed.renames": ("killed at each rename", 0.5),
    "faults.disks": ("full disk", 0.5),
}
"""Module of each family, its name, and its share of the time if it goes on until told to stop."""
MEMORY = Path("/dev/shm")
"""A disk in memory, on which trials do not wait for a real one; used if there is one."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="cases named of each kind")
    parser.add_argument("--keep", type=Path, help="folder for the files of the trials")
    given = typed(parser, minutes=0.05, only=["raced"])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was counted is printed
    print(header("Torture"), flush=True)
    print(row("family", "trials", *COLUMNS.values(), "seconds"))
    print(row(*["---"] * (len(COLUMNS) + 3)), flush=True)
    tallies = []
    home = Path(tempfile.mkdtemp(prefix="torture-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        for name in given.only:
            tallies.append(tallied(name, given.keep or home, given.seed, 60 * given.minutes))
            print(row(*tallies[-1].cells()), flush=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)
        total = [sum(tally.broken[column] for tally in tallies) for column in COLUMNS]
        print(row("all", sum(tally.trials for tally in tallies), *total, ""))
        print("", *(line for tally in tallies for line in tally.lines(given.examples)), sep="\n")


def tallied(name: str, home: Path, seed: int, seconds: float) -> Tally:
    """Run a family; those without a share of the time run until they are through."""
    title, share = FAMILIES[name]
    tally = Tally(title, time.monotonic() + share * seconds)
    module, _, part = name.partition(".")
    run = getattr(import_module(f"breaking.{module}"), part or "family")
    run(home / name, random.Random(seed), tally)
    tally.ended = time.monotonic()
    return tally


if __name__ == "__main__":
    main()
