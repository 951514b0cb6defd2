"""Which columns of zeros and ones mark moments, and which a state."""

import numpy as np
import pytest

from napari_xcebra.recording import looks_like_an_event


def column(*pulses: int, frames: int = 2000, length: int = 1) -> np.ndarray:
    values = np.zeros(frames)
    for first in pulses:
        values[first : first + length] = 1
    return values


RARE = tuple(range(50, 1950, 60))


@pytest.mark.parametrize("length", [1, 3])
def test_short_rare_pulses_are_events(length: int) -> None:
    assert looks_like_an_event(column(*RARE, length=length), 10.0)
    assert looks_like_an_event(column(*RARE, length=length)[:, None], 10.0)


def test_a_pulse_of_one_frame_is_short_however_slow_the_camera() -> None:
    assert looks_like_an_event(column(*RARE), 1.0)


def test_a_lasting_or_balanced_column_is_a_state() -> None:
    assert not looks_like_an_event(column(*range(0, 2000, 400), length=40), 10.0)  # 4 s each
    assert not looks_like_an_event(np.arange(2000) % 80 < 40, 10.0)
    assert not looks_like_an_event(np.arange(2000) % 2 == 0, 10.0)


def test_frames_at_which_it_is_unknown_decide_nothing() -> None:
    values = column(*RARE)
    values[:25] = np.nan
    assert looks_like_an_event(values, 10.0)


def test_other_values_and_a_single_pulse_are_no_events() -> None:
    assert not looks_like_an_event(2 * column(*RARE), 10.0)
    assert not looks_like_an_event(column(100), 10.0)
    assert not looks_like_an_event(np.zeros(100), 10.0)
    assert not looks_like_an_event(np.full(100, np.nan), 10.0)
