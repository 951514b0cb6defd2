"""Finds the highest λ at which InfoNCE stays at its minimum (paper Sec. 3), within one run.

λ is raised by small factors while the goodness of fit is watched on frames that are set aside.
Every part has a λ of its own, and is judged by its own goodness alone: what the time latents bear
says nothing of a behaviour, and a faint variable bears less than a clear one. Once the loss of a
part is beyond doubt, its λ goes back to what it bore while that of the others is raised further.
In the end the weights go back to where the first behaviour gave way (what a latent lost to a higher
λ need not come back by itself), and the frames that were set aside join the training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import TIME, Part
from napari_xcebra.learn.device import embedded
from napari_xcebra.learn.quality.goodness import (
    Blocks,
    Pairs,
    Size,
    draw_pairs,
    labels_of,
    pair_losses,
)
from napari_xcebra.learn.training.checkpoint import State, put_state, state_of
from napari_xcebra.learn.training.start import share_of

if TYPE_CHECKING:
    from napari_xcebra.learn.training.training import Training

LOWEST, HIGHEST = 0.1, 10.0
"""λ at which the search begins, and where it ends if no part gives way."""

UNSEARCHED = 1.0
"""λ where it cannot be searched for, and the most for a part at chance."""

EVERY = 10
"""Steps between two looks at the frames set aside."""

SMOOTHED = 3
"""Looks that are averaged."""

BORNE = 0.05
"""Share of its best goodness that a part may lose."""

ENOUGH = 4.0
"""Times that loss, at which it is beyond doubt: less may still be chance, while much is learned."""

IN_DOUBT = 0.3
"""λ up to which the search goes on whatever happens: what is lost so early is mostly noise."""

UNCERTAIN = 0.01
"""Nats by which goodness changes from look to look, whatever λ does."""

ABSENT = 0.02
"""R² of a regression on frames set aside up to which a behaviour is taken for absent."""

SIZE = Size(256, 256)
"""Pairs of each stretch that is set aside."""

SHARE = "share of "
"""Prefix of what is recorded beside the goodness of the parts."""

SCALES = (1.0, 0.5, 0.25)
"""Factors on ψ, of which the best counts: overconfidence is not what λ is for."""


class LambdaSearch:
    """Raises the λ of every part until its goodness drops, and says what was chosen and why.

    Parameters
    ----------
    training : Training
        Run that asks; its split, labels and parts are made.

    Attributes
    ----------
    looks : dict of str to list of float
        "step", "lambda" and the goodness of each part at every look so far.
    snapshots : dict of int to State
        States at the looks that may still be returned to; empty once λ is chosen. With `looks`,
        all that a resumed run needs.

    Raises
    ------
    InputError
        The recording is too short to set frames aside.
    """

    def __init__(self, training: Training) -> None:
        settings = training.settings
        rest, aside, stretch = training.split.set_aside()
        self.first = settings.settle * settings.steps
        self.last = self.first + settings.search * settings.steps
        self.sampler = training.sampler_of(rest)
        if len(self.sampler.references) < training.batch_size:
            raise InputError("Too few frames are left for training.")
        blocks = Blocks(aside, stretch)
        drawn = {p.name: _drawn(training, p, blocks) for p in training.parts}
        drawn = {name: pairs for name, pairs in drawn.items() if len(pairs) > 1}
        self.parts = [part.name for part in training.parts]
        self.watched = list(drawn)
        if not self.watched:
            raise InputError("No factor can be watched.")
        self.frames, self.pairs = _compact(drawn)
        self.averaged = training.regressions.keys() & set(self.watched)
        self.absent = {n for n, ridge in training.regressions.items() if not ridge.r2 > ABSENT}
        shares = [f"{SHARE}{name}" for name in self.averaged]
        columns = ("step", "lambda", *self.watched, *shares)
        self.looks: dict[str, list[float]] = {n: [] for n in columns}
        self.snapshots: dict[int, State] = {}
        self._known: tuple[int, int | None] = 0, None

    @classmethod
    def of(cls, training: Training) -> LambdaSearch | None:
        """Search of a run; None if λ is given, or if the recording is too short to set aside."""
        if training.settings.lambda_ != "auto":
            return None
        try:
            return cls(training)
        except InputError:
            return None

    def raised(self, step: int) -> float:
        """λ at a step of the search, of the parts that still bear it."""
        share = (step - self.first) / max(self.last - self.first, 1)
        if share <= 0:
            return 0.0
        return float(LOWEST * (HIGHEST / LOWEST) ** min(share, 1.0))

    def lambdas_at(self, step: int) -> dict[str, float]:
        """λ of every part at a step of the search, or what was chosen once it is over."""
        if self.end is not None:
            return self.chosen
        now = self.raised(step)
        bound = {name: min(now, LOWEST) for name in self._spared}
        bound |= {name: self.looks["lambda"][self.borne_at(name)] for name in self._beyond_doubt}
        return {name: bound.get(name, now) for name in self.parts}

    def look(self, training: Training) -> None:
        """Measure the goodness of the watched parts, if a look is due; at the end, go back."""
        step = training.step
        if self.over or step <= self.first or (step % EVERY and step < self.last):
            return
        row = {"step": step, "lambda": self.raised(step), **self._goodness(training)}
        for name, value in row.items():
            self.looks[name].append(value)
        self.snapshots[len(self.looks["step"]) - 1] = state_of(training)
        if self.end is not None:
            put_state(training, self.snapshots[self.end])
            self.snapshots = {}
            for part in training.parts:
                if part.name in self.averaged:
                    self.looks[f"{SHARE}{part.name}"] = [share_of(training, part)]
        else:
            self._forget()

    def _forget(self) -> None:
        """Keep the snapshots that may still be chosen: one a part, the first and the last few.

        Each is three times the size of the encoder.
        """
        newest = len(self.looks["step"]) - 1
        kept = {0, *(self.borne_at(name) for name in self.watched)}
        kept |= set(range(newest - SMOOTHED + 1, newest + 1))
        self.snapshots = {look: state for look, state in self.snapshots.items() if look in kept}

    @torch.no_grad()
    def _goodness(self, training: Training) -> dict[str, float]:
        values = embedded(training.encoder, training.data, self.frames)[self.frames]
        embedding = torch.as_tensor(values, device=training.device)
        if training.settings.mode == "supervised":
            return {name: _nats(training, name, self.frames, embedding) for name in self.watched}
        scaled = (embedding * training.psi.scale()).cpu().numpy()
        parts = {part.name: part for part in training.parts}
        return {
            name: SIZE.chance
            - float(pair_losses(training, parts[name], pairs, scaled, SCALES).mean(1).min())
            for name, pairs in self.pairs.items()
        }

    def goodness(self, name: str) -> np.ndarray:
        """Goodness of a part over the looks, each the mean of the last few: (looks,)."""
        sums = np.cumsum([0.0, *self.looks[name]])
        last = np.arange(1, len(sums))
        first = np.maximum(last - SMOOTHED, 0)
        return (sums[last] - sums[first]) / (last - first)

    @property
    def found(self) -> list[str]:
        """Parts above chance on the frames set aside."""
        return [n for n in self.watched if self.goodness(n).max(initial=0) >= 2 * UNCERTAIN]

    @property
    def _spared(self) -> list[str]:
        """Behaviours that the encoder may still learn: a raised λ would keep it from doing so."""
        there = set(self.found) | self.absent
        return [name for name in self.watched if name != TIME and name not in there]

    @property
    def _beyond_doubt(self) -> list[str]:
        """Parts that have lost more than chance explains."""
        return [n for n in self.found if self._gave_way_at(n) < len(self.looks["step"])]

    def _gave_way_at(self, name: str) -> int:
        """First look at which that much of the best so far was lost; after the last if none."""
        goodness = self.goodness(name)
        least = [_bearable(best, ENOUGH) for best in np.maximum.accumulate(goodness)]
        late = np.array(self.looks["lambda"]) >= IN_DOUBT
        lost = np.flatnonzero((goodness < least) & late)
        return int(lost[0]) if len(lost) else len(goodness)

    @property
    def over(self) -> bool:
        """Whether λ is chosen."""
        return self.end is not None

    @property
    def end(self) -> int | None:
        """Look that the run returned to; None while the search goes on."""
        looks = len(self.looks["step"])
        if self._known[0] != looks:  # it is asked for several times a step
            self._known = looks, self._first_to_give_way() if self._decided() else None
        return self._known[1]

    def _decided(self) -> bool:
        """Whether the loss of every part is beyond doubt, or the steps are used up."""
        looked = self.looks["step"]
        if not looked or looked[-1] >= self.last:
            return bool(looked)
        found = self.found
        return bool(found) and set(found) <= set(self._beyond_doubt)

    def borne_at(self, name: str) -> int:
        """Look with the highest λ at which a part kept its goodness.

        The goodness at a look is the mean of the last few, and what the encoder shows is the λ
        of some steps before: the λ of the first of these looks is the one that was borne.
        """
        # once it has given way, λ is low again: what it recovers then tells nothing
        goodness = self.goodness(name)[: self._gave_way_at(name)]
        kept = goodness >= _bearable(goodness.max())
        last = int(np.flatnonzero(kept).max(initial=0))
        return last if last == len(self.looks["step"]) - 1 else max(last - SMOOTHED + 1, 0)

    def _first_to_give_way(self) -> int:
        """Look to go back to: that of the behaviour which bore least, or of time."""
        behaviors = [name for name in self.found if name != TIME]
        deciding = behaviors or self.found or self.watched
        return min(self.borne_at(name) for name in deciding)

    @property
    def chosen(self) -> dict[str, float]:
        """Highest λ that each part bore; for parts at chance the lowest of the others."""
        found = self.found
        own = {name: self.looks["lambda"][self.borne_at(name)] for name in found}
        behaviors = [own[name] for name in found if name != TIME]
        others = min([*behaviors, UNSEARCHED])
        own |= dict.fromkeys(self._spared, min(LOWEST, others))
        return {name: own.get(name, others) for name in self.parts}

    @property
    def shares(self) -> dict[str, float]:
        """Share of the encoder in its mean with a regression, of each factor that has one."""
        found = {name: self.looks[f"{SHARE}{name}"] for name in self.averaged}
        return {name: value[0] for name, value in found.items() if value}

    @property
    def undone(self) -> int:
        """Steps undone by going back; 0 while the search goes on."""
        steps = self.looks["step"]
        return 0 if self.end is None else int(steps[-1] - steps[self.end])

    @property
    def reason(self) -> str:
        """The choice and its reason, in a sentence; empty while the search goes on."""
        if not self.over:
            return ""
        values = {name: f"{value:.2g}" for name, value in self.chosen.items()}
        each = [f"{value} ({name})" for name, value in values.items()]
        said = ", ".join(each if len(set(values.values())) > 1 else [*values.values()][:1])
        last = len(self.looks["step"]) - 1
        why = "" if self.found else "; nothing is above chance on frames set aside"
        if self.found and all(self.borne_at(name) == last for name in self.found):
            why = ", the highest that is tried"
        return f"Penalty λ, chosen automatically: {said}{why}."


def _bearable(best: float, times: float = 1.0) -> float:
    """Least goodness a part may come down to, with that many times the loss it may have.

    A part at chance has nothing to lose.
    """
    if best < 2 * UNCERTAIN:
        return -np.inf
    return best - times * max(BORNE * best, UNCERTAIN)


def _drawn(training: Training, part: Part, among: Blocks) -> list[Pairs]:
    return draw_pairs(part, labels_of(training, part), among, SIZE, training.settings.seed)


def _compact(pairs: dict[str, list[Pairs]]) -> tuple[np.ndarray, dict[str, list[Pairs]]]:
    """Frames of all pairs, and the pairs as positions among these frames."""
    each = [p for several in pairs.values() for p in several]
    frames = np.unique(np.concatenate([f for p in each for f in vars(p).values()]))
    placed = {
        name: [Pairs(*(np.searchsorted(frames, f) for f in vars(p).values())) for p in several]
        for name, several in pairs.items()
    }
    return frames, placed


def _nats(training: Training, name: str, frames: np.ndarray, embedding: torch.Tensor) -> float:
    """Squared error of a regression, in nats."""
    part = next(part for part in training.parts if part.name == name)
    known = torch.as_tensor(training.labels[name].known[frames], device=training.device)
    error = embedding[:, part.latents] - training.objective.regression.targets[name][frames]
    return float(-0.5 * torch.log(error[known].square().mean()))
