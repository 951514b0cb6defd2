"""Scores over time are computed once, as long as nothing they depend on changes."""

import os
from dataclasses import replace

import numpy as np
import pytest

from napari_xcebra.attribution import over_time
from napari_xcebra.attribution.over_time import FOLDER, _KeptScores, key_of

FRAMES = np.arange(200, 300)


class Counted:
    """Computes scores, and how often."""

    def __init__(self, size=1000):
        self.scores, self.calls = np.arange(size, dtype=np.float32), 0

    def __call__(self):
        self.calls += 1
        return self.scores


def files(folder):
    return sorted(path.name for path in folder.glob("*"))


def key(trained, recording, latents=slice(0, 1), method="neuron-gradient", frames=FRAMES, smooth=0):
    return key_of(trained, recording, latents, method, frames, smooth)


def test_what_was_computed_before_is_read(tmp_path):
    compute = Counted()
    for _ in range(2):
        np.testing.assert_array_equal(_KeptScores(tmp_path).get("a", compute), compute.scores)
    assert compute.calls == 1


@pytest.mark.parametrize("content", [b"", b"not an array", b"\x93NUMPY\x01\x00"])
def test_a_damaged_file_is_computed_anew(tmp_path, content):
    compute = Counted()
    (tmp_path / "a.npy").write_bytes(content)
    np.testing.assert_array_equal(_KeptScores(tmp_path).get("a", compute), compute.scores)
    _KeptScores(tmp_path).get("a", compute)
    assert compute.calls == 1


def test_a_file_of_objects_is_never_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], object), allow_pickle=True)
    assert _KeptScores(tmp_path).get("a", Counted()).dtype == np.float32


def test_what_was_not_used_for_longest_goes_first(tmp_path):
    kept = _KeptScores(tmp_path, budget=20_000)  # four files of 4,128 bytes
    for age, name in enumerate("abcd"):
        kept.get(name, Counted())
        os.utime(tmp_path / f"{name}.npy", (1000 + age, 1000 + age))
    kept.get("a", Counted())
    kept.get("e", Counted())
    assert files(tmp_path) == ["a.npy", "c.npy", "d.npy", "e.npy"]


def test_what_would_fill_the_budget_is_not_kept(tmp_path):
    _KeptScores(tmp_path, budget=10_000).get("a", Counted())
    assert files(tmp_path) == []


def test_a_folder_that_cannot_be_written_to_is_no_obstacle(tmp_path):
    (tmp_path / "file").write_text("in the way")
    compute = Counted()
    assert _KeptScores(tmp_path / "file").get("a", compute) is compute.scores


def test_nothing_is_kept_where_nobody_wants_it(monkeypatch):
    monkeypatch.setenv(FOLDER, "")
    assert over_time.kept_scores().folder is None


def test_the_same_question_has_the_same_name(trained, recording):
    assert key(trained, recording) == key(trained, replace(recording, source="elsewhere"))


def test_another_question_has_another_name(trained, recording):
    other = np.array(recording.traces)
    other[250, 0] += 1
    weights = {name: 2 * weight for name, weight in trained.weights.items()}
    excluded = np.array(recording.excluded)
    excluded[250] = True
    names = {
        key(trained, recording),
        key(trained, recording, latents=slice(1, 2)),
        key(trained, recording, method="inverted-neuron-gradient"),
        key(trained, recording, frames=FRAMES[1:]),
        key(trained, recording, smooth=1.0),
        key(replace(trained, weights=weights), recording),
        key(trained, replace(recording, traces=other)),
        key(trained, replace(recording, excluded=excluded)),
    }
    assert len(names) == 8


def test_a_change_far_from_the_stretch_does_not_matter(trained, recording):
    other = np.array(recording.traces)
    other[2500] += 1
    assert key(trained, replace(recording, traces=other)) == key(trained, recording)


def test_too_long_a_stretch_has_no_name(trained, recording, monkeypatch):
    monkeypatch.setattr(over_time, "MOST", 1000)
    assert key(trained, recording) == ""


def test_what_a_killed_window_left_half_written_goes_and_what_is_being_written_stays(tmp_path):
    left, written = tmp_path / ".key-left.npy", tmp_path / ".key-written.npy"
    for file in (left, written):
        file.write_bytes(b"half")
    os.utime(left, (0, 0))
    _KeptScores(tmp_path).get("key", lambda: np.zeros(3))
    assert sorted(tmp_path.iterdir()) == [written, tmp_path / "key.npy"]
