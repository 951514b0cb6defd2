"""A short recording is said to be short."""

from quick_settings import quick

from napari_xcebra.learn import fit
from napari_xcebra.learn.training.start import ENOUGH, independent_samples, note_on_length
from napari_xcebra.simulate import box


def test_smoothing_takes_samples_away_and_none_takes_none():
    assert independent_samples(5000, 0.0) == 5000
    assert independent_samples(5000, 0.1) == 5000
    assert 500 < independent_samples(5000, 2.5) < 600


def test_the_note_is_one_sentence_with_the_number_and_what_to_do():
    assert note_on_length(ENOUGH, 0.0) is None
    note = note_on_length(ENOUGH - 1, 0.0)
    assert f"about {ENOUGH - 1} independent" in note
    assert "keep to what both routes agree on" in note
    assert note.count(". ") == 0 and note.endswith(".")


def test_a_fit_of_few_frames_carries_the_note_and_one_of_many_does_not():
    simulation = box(frames=3000)
    short = fit(simulation.recording, simulation.factors, quick(smoothing=0.25))
    assert any("This recording is short" in note for note in short.notes)
    long = fit(simulation.recording, simulation.factors, quick(smoothing=0.0))
    assert not any("This recording is short" in note for note in long.notes)
