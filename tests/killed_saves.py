"""Programs that save to one folder and are killed, and what is left then.

``python killed_saves.py WHAT FIRST SECOND PLACE ROUNDS`` saves two runs or fits in turn in a
process that is killed after a random time, looks at what is left, and prints how often it was
which. ``python killed_saves.py together WHAT …`` saves them in two processes at once.
"""

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from napari_xcebra.learn import Fit
from napari_xcebra.runs import Run


def loaded(what, folder):
    return Run.load(folder) if what == "run" else Fit.load(folder)


def which(what, folder, kept):
    """Number of the one that the folder holds; why none, or that it is a mixture."""
    try:
        found = loaded(what, folder)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    same = [number for number, each in enumerate(kept) if same_as(what, found, each)]
    return str(same[0]) if same else "a mixture"


def same_as(what, found, kept):
    fit = (found.fit, kept.fit) if what == "run" else (found, kept)
    if any((fit[0].weights[name] != w).any() for name, w in fit[1].weights.items()):
        return False
    if fit[0].settings != fit[1].settings:
        return False
    if what == "fit":
        return True
    return found.name == kept.name and all(
        (found.attributions[method].score("z2") == each.score("z2")).all()
        for method, each in kept.attributions.items()
    )


def in_child(work):
    """Process that does it and ends."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    finally:
        os._exit(0)


def killed(what, kept, place, rounds):
    """How often each was left after a kill."""
    chance = random.Random(0)
    kept[0].save(place)
    found = Counter()

    def save_in_turn():
        number = 0
        while True:
            kept[(number := number + 1) % 2].save(place)

    for _ in range(rounds):
        child = in_child(save_in_turn)
        time.sleep(chance.uniform(0.0, 0.08))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found[which(what, place, kept)] += 1
    return found


def together(what, kept, place, rounds):
    """How often each was left after two saved at once, and what was read meanwhile."""
    found = Counter()
    for _ in range(rounds):
        children = [in_child(lambda each=each: each.save(place)) for each in kept]
        if place.joinpath(f"{what}.json").exists():
            meanwhile = which(what, place, kept)
            found["meanwhile " + (meanwhile if not meanwhile.isdigit() else "whole")] += 1
        for child in children:
            os.waitpid(child, 0)
        found[which(what, place, kept)] += 1
    return found


if __name__ == "__main__":
    *how, what, first, second, place, rounds = sys.argv[1:]
    kept = [loaded(what, Path(folder)) for folder in (first, second)]
    count = together if how else killed
    print(json.dumps(count(what, kept, Path(place), int(rounds))))
