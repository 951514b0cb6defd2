"""Files that pynapple saves open as the recording, or the behaviour, that they are."""

import pickle
import zipfile

import numpy as np
import pynapple as nap
import pytest

from napari_xcebra import Recording
from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording

RNG = np.random.default_rng(0)
TIMES = 2 + np.arange(300) / 10
TRACES = RNG.random((300, 4))
REGION = np.array(["V1", "V1", "LM", "V1"])


@pytest.fixture
def saved(tmp_path):
    def save(value, name):
        value.save(str(tmp_path / f"{name}.npz"))
        return tmp_path / f"{name}.npz"

    return save


@pytest.fixture
def traces(saved):
    return saved(nap.TsdFrame(t=TIMES, d=TRACES, columns=[3, 5, 8, 9]), "traces")


def test_a_frame_is_a_recording_with_ids_clock_and_properties_of_cells(saved):
    about = {"depth": np.arange(4.0), "region": REGION, "accepted": np.array([1, 1, 0, 1], bool)}
    frame = nap.TsdFrame(t=TIMES, d=TRACES, columns=[3, 5, 8, 9], metadata=about)
    for recording in (open_recording(saved(frame, "a")), Recording.from_pynapple(frame)):
        np.testing.assert_allclose(recording.traces, TRACES, rtol=1e-6)
        np.testing.assert_allclose(recording.times, TIMES)
        assert recording.cell_ids.tolist() == [3, 5, 8, 9]
        assert recording.accepted.tolist() == [True, True, False, True]
        assert recording.cells["depth"].tolist() == [0, 1, 2, 3]
        assert recording.cells["region"].tolist() == REGION.tolist()
        assert recording.rate == pytest.approx(10)


def test_columns_named_by_words_are_names_of_cells_although_they_are_pickled(saved):
    path = saved(nap.TsdFrame(t=TIMES, d=TRACES, columns=["a", "b", "c", "d"]), "a")
    assert open_recording(path).cells["name"].tolist() == ["a", "b", "c", "d"]


def test_epochs_of_the_time_support_are_segments(saved):
    support = nap.IntervalSet([2, 20], [10, 40])
    path = saved(nap.TsdFrame(t=TIMES, d=TRACES, time_support=support), "a")
    recording = open_recording(path)
    assert np.asarray(recording.starts).tolist() == [0, 81]


def test_behaviour_is_named_by_its_file_and_none_of_its_parts_becomes_a_variable(saved, traces):
    files = [
        saved(nap.Tsd(t=TIMES, d=np.sin(TIMES)), "speed"),
        saved(nap.TsdFrame(t=TIMES, d=TRACES[:, :2], columns=["x", "y"]), "place"),
        saved(nap.Ts(t=TIMES[::30]), "licks"),
        saved(nap.TsGroup({2: nap.Ts(TIMES[::40]), 5: nap.Ts(TIMES[::50])}), "tones"),
        saved(nap.IntervalSet([2, 12], [8, 20], metadata={"side": ["left", "right"]}), "trials"),
    ]
    recording = open_recording(traces, files)
    assert set(recording.behavior) == {"speed", "place", "licks", "tones_2", "tones_5", "side"}
    np.testing.assert_allclose(recording.behavior["speed"].values[:, 0], np.sin(TIMES), atol=1e-6)
    np.testing.assert_allclose(recording.behavior["place"].values, TRACES[:, :2], atol=1e-6)
    assert recording.behavior["licks"].kind == "event"
    assert len(recording.trials.first) == 2


def test_what_is_no_frame_is_refused_as_a_recording(saved):
    with pytest.raises(InputError, match="is a Tsd of pynapple"):
        open_recording(saved(nap.Tsd(t=TIMES, d=TRACES[:, 0]), "a"))


class Trap:
    sprung = False

    def __reduce__(self):
        return (setattr, (Trap, "sprung", True))


def test_pickled_names_run_nothing(traces, tmp_path):
    with zipfile.ZipFile(traces) as old, zipfile.ZipFile(tmp_path / "b.npz", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "_metadata.npy":
                content = content[: content.index(b"\x80")] + pickle.dumps(Trap())
            new.writestr(name, content)
    with pytest.raises(InputError, match="nothing in it was run"):
        open_recording(tmp_path / "b.npz")
    assert not Trap.sprung
