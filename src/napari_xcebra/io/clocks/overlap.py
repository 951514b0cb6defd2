"""Says how behaviour and frames overlap in time, and why they may not."""

from __future__ import annotations

import numpy as np

from napari_xcebra.io.clocks.events import PER_SECOND
from napari_xcebra.io.clocks.resample import Clock
from napari_xcebra.text import percent

_YEAR_2000 = 946_684_800.0
"""Seconds since 1970: later times are dates rather than seconds since a recording began."""


GAPS_TOLD = 3
"""Gaps of which a note says where they are."""
ALIKE = 1.2
"""Times as long up to which behaviour and imaging count as the same length."""
FITS = 1.25
"""Times as long up to which another unit would explain the length of behaviour."""
FAR = 10.0
"""Times as long from which on seconds are no longer believed if another unit is nearer."""
BEYOND = 100.0
"""Times as long from which on seconds are not believed without a word of the user."""
NEAR = 4.0
"""Times as long up to which such a unit is offered: a table may hold a part, or more sessions."""


def coverage(who: str, clock: Clock, n_frames: int) -> list[str]:
    """Notes on the frames that samples cover, and on the gaps between them."""
    # seconds since 1970 tell nobody where in a recording something is
    begin = clock.frames[0] if len(clock.frames) and clock.frames[0] > _YEAR_2000 else 0.0
    seen = clock.frames[clock.known] - begin
    notes = [f"{who} covers {percent(len(seen) / n_frames)} of the frames ({span(seen)})."]
    steps = np.diff(clock.times)
    gaps = np.flatnonzero(steps > clock.gap)
    if len(gaps):
        longest = gaps[np.argsort(-steps[gaps], kind="stable")][:GAPS_TOLD]
        told = ", ".join(f"{steps[g]:.3g} s at {_brief(clock.times[g] - begin)} s" for g in longest)
        many = f"{len(gaps)} gaps, the longest of" if len(gaps) > 1 else "a gap of"
        notes.append(
            f"{who} has {many} {told}: a step between samples of more than {clock.gap:.3g} s is a "
            "gap, and frames there have no value (`gap`)."
        )
    return notes


def misplaced(
    who: str, clock: Clock, *, unnamed: bool = False, trusted: bool = False
) -> str | None:
    """Why samples cannot be on the clock of the frames; None if they can.

    Parameters
    ----------
    who : str
    clock : Clock
    unnamed : bool
        Whether the source does not name the unit of its times.
    trusted : bool
        Whether the user says what it is.
    """
    apart = None if trusted else _in_another_unit(who, clock, unnamed)
    if apart is not None:
        return apart
    if clock.known.any():
        return None
    times, frames = clock.times, clock.frames
    sentence = (
        f"{who} runs from {span(times)}, the frames from {span(frames)}: they do not overlap."
    )
    if times[0] > _YEAR_2000 > frames[-1]:
        sentence += " It seems to count from 1970 (Unix time), the imaging from its first frame."
    return (
        f"{sentence} Set `offset` to the seconds between the two ({frames[0] - times[0]:.10g} if "
        "both began together), or name the unit in the header, such as time_ms."
    )


def _in_another_unit(who: str, clock: Clock, unnamed: bool) -> str | None:
    """Sentence for samples that last as long as the frames in another unit than seconds."""
    if len(clock.frames) < 2:
        return None
    ratio = _lasting(clock.times, clock.interval) / _lasting(clock.frames, clock.frame)
    lengths = {unit: ratio / factor for unit, factor in PER_SECOND.items()}
    if unnamed and not 1 / ALIKE < ratio < ALIKE:
        lengths["min"] = ratio * 60
        if _are_frames(clock.times, len(clock.frames)):
            lengths["frames"] = float(np.ptp(clock.times) + 1) / len(clock.frames)
    fits = _within(lengths, FITS)
    if unnamed and not fits and not 1 / FAR < ratio < FAR:
        fits = _within(lengths, NEAR)
    if unnamed and not fits and not 1 / BEYOND < ratio < BEYOND:
        return (
            f"{who} lasts {np.ptp(clock.times):.6g} s but the frames {np.ptp(clock.frames):.6g} s: "
            f"its times are in no unit that would fit. {_as_samples(clock, ratio)}Else set "
            "`behavior_clock` to their unit, or to s if they are seconds."
        )
    if not fits:
        return None
    names = ["frame" if unit == "frames" else f"time_{unit}" for unit in fits]
    ways = ", ".join(f"`behavior_clock` to {unit}" for unit in fits)
    return (
        f"{who} lasts {np.ptp(clock.times):.6g} s but the frames {np.ptp(clock.frames):.6g}"
        f" s: its times look like {' or '.join(fits)}. Name the unit in the header, such as "
        f"{' or '.join(names)}, or set {ways}; set `behavior_clock` to s if they are seconds."
    )


