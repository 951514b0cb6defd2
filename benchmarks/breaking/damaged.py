"""Valid files of every format with bits flipped, ends cut off, blocks zeroed or swapped."""

from __future__ import annotations

import itertools
import random
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from breaking.opened import Window, count
from breaking.samples import SAMPLES, Sample
from breaking.tally import Tally, World, differences

Damage = Callable[[random.Random, bytearray], bytes]
HEAP = b"GCOL"
"""Begins a global heap of HDF5, which holds texts of any length."""


def bits(rng: random.Random, content: bytearray) -> bytes:
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return content


def cut(rng: random.Random, content: bytearray) -> bytes:
    return content[: rng.randrange(len(content))]


def zeros(rng: random.Random, content: bytearray) -> bytes:
    start, length = rng.randrange(len(content)), rng.choice([4, 16, 64, 512, 4096])
    return bytes(content[:start]) + bytes(length) + bytes(content[start + length :])


def ones(rng: random.Random, content: bytearray) -> bytes:
    start, length = rng.randrange(len(content)), rng.choice([1, 2, 4, 8])
    return bytes(content[:start]) + b"\xff" * length + bytes(content[start + length :])


def doubled(rng: random.Random, content: bytearray) -> bytes:
    start, length = rng.randrange(len(content)), rng.choice([1, 16, 512])
    return content[: start + length] + content[start:]


def swapped(rng: random.Random, content: bytearray) -> bytes:
    length = rng.choice([8, 64, 512])
    first, second = sorted(rng.randrange(len(content)) for _ in range(2))
    one, other = content[first : first + length], content[second : second + length]
    content[second : second + length] = one
    content[first : first + len(other)] = other
    return content


DAMAGES: tuple[Damage, ...] = (bits, cut, zeros, ones, doubled, swapped)


def family(
    home: Path, rng: random.Random, tally: Tally, formats: Iterable[str] = tuple(SAMPLES)
) -> None:
    """A damaged heap in each kind of HDF5 file, then random damage to all formats in turn."""
    world = World.at(home)
    samples = {}
    for name in formats:
        (world.shared / name).mkdir()
        samples[name] = SAMPLES[name](world.shared / name)
    with Window(world) as window:
        began = time.monotonic()
        heaps(window, samples, tally)
        tally.until += time.monotonic() - began  # however long those took
        at_random(window, world, samples, rng, tally)


def heaps(window: Window, samples: dict[str, Sample], tally: Tally) -> None:
    """16 zero bytes in the first global heap: libhdf5 looks for the next object there for ever."""
    for name, sample in samples.items():
        for file in sample.files():
            content = file.read_bytes()
            start = content.find(HEAP)
            if start < 0 or not content.startswith((b"\x89HDF", b"MATLAB 7.3", bytes(8))):
                continue
            for place in (16, 32):
                zeroed = bytearray(content)
                zeroed[start + place : start + place + 16] = bytes(16)
                file.write_bytes(zeroed)
                outcome = window.opened(sample.path, sample.behavior, sample.footprints)
                count(tally, outcome, f"{name} with {place} zeroed in its heap")
            file.write_bytes(content)


def at_random(
    window: Window,
    world: World,
    samples: dict[str, Sample],
    rng: random.Random,
    tally: Tally,
) -> None:
    """Damage formats in turn until the time is over."""
    outside = world.outside()
    for name, damage in itertools.cycle(itertools.product(samples, DAMAGES)):
        if not tally.in_time:
            break
        sample = samples[name]
        file = rng.choice(sample.files())
        content = file.read_bytes()
        file.write_bytes(damage(rng, bytearray(content)))
        outcome = window.opened(sample.path, sample.behavior, sample.footprints)
        count(tally, outcome, f"{name}, {damage.__name__} in {file.name}")
        if outcome.broken:
            kept = world.home / "broken" / f"{tally.trials}-{name}-{damage.__name__}"
            kept.mkdir(parents=True)
            shutil.copy(file, kept)
        file.write_bytes(content)
    world.canary.unlink(missing_ok=True)
    after = {name: c for name, c in world.outside().items() if not name.startswith("broken")}
    for name in differences(outside, after):
        tally.broke("outside", name)
