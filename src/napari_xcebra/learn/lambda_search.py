"""The highest λ at which InfoNCE stays at its minimum (paper Sec. 3), within one training run.

λ is raised by small factors while the goodness of fit is watched on frames that are set aside.
Where a factor gives way, λ goes back to what all of them bore, the weights go back to what they
were then (what a latent lost to a higher λ need not come back by itself), and the frames that were
set aside join the training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from napari_xcebra.learn.block_loss import Blocks, Pairs, Size, draw_pairs, labels_of, pair_losses
from napari_xcebra.learn.parts import TIME, Part
from napari_xcebra.learn.state import State, put_state, state_of
from napari_xcebra.recording import InputError

if TYPE_CHECKING:
    from napari_xcebra.learn.training import Training

LOWEST, HIGHEST = 0.01, 30.0
"""λ at which the search begins, and where it ends if no factor gives way."""

UNSEARCHED = 1.0
"""λ where it cannot be searched for."""

EVERY = 5
"""Steps between two looks at the frames that are set aside."""

SMOOTHED = 3
"""Looks that are averaged."""

BORNE = 0.1
"""Share of its best goodness that a factor may lose."""

ENOUGH = 4.0
"""Times that loss, at which the search ends: less may still be chance, while much is learned."""

IN_DOUBT = 0.3
"""λ up to which the search goes on whatever happens: what is lost so early is mostly noise."""

UNCERTAIN = 0.01
"""Nats by which goodness changes from look to look, whatever λ does."""

SIZE = Size()
"""Pairs of each stretch that is set aside."""


class LambdaSearch:
    """Raises λ until a factor gives way, and says what was chosen and why.

    Parameters
    ----------
    training : Training
        Run that asks; its split, labels and parts are made.

    Attributes
    ----------
    looks : dict of str to list of float
        "step", "lambda" and the goodness of each part at every look so far.
    snapshots : dict of int to State
        What was learned at those looks that may still be gone back to; empty once λ is chosen.
        With `looks`, all that a resumed run needs to go on.

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
        if len(self.sampler.references) < settings.batch_size:
            raise InputError("Too few frames are left for training.")
        blocks = Blocks(aside, stretch)
        drawn = {p.name: _drawn(training, p, blocks) for p in training.parts}
        drawn = {name: pairs for name, pairs in drawn.items() if len(pairs) > 1}
        self.watched = list(drawn)
        if not self.watched:
            raise InputError("No factor can be watched.")
        self.frames, self.pairs = _compact(drawn)
        self.looks: dict[str, list[float]] = {n: [] for n in ("step", "lambda", *self.watched)}
        self.snapshots: dict[int, State] = {}
        self._known: tuple[int, int | None] = 0, None

    def lambda_at(self, step: int) -> float:
        """λ at a step of the search, or what was chosen once it is over."""
        if self.end is not None:
            return self.looks["lambda"][self.end]
        share = (step - self.first) / max(self.last - self.first, 1)
        if share <= 0:
            return 0.0
        return float(LOWEST * (HIGHEST / LOWEST) ** min(share, 1.0))

    def look(self, training: Training) -> None:
        """Measure the goodness of what is watched, if it is time to; at the end, go back."""
        step = training.step
        if self.over or step <= self.first or (step % EVERY and step < self.last):
            return
        row = {"step": step, "lambda": self.lambda_at(step), **self._goodness(training)}
        for name, value in row.items():
            self.looks[name].append(value)
        self.snapshots[len(self.looks["step"]) - 1] = state_of(training)
        if self.end is not None:
            put_state(training, self.snapshots[self.end])
            self.snapshots = {}
        else:
            self._forget()

    def _forget(self) -> None:
        """Keep the snapshots that may still be chosen: at most one a part, and the last few.

        Each is three times the size of the encoder.
        """
        newest = len(self.looks["step"]) - 1
        kept = {self.borne_at(name) for name in self.watched}
        kept |= set(range(newest - SMOOTHED + 1, newest + 1))
        self.snapshots = {look: state for look, state in self.snapshots.items() if look in kept}

    @torch.no_grad()
    def _goodness(self, training: Training) -> dict[str, float]:
        embedding = training.encoder(training.data[self.frames])
        if training.settings.mode == "supervised":
            return {name: _nats(training, name, self.frames, embedding) for name in self.watched}
        scaled = (embedding * training.scale()).cpu().numpy()
        parts = {part.name: part for part in training.parts}
        return {
            name: SIZE.chance - float(pair_losses(training, parts[name], pairs, scaled).mean())
            for name, pairs in self.pairs.items()
        }

    def goodness(self, name: str) -> np.ndarray:
        """Goodness of a factor over the looks, each the mean of the last few: (looks,)."""
        sums = np.cumsum([0.0, *self.looks[name]])
        last = np.arange(1, len(sums))
        first = np.maximum(last - SMOOTHED, 0)
        return (sums[last] - sums[first]) / (last - first)

    @property
    def deciding(self) -> list[str]:
        """Factors by which λ is chosen: those above chance, or time if there are none.

        Time latents are for what is left over, and what they find may well be peculiar to the
        training frames.
        """
        factors = [name for name in self.watched if name != TIME]
        found = [name for name in factors if self.goodness(name).max() >= 2 * UNCERTAIN]
        return found or [name for name in self.watched if name == TIME] or factors

    @property
    def over(self) -> bool:
        """Whether λ is chosen."""
        return self.end is not None

    @property
    def end(self) -> int | None:
        """Look that was gone back to; None while the search goes on."""
        looks = len(self.looks["step"])
        if self._known[0] != looks:  # it is asked for several times a step
            self._known = looks, self.chosen_look if self._decided() else None
        return self._known[1]

    def _decided(self) -> bool:
        """Whether the loss of a factor is beyond doubt, or the steps are used up."""
        looked = self.looks["step"]
        if not looked or looked[-1] >= self.last:
            return bool(looked)
        if self.looks["lambda"][-1] < IN_DOUBT:
            return False
        goodness = [self.goodness(name) for name in self.deciding]
        return any(each[-1] < bearable(each.max(), ENOUGH) for each in goodness)

    def borne_at(self, name: str) -> int:
        """Look with the highest λ at which a factor kept its goodness.

        The goodness at a look is the mean of the last few, and what the encoder shows is the λ
        of some steps before: the λ of the first of these looks is the one that was borne.
        """
        goodness = self.goodness(name)
        last = int(np.flatnonzero(goodness >= bearable(goodness.max())).max())
        return last if last == len(goodness) - 1 else max(last - SMOOTHED + 1, 0)

    @property
    def chosen_look(self) -> int:
        """Look with the highest λ that all factors bore."""
        return min(self.borne_at(name) for name in self.deciding)

    @property
    def chosen(self) -> float:
        """Highest λ that all factors bore."""
        return self.looks["lambda"][self.chosen_look]

    @property
    def undone(self) -> int:
        """Steps that going back made vain; 0 while the search goes on."""
        steps = self.looks["step"]
        return 0 if self.end is None else int(steps[-1] - steps[self.end])

    @property
    def reason(self) -> str:
        """What was chosen and why, in a sentence; empty while the search goes on."""
        if not self.over:
            return ""
        first = min(self.deciding, key=self.borne_at)
        if self.chosen == self.looks["lambda"][-1]:
            return f"λ is {self.chosen:.2g}, the highest that is tried: no factor gave way."
        return (
            f"λ is {self.chosen:.2g}: raised further, {first} loses more than {BORNE:.0%} of its "
            "best goodness on frames set aside."
        )


def bearable(best: float, times: float = 1.0) -> float:
    """Least goodness a factor may come down to, or with so many times the loss it may have.

    A factor at chance has nothing to lose.
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
    """What the squared error of a regression is worth in nats."""
    part = next(part for part in training.parts if part.name == name)
    known = torch.as_tensor(training.labels[name].known[frames], device=training.device)
    error = embedding[:, part.latents] - training.regression.targets[name][frames]
    return float(-0.5 * torch.log(error[known].square().mean()))