def _within(lengths: dict[str, float], most: float) -> list[str]:
    near = [unit for unit, length in lengths.items() if 1 / most < length < most]
    return sorted(near, key=lambda unit: abs(np.log(lengths[unit])))


def _are_frames(times: np.ndarray, n_frames: int) -> bool:
    """Whether times may be numbers of frames: whole, and none beyond the last frame."""
    return bool((times == np.round(times)).all() and 0 <= times[0] and times[-1] <= n_frames)


def _lasting(times: np.ndarray, step: float) -> float:
    """Seconds from the beginning of the first to the end of the last sample."""
    return max(float(times[-1] - times[0]) + step, 1e-12)


def compare_lengths(who: str, clock: Clock) -> str | None:
    """Warning for samples that last much longer or shorter than the frames."""
    if len(clock.frames) < 2 or len(clock.times) < 2:
        return None
    behavior, imaging = _lasting(clock.times, clock.interval), _lasting(clock.frames, clock.frame)
    ratio = behavior / imaging
    if 1 / ALIKE < ratio < ALIKE:
        return None
    times = f"{max(ratio, 1 / ratio):.3g} times {'longer' if ratio > 1 else 'shorter'} than"
    sentence = (
        f"{who} runs for {behavior:.6g} s ({span(clock.times)}), {times} the imaging, "
        f"{imaging:.6g} s ({span(clock.frames)}). If that is wrong, set `behavior_clock` to the "
        "unit of its times, or correct `rate`."
    )
    return f"{sentence} {_as_samples(clock, ratio)}".rstrip()


def _as_samples(clock: Clock, ratio: float) -> str:
    """What to set if times count samples, of which `ratio` would be taken a second."""
    if (clock.times != np.round(clock.times)).any() or ratio < 1:
        return ""
    return (
        "If its times count samples, set `behavior_clock` to samples and `behavior_rate` to "
        f"{ratio:.5g}, which would fit. "
    )


def lost_values(name: str, samples: np.ndarray, placed: np.ndarray, clock: Clock) -> str | None:
    """Note on discrete values that mostly vanish because they are shorter than a frame."""
    inside = clock.owner >= 0
    before, after = _shares(samples[inside]), _shares(placed)
    lost = [v for v, share in before.items() if after.get(v, 0.0) < share / 2]
    if not lost:
        return None
    worst = max(lost, key=lambda value: before[value])
    return (
        f"{name} is {worst:g} in {100 * before[worst]:.2g} % of the samples but in "
        f"{100 * after.get(worst, 0.0):.2g} % of the frames, because it rarely lasts for most of a "
        f"frame: set the kind of {name} to continuous to use its mean over each frame instead."
    )


def _shares(values: np.ndarray) -> dict[float, float]:
    """Share of the known values that each different one has."""
    import pandas as pd

    codes, different = pd.factorize(values[~np.isnan(values)])
    counts = np.bincount(codes, minlength=len(different)) / max(len(codes), 1)
    return dict(zip(np.asarray(different).tolist(), counts.tolist(), strict=True))


def span(times: np.ndarray) -> str:
    """First and last time, such as "3.2 s to 403.9 s"."""
    return f"{_brief(times[0])} s to {_brief(times[-1])} s" if len(times) else "no time"


def _brief(seconds: float) -> str:
    text = f"{seconds:.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
