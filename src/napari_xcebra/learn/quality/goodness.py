"""Measures how well each factor is found in the cells, on held-out blocks of time.

InfoNCE is measured block by block, with partners from other blocks, and beside it what labels
shifted in time reach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.deconvolution import spacing_of
from napari_xcebra.learn.data.factors import TIME, Part
from napari_xcebra.learn.data.labels import Labels, correlation_time
from napari_xcebra.learn.data.sampling import LabelNeighbours
from napari_xcebra.learn.data.split import UsableFrames
from napari_xcebra.learn.device import embedded, in_double
from napari_xcebra.learn.objective.loss import cross_similarity, info_nce, pair_similarity
from napari_xcebra.learn.objective.ridge import (
    DecodedFactor,
    Yardstick,
    lagged,
    logistic,
    thinned,
)
from napari_xcebra.learn.quality.chance import (
    NAN,
    TESTED_FRAMES,
    Shifts,
    goes_with,
    null_of,
    rearranged,
    tested,
    trial_orders,
)
from napari_xcebra.learn.quality.verdict import LARGEST_P, Goodness

if TYPE_CHECKING:
    from napari_xcebra.learn.training.training import Training

SCALES = (1.0, 1.4, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.06, 0.03, 0.01)
"""Factors on ψ that are tried when goodness is measured; near 0 it is at chance."""


@dataclass(frozen=True)
class Blocks:
    """Frames on which a fit is measured.

    Parameters
    ----------
    frames : UsableFrames
    number : (frames,) int64
        Block a frame belongs to, −1 outside.
    """

    frames: UsableFrames
    number: np.ndarray

    def where_known(self, labels: Labels | None) -> np.ndarray:
        """Blocks in which the labels are known somewhere; all of them if there are no labels."""
        anchors = self.frames.anchors
        if labels is not None:
            anchors = anchors[labels.known[anchors]]
        return np.unique(self.number[anchors])


@dataclass(frozen=True)
class Size:
    """Number of pairs drawn from each block."""

    references: int = 512
    negatives: int = 512

    @property
    def chance(self) -> float:
        """Upper bound of InfoNCE, log N, which an encoder that knows nothing reaches (Eq. 26)."""
        return float(np.log(self.negatives))


@dataclass(frozen=True)
class Pairs:
    """Frames of one block, their positive partners, and the negatives that all of them share."""

    reference: np.ndarray
    positive: np.ndarray
    negative: np.ndarray


def draw_pairs(
    part: Part, labels: Labels | None, among: Blocks, size: Size, seed: int
) -> list[Pairs]:
    """Pairs of every block that has some.

    Within a block everything that is slow looks alike; partners from elsewhere, positive and
    negative, make sure that only the label can bring them together. A time pair cannot leave
    its block, so there only the negatives come from elsewhere.

    Parameters
    ----------
    labels : Labels or None
        None for the time part.
    """
    drawn = [_block_pairs(part, labels, among, b, size, seed) for b in among.where_known(labels)]
    return [pairs for pairs in drawn if pairs is not None]


def _block_pairs(
    part: Part,
    labels: Labels | None,
    among: Blocks,
    block: int,
    size: Size,
    seed: int,
) -> Pairs | None:
    rng = np.random.default_rng([seed, block])
    anchors, number = among.frames.anchors, among.number
    if labels is None:
        starts = among.frames.pairs(part.offset)
        inside, neighbours = starts[number[starts] == block], None
    else:
        inside, neighbours = _matched_inside(part, labels, among, block)
    elsewhere = anchors[number[anchors] != block]
    if len(inside) == 0 or len(elsewhere) == 0:
        return None
    reference = inside[rng.integers(len(inside), size=size.references)]
    positive = neighbours.draw(reference, rng) if neighbours else reference + part.offset
    negative = elsewhere[rng.integers(len(elsewhere), size=size.negatives)]
    return Pairs(reference, positive, negative)


def _matched_inside(
    part: Part, labels: Labels, among: Blocks, block: int
) -> tuple[np.ndarray, LabelNeighbours]:
    """References of one block that have label neighbours in the others, and how to find them."""
    anchors, offset = among.frames.anchors, part.offset
    known = anchors[labels.known[anchors]]
    steps = labels.steps(among.frames.pairs(offset), offset)
    elsewhere = known[among.number[known] != block]
    inside = known[among.number[known] == block]
    neighbours = LabelNeighbours(labels, elsewhere, steps, offset)
    if len(steps) == 0 or len(elsewhere) == 0:
        return inside[:0], neighbours
    return neighbours.matched(inside), neighbours


def pair_losses(
    training: Training,
    part: Part,
    pairs: list[Pairs],
    embedding: np.ndarray,
    scales: Sequence[float] = (1.0,),
) -> np.ndarray:
    """InfoNCE in every block, with ψ multiplied by each of these: (scales, blocks).

    Parameters
    ----------
    embedding : (frames, latents)
        In the units of the similarity, at the frames of the pairs at least.
    """
    losses = []
    for each in pairs:
        a, b, c = (
            torch.as_tensor(embedding[frames], device=training.device)
            for frames in (each.reference, each.positive, each.negative)
        )
        alike, apart = training.psi.pair(part, a, b), training.psi.cross(part, a, c)
        losses.append([float(info_nce(s * alike, s * apart).mean()) for s in scales])
    return np.array(losses).T


def _calibrated(losses: np.ndarray) -> np.ndarray:
    """Loss of each block with the scale of ψ that is best in all the others: (blocks,).

    An overconfident encoder has a temperature that does not fit, and may still know the label. One
    number for all blocks, never chosen on the block it is used in, corrects that.

    Parameters
    ----------
    losses : (scales, blocks)
    """
    others = losses.sum(1, keepdims=True) - losses
    return losses[others.argmin(0), np.arange(losses.shape[1])]


def labels_of(training: Training, part: Part) -> Labels | None:
    """Labels of a behaviour part; None for time."""
    return None if part.name == TIME else training.labels[part.name]


DRAWN = 49
"""Shifts whose goodness is measured."""

SAMPLED = 512
"""Held-out frames on which it is measured."""


class _Sample:
    """Held-out frames among which goodness is measured anew for any labels, at little cost.

    Only which pairs are positive depends on the labels; the similarities do not.

    Parameters
    ----------
    frames : (n,) int64
    similarity : (n, n) float
        ψ between them.
    among : Blocks
        Held-out frames; partners come from other blocks.
    offset : int
        Frames over which the labels step.
    """

    def __init__(
        self, frames: np.ndarray, similarity: np.ndarray, among: Blocks, offset: int
    ) -> None:
        block = among.number[frames]
        self.frames, self.offset = frames, offset
        self.same_block = block[:, None] == block
        negatives = np.where(self.same_block, -np.inf, similarity)
        elsewhere = (~self.same_block).sum(1)
        # log N − InfoNCE of every pair that might be positive
        self.nats = similarity - (logsumexp(negatives, axis=1) - np.log(elsewhere))[:, None]
        self.starts = among.frames.pairs(offset)

    @staticmethod
    def of(among: Blocks) -> np.ndarray:
        """Frames to take: evenly spaced, 512 or a few more at most."""
        anchors = among.frames.anchors
        return anchors[:: max(1, len(anchors) // SAMPLED)]

    def null(self, labels: Labels, shifts: Shifts) -> tuple[float, float]:
        """5 and 95 % of what shifted labels reach, in nats; NaN without any."""
        some = thinned(np.arange(len(shifts)), DRAWN)
        null = np.array([self.goodness(rearranged(labels, shifts.source(n))) for n in some])
        null = null[np.isfinite(null)]
        if len(null) == 0:
            return NAN, NAN
        low, high = np.quantile(null, [0.05, 0.95])
        return float(low), float(high)

    def goodness(self, labels: Labels) -> float:
        """Log N − InfoNCE with positives by these labels; NaN if there are none."""
        rng = np.random.default_rng(0)
        starts = labels.steps(self.starts, self.offset)
        if len(starts) == 0:
            return NAN
        start = rng.choice(starts, size=len(self.frames))
        target = labels.moved(self.frames, start, start + self.offset)
        if not labels.near.all():  # far from an event all frames are alike
            target += rng.normal(scale=1e-4, size=target.shape)
        distance = self._distance(target, labels, rng)
        positive = distance.argmin(1)
        rows = np.flatnonzero(np.isfinite(distance.min(1)))
        return float(self.nats[rows, positive[rows]].mean()) if len(rows) else NAN

    def _distance(self, target: np.ndarray, labels: Labels, rng: np.random.Generator) -> np.ndarray:
        """Distances of all labels from the targets, infinite where there can be no pair."""
        if labels.is_discrete:
            distance = rng.random(self.nats.shape)
        else:
            points = labels.points(self.frames)
            # a trace of noise makes ties fall at random
            points += rng.normal(scale=1e-4, size=points.shape)
            distance = cdist(target, points, "sqeuclidean")
        distance[self.same_block] = np.inf
        if labels.n_codes > 1:
            code = labels.code[self.frames]
            distance[code[:, None] != code] = np.inf
        missing = ~labels.known[self.frames]
        distance[missing] = distance[:, missing] = np.inf
        return distance


SIZE = Size()
"""Pairs of each block on which InfoNCE is measured."""

LEAST_NATS = 0.02
"""Goodness from which on something may have been learned."""

LEARNED_STEPS = 20
"""Steps before which an encoder has learned nothing: it begins as a ridge regression."""

LAGGED_CELLS = 300
"""Cells up to which the regression beside a fit looks at lags as well."""

EMBEDDED = 100_000
"""Frames up to which all of them are embedded to be measured; of more, those that are needed."""

SHARPNESS = tuple(2.0 ** np.arange(-2, 9))
"""Inverse temperatures that are tried to find what a label allows."""


@torch.no_grad()
def measure_goodness(
    training: Training, report: Callable[[], object] = lambda: None
) -> dict[str, Goodness]:
    """Goodness of every part of a trained embedding: log N − InfoNCE on held-out blocks.

    A label that has nothing to do with the cells stays at log N (Theorem 1).

    Parameters
    ----------
    report : callable, optional
        Called before each part is measured.
    """
    report()
    unseen, seen = Blocks(training.split.held_out, training.split.block), _seen(training)
    frames = training.usable
    if len(frames) > EMBEDDED:
        frames = np.union1d(unseen.frames.anchors, seen.frames.anchors)
    embedding, cells = _embed(training, frames), _cells(training)
    few = training.settings.window == 1 and len(training.inputs.cell_ids) <= LAGGED_CELLS
    sticks = _sticks(training, training.yardstick, lags=few)
    measured = {}
    for part in training.parts:
        report()
        measured[part.name] = _goodness(training, part, embedding, unseen, seen, cells, sticks)
    return measured


def check_measurable(training: Training) -> None:
    """Raise before training if the fit could not be measured afterwards."""
    unseen = Blocks(training.split.held_out, training.split.block)
    for part in training.parts:
        blocks = _blocks(training, part, unseen)
        if part.name == TIME or training.settings.mode == "supervised":
            continue
        if training.labels[part.name].n_codes > 1:
            labels = training.labels[part.name]
            matched = [len(_matched_inside(part, labels, unseen, b)[0]) > 0 for b in blocks]
            if sum(matched) < 2:
                raise InputError(
                    f"Factor {part.name!r} has values that no two held-out blocks share: the fit "
                    "could not be measured; use fewer `blocks`, or a variable that repeats."
                )


def _seen(training: Training) -> Blocks:
    """As many stretches of training frames as held-out blocks, 20,000 frames at most."""
    number = np.full(len(training.split.block), -1, np.int64)
    stretches = np.array_split(training.split.training.anchors, training.settings.blocks)
    most = 20_000 // training.settings.blocks
    for block, anchors in enumerate(stretches):
        number[anchors[:most]] = block
    return Blocks(UsableFrames(np.flatnonzero(number >= 0), training.split.training.run), number)


def _embed(training: Training, frames: np.ndarray) -> np.ndarray:
    """Embedding in the units of the similarity at these frames, NaN elsewhere."""
    scale = training.psi.scale().detach().cpu().numpy()
    return embedded(training.encoder, training.data, frames) * scale


def _goodness(
    training: Training,
    part: Part,
    embedding: np.ndarray,
    unseen: Blocks,
    seen: Blocks,
    cells: tuple[np.ndarray, np.ndarray],
    sticks: Sequence[Yardstick],
) -> Goodness:
    labels = labels_of(training, part)
    pairs, known = (
        draw_pairs(part, labels, blocks, SIZE, training.settings.seed) for blocks in (unseen, seen)
    )
    values = _nats(training, part, embedding, pairs, known)
    if labels is None:
        learned, in_sample = values["above_chance"], training.in_sample
        return Goodness(part.name, r2=NAN, learned=learned, in_sample=in_sample, **values)
    read = _read(training, part, labels, embedding)
    beside = _decoded(sticks, labels)
    orders = trial_orders(part.name, training.labels, training.plan.courses)
    shifts = Shifts.of(labels, training.segment, orders)
    longest = (len(training.split.training.anchors) + len(training.split.held_out.anchors)) // 20
    guard = correlation_time(labels, training.segment, max(longest, 1))
    everywhere = training.yardstick.decoded_everywhere(labels, guard, beside.penalty)
    # latents that were trained on these labels at these frames tell them, whatever the cells do
    of_latents = [] if training.in_sample else [(read.frames, read.predicted)]
    chance = tested(labels, shifts, [everywhere, *of_latents], cells)
    if training.settings.mode == "supervised":
        values |= _nats_of_r2(read.r2)
    elif labels.is_discrete:
        values |= _log_odds(training, part, labels, embedding, unseen, seen)
    else:
        values["allowed"] = _allowed(labels, pairs)
        if shifts.enough:
            sample = _sample(training, part, embedding, unseen, values["scale"])
            values["null_low"], values["null_high"] = sample.null(labels, shifts)
    values["above_chance"] = bool(chance.p <= LARGEST_P)
    values["learned"] = _learned(training, values, chance.p_of_latents)
    return Goodness(
        part.name,
        r2=read.r2,
        accuracy=read.accuracy,
        ridge_r2=beside.r2,
        ridge_accuracy=beside.accuracy,
        p=chance.p,
        samples=chance.samples,
        shifts=chance.shifts,
        null=null_of(shifts),
        within=orders.within if orders else (),
        confounded=orders.confounded if orders else goes_with(part.name, training.labels),
        encoder_share=_encoder_share(training, part),
        untested=chance.untested,
        in_sample=training.in_sample,
        **values,
    )


def _learned(training: Training, values: Mapping[str, Any], p: float) -> bool:
    """Whether the encoder learned a factor, rather than began with it.

    Parameters
    ----------
    p : float
        Of decoding from its latents; NaN where that was not tested.
    """
    if training.step < LEARNED_STEPS:
        return False
    if training.settings.mode == "supervised":
        return bool(values["goodness"] > LEAST_NATS)
    null = np.nan_to_num(values.get("null_high", NAN), nan=-np.inf)
    # blocks differ in what they hold: only without other labels to compare with do they tell
    sure = values["goodness"] > 3 * values["error"] if np.isnan(p) else p <= LARGEST_P
    return bool(values["goodness"] > max(LEAST_NATS, null) and sure)


def _encoder_share(training: Training, part: Part) -> float:
    """Share of the encoder in its mean with a regression."""
    search = training.search
    return search.shares.get(part.name, 1.0) if search is not None and search.over else 1.0


def _nats(
    training: Training,
    part: Part,
    embedding: np.ndarray,
    pairs: list[Pairs],
    known: list[Pairs],
) -> dict[str, Any]:
    """Goodness in nats with a temperature that fits, its error, and the same on known pairs."""
    losses = pair_losses(training, part, pairs, embedding, SCALES)
    each = _calibrated(losses)
    scale = SCALES[int(losses.mean(1).argmin())]
    learned = pair_losses(training, part, known, embedding, (scale,))
    goodness, error = SIZE.chance - float(each.mean()), _standard_error(each)
    return {
        "infonce": float(each.mean()),
        "chance": SIZE.chance,
        "goodness": goodness,
        "error": error,
        "training": SIZE.chance - float(learned.mean()),
        "scale": scale,
        "above_chance": goodness > LEAST_NATS and goodness > 3 * error,
    }


def _nats_of_r2(r2: float) -> dict[str, Any]:
    """For regression InfoNCE has no meaning: −½ log(1 − R²) takes the place of goodness."""
    nats = float(-0.5 * np.log1p(-np.clip(r2, -50, 0.9999)))
    return {"infonce": NAN, "chance": NAN, "goodness": nats, "error": NAN, "training": NAN}


def _log_odds(
    training: Training,
    part: Part,
    labels: Labels,
    embedding: np.ndarray,
    unseen: Blocks,
    seen: Blocks,
) -> dict[str, float]:
    """Goodness of a discrete factor: nats that a logistic readout of its latents tells.

    Latents may tell values apart whose pairs are not gathered, which is what InfoNCE counts.
    """
    frames, code = _where_known(seen, labels), labels.code
    read = logistic(embedding[frames][:, part.latents], code[frames], labels.n_codes)

    def nats(among: Blocks) -> tuple[np.ndarray, float]:
        """Of each block, beyond knowing how frequent values are; and the most there are."""
        at = _where_known(among, labels)
        usual = np.log(np.bincount(code[at], minlength=labels.n_codes)[code[at]] / len(at))
        gained = read(embedding[at][:, part.latents])[np.arange(len(at)), code[at]] - usual
        block = among.number[at]
        each = [gained[block == number].mean() for number in np.unique(block)]
        return np.array(each), float(-usual.mean())

    held_out, allowed = nats(unseen)
    return {
        "goodness": float(held_out.mean()),
        "error": _standard_error(held_out) if len(held_out) > 1 else NAN,
        "training": float(nats(seen)[0].mean()),
        "allowed": allowed,
    }


def _where_known(among: Blocks, labels: Labels) -> np.ndarray:
    """Frames at which a label is known: (n,) int64."""
    anchors = among.frames.anchors
    return anchors[labels.known[anchors]]


def _allowed(labels: Labels, pairs: list[Pairs]) -> float:
    """Goodness of an embedding that is the label itself: the most that the label allows."""
    points = torch.as_tensor(labels.coordinates(), dtype=torch.float32)
    losses = []
    for each in pairs:
        # a negative may be a frame at which this label is not known
        negative = np.resize(each.negative[labels.known[each.negative]], len(each.negative))
        a, b, c = (points[frames] for frames in (each.reference, each.positive, negative))
        alike, apart = pair_similarity(a, b, "euclidean"), cross_similarity(a, c, "euclidean")
        losses.append([float(info_nce(s * alike, s * apart).mean()) for s in SHARPNESS])
    return max(SIZE.chance - float(np.mean(losses, 0).min()), 0.0) if losses else NAN


def _sample(
    training: Training, part: Part, embedding: np.ndarray, unseen: Blocks, scale: float
) -> _Sample:
    """Held-out frames for shifted labels, with ψ times a factor."""
    frames = _Sample.of(unseen)
    x = torch.as_tensor(embedding[frames], device=training.device)
    similarity = scale * in_double(training.psi.cross(part, x, x)).numpy()
    return _Sample(frames, similarity, unseen, part.offset)


def _read(training: Training, part: Part, labels: Labels, embedding: np.ndarray) -> DecodedFactor:
    """Decode a factor from its latents by regression, with lags where they help."""

    def rows(frames: np.ndarray) -> np.ndarray:
        if len(training.usable) <= EMBEDDED:
            return np.nan_to_num(embedding[frames][:, part.latents].astype(np.float64))
        found = [training.encoder(training.data[f]) for f in np.array_split(frames, 8)]
        return torch.cat(found)[:, part.latents].cpu().numpy().astype(np.float64)

    lags = training.settings.window == 1
    return _decoded(_sticks(training, Yardstick(rows, training.split), lags), labels)


def _sticks(training: Training, plain: Yardstick, lags: bool) -> list[Yardstick]:
    """Regressions on each frame alone, and with lags where they are asked for."""
    if not lags:
        return [plain]
    around = lagged(plain.columns, training.segment, spacing_of(training.rate))
    return [plain, Yardstick(around, training.split)]


def _decoded(sticks: Sequence[Yardstick], labels: Labels) -> DecodedFactor:
    """Decoded by the one that frames set aside prefer, the first if they prefer none."""
    return max((each.decoded(labels) for each in sticks), key=lambda read: read.aside_r2)


def _cells(training: Training) -> tuple[np.ndarray, np.ndarray]:
    """Evenly spaced frames in use, and the inputs of all cells there."""
    anchors = np.concatenate([training.split.training.anchors, training.split.held_out.anchors])
    frames = thinned(np.sort(anchors), TESTED_FRAMES)
    x = training.data[frames]
    if x.ndim == 3:
        x = x[:, :, training.settings.window // 2]
    return frames, x.cpu().numpy()


def _blocks(training: Training, part: Part, among: Blocks) -> np.ndarray:
    """Blocks in which the labels of a part are known somewhere."""
    blocks = among.where_known(labels_of(training, part))
    if len(blocks) < 2:
        raise InputError(
            f"The variables of factor {part.name!r} are known in {len(blocks)} of the "
            f"{training.settings.blocks} held-out blocks: at least 2 are needed."
        )
    return blocks


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))
