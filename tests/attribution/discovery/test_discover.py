"""What nobody recorded is found, counted and named; what is not there is not claimed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import norm

from napari_xcebra import HiddenFactors, Recording, Variable, discover
from napari_xcebra.cli import main
from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.io import open_recording, save_recording

RATE, FRAMES, CELLS = 5.0, 3000, 40


def slow(rng, tau, count=1):
    """Independent slow courses of mean 0 and variance 1: (frames, count)."""
    keep = np.exp(-1 / tau)
    noise = rng.normal(size=(FRAMES + 500, count))
    found = lfilter([np.sqrt(1 - keep**2)], [1, -keep], noise, axis=0)[500:]
    return (found - found.mean(0)) / found.std(0)


def imaged(rng, rates):
    """Traces as an indicator shows them, with noise: (frames, cells)."""
    spikes = rng.poisson(0.3 * np.clip(rates, 0, None))
    shown = lfilter([1], [1, -np.exp(-1 / 5)], spikes, axis=0)
    return (shown + 0.3 * shown.std(0) * rng.normal(size=shown.shape)).astype(np.float32)


def shown_by_indicator(course):
    """A course as the decay of the indicator shows it."""
    return lfilter([1], [1, -np.exp(-1 / 5)], course, axis=0)


def rising(course, cells, rng):
    """Rates of cells that rise or fall with a course."""
    return 2 / (1 + np.exp(-2 * course * rng.choice([-1, 1], cells)))


@pytest.fixture(scope="module")
def two():
    """Two hidden courses, 16 cells each, and 8 cells of none; the first course is recorded."""
    rng = np.random.default_rng(0)
    courses = slow(rng, 20, 2)
    rates = np.hstack([rising(courses[:, [i]], 16, rng) for i in (0, 1)] + [np.ones((FRAMES, 8))])
    speed = Variable("speed", courses[:, 0])
    recording = Recording(imaged(rng, rates), RATE, {"speed": speed}, cell_ids=np.arange(40) + 100)
    return recording, shown_by_indicator(courses)


@pytest.fixture(scope="module")
def found(two):
    return discover(two[0])


def likeness(found, courses):
    """|Correlation| of each course found with each true one."""
    own = [np.nan_to_num(found.course(name)[:, 0]) for name in found.names]
    return np.abs(np.corrcoef(np.array(own), courses.T)[: len(own), len(own) :])


class TestCount:
    def test_two_states_are_two_factors_each_with_its_course_and_cells(self, found, two):
        match = likeness(found, two[1])
        assert len(found) == 2
        assert match.max(1).min() > 0.9
        assert match.min(1).max() < 0.3
        for name, own in zip(found.names, match.argmax(1), strict=True):
            cells = set(found.cells(name) - 100)
            carried = set(range(16 * own, 16 * own + 16))
            assert carried <= cells
            assert len(cells - carried) <= 2

    def test_a_linear_method_that_does_as_well_is_named(self, found):
        assert "factor analysis does as well" in found.summary()
        assert {"PCA", "ICA", "factor analysis", "discover"} == set(found.baselines)

    def test_what_goes_with_a_recorded_variable_says_so(self, found, two):
        follows = [each.follows for each in found.factors]
        assert sorted(follows) == [(), ("speed",)]
        own = found.names[likeness(found, two[1])[:, 0].argmax()]
        assert "follows speed (R² 0." in found.sentence(own)

    def test_beyond_a_variable_only_the_other_state_is_left(self, two):
        recording, courses = two
        beyond = discover(recording, given=["speed"])
        assert len(beyond) == 1
        assert likeness(beyond, courses)[0, 1] > 0.9
        assert "beyond speed" in beyond.summary()

    def test_cells_tuned_to_one_state_are_one_factor(self):
        rng = np.random.default_rng(1)
        state = slow(rng, 20)
        place = norm.cdf(state)
        rates = 3 * np.exp(-((place - np.linspace(0, 1, CELLS)) ** 2) / 0.03)
        found = discover(Recording(imaged(rng, rates), RATE))
        assert len(found) == 1
        assert found.factors[0].tuned
        assert likeness(found, shown_by_indicator(place)).max() > 0.9
        linear = [share for name, (share, _) in found.baselines.items() if name != "discover"]
        assert found.baselines["discover"][0] > 1.1 * max(linear)
        assert "does as well" not in found.summary()


class TestNothing:
    @pytest.mark.parametrize("seed", range(3))
    def test_slow_cells_of_their_own_share_nothing(self, seed):
        rng = np.random.default_rng(seed)
        rates = np.exp(slow(rng, 40, CELLS) / 2)
        found = discover(Recording(imaged(rng, rates), RATE))
        assert len(found) == 0
        assert "no hidden factor was found" in found.summary()
        assert list(found.cell_table().columns) == ["factor", "cell", "score", "p", "q", "sign"]

    def test_bleaching_is_called_what_it_is(self):
        rng = np.random.default_rng(3)
        fading = np.exp(-np.arange(FRAMES)[:, None] / FRAMES * rng.uniform(0.5, 1.5, CELLS))
        traces = (imaged(rng, np.ones((FRAMES, CELLS))) + 5) * fading
        found = discover(Recording(traces.astype(np.float32), RATE))
        assert all("bleaching" in each.suspicion for each in found.factors)

    def test_movement_of_the_tissue_is_called_what_it_is(self):
        rng = np.random.default_rng(4)
        moved = np.zeros((FRAMES, 1))
        moved[rng.integers(0, FRAMES, 60)] = rng.uniform(2, 5, (60, 1))
        traces = imaged(rng, np.ones((FRAMES, CELLS))) - moved * rng.uniform(0.5, 1, CELLS)
        found = discover(Recording(traces.astype(np.float32), RATE))
        assert all("movement" in each.suspicion for each in found.factors)

    def test_too_short_a_recording_is_refused_in_a_sentence(self, two):
        short = Recording(np.asarray(two[0].traces)[:100], RATE)
        with pytest.raises(InputError, match="to discover what they share, at least"):
            discover(short)

    def test_it_stops_when_asked(self, two):
        with pytest.raises(Stopped):
            discover(two[0], stop=lambda: True)


class TestUse:
    def test_a_named_factor_is_a_variable_like_any_other(self, found, two):
        named = found.renamed("hidden 1", "arousal")
        assert named.names == ("arousal", "hidden 2")
        recording = two[0].with_behavior(*named.variables())
        assert recording.variable("arousal").values.shape == (FRAMES, 1)
        with pytest.raises(InputError, match="no name"):
            named.renamed("hidden 2", "arousal")

    def test_frames_and_rois_that_are_not_used_have_no_values(self, two):
        excluded, accepted = np.zeros(FRAMES, bool), np.ones(CELLS, bool)
        excluded[1000:1200], accepted[5] = True, False
        found = discover(replace(two[0], excluded=excluded, accepted=accepted))
        assert np.isnan(found.courses[1010:1190]).all()
        assert np.isfinite(found.courses[~excluded]).all()
        assert np.isnan(found.scores[:, 5]).all()
        assert np.isfinite(np.delete(found.scores, 5, axis=1)).all()

    def test_its_map_is_one_like_others(self, found, two):
        scores = found.attribution(two[0])
        table = scores.table("hidden 1")
        assert scores.was_found("hidden 1")
        assert set(table.loc[table["q"] <= 0.1, "cell"]) == set(found.cells("hidden 1"))

    def test_it_is_the_same_after_a_file(self, found, two, tmp_path):
        again = HiddenFactors.load(found.save(tmp_path / "hidden.npz"), two[0])
        assert again.factors == found.factors
        assert again.baselines == found.baselines
        for name in ("courses", "scores", "p_values", "q", "signs", "cell_ids"):
            np.testing.assert_array_equal(getattr(again, name), getattr(found, name))

    def test_a_file_of_another_recording_is_refused(self, found, two, tmp_path):
        path = found.save(tmp_path / "hidden.npz")
        other = replace(two[0], traces=np.asarray(two[0].traces) + 1)
        with pytest.raises(InputError, match=r"hidden\.npz"):
            HiddenFactors.load(path, other)

    def test_nothing_in_a_file_is_run(self, tmp_path):
        class Harmful:
            def __reduce__(self):
                return (exec, ("raise SystemExit('run')",))

        np.savez(tmp_path / "bad.npz", about=np.array([Harmful()], dtype=object))
        with pytest.raises(InputError, match="does not hold hidden factors"):
            HiddenFactors.load(tmp_path / "bad.npz")
        (tmp_path / "cut.npz").write_bytes(b"PK\3\4 no archive")
        with pytest.raises(InputError, match="does not hold hidden factors"):
            HiddenFactors.load(tmp_path / "cut.npz")

    def test_the_command_writes_courses_that_open_as_behaviour(self, two, tmp_path, capsys):
        path = save_recording(two[0], tmp_path / "recording.npz")
        out = tmp_path / "out"
        asked = ["--given", "speed", "--name", "hidden 1=arousal", "--out", str(out)]
        assert main(["discover", str(path), *asked]) == 0
        assert "1 hidden factor beyond speed." in capsys.readouterr().out
        opened = open_recording(path, behavior=out / "hidden-courses.csv")
        found = HiddenFactors.load(out / "hidden.npz", two[0])
        course = found.course("arousal")[:, 0]
        np.testing.assert_allclose(opened.variable("arousal").values[:, 0], course, atol=1e-3)
