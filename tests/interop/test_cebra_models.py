"""Models of the `cebra` package open as fits, are written back, and nothing in a file is run."""

import io
import os
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from cebra_recordings import SAVED, session

from napari_xcebra import (
    Fit,
    FitSettings,
    Recording,
    attribute,
    fit,
    open_cebra,
    save_cebra,
    significance,
)
from napari_xcebra.attribution.methods import METHODS
from napari_xcebra.cli import main
from napari_xcebra.errors import InputError
from napari_xcebra.interop.cebra_files import read_cebra_model
from napari_xcebra.learn.adaptation import adapt
from napari_xcebra.learn.model.cebra_encoder import ARCHITECTURES, CebraEncoder
from napari_xcebra.simulate import box

FACTORS = {"speed": ["speed"]}
STORED = slice(100, 150)
"""Frames of the stored embeddings."""


def recording_of(cells: int, seed: int) -> Recording:
    traces, label = session(cells, seed)
    return Recording.from_arrays(traces, 10.0, {"speed": label})


@pytest.fixture(scope="module")
def recording():
    return recording_of(8, 0)


@pytest.fixture(scope="module")
def opened(recording):
    return open_cebra(SAVED / "window.pt", recording, FACTORS)


@pytest.fixture(scope="module")
def embeddings():
    with np.load(SAVED / "embeddings.npz") as stored:
        return dict(stored)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_has_one_embedding_a_window_and_its_gradient(architecture):
    encoder = CebraEncoder(architecture, 5, 4, 3).double()
    shape = (2, 5) if encoder.window == 1 else (2, 5, encoder.window)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with torch.no_grad():
        jacobian, before = encoder.jacobian(x), encoder(x)
        step = torch.zeros_like(x)
        step[:, 1] = 1e-6
        moved = (encoder(x + step) - encoder(x - step)) / 2e-6
    assert before.shape == (2, 3)
    along = jacobian[:, :, 1] if encoder.window == 1 else jacobian[:, :, 1].sum(2)
    torch.testing.assert_close(along, moved, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "cells", "seed", "how"),
    [
        ("window", 8, 0, {"factors": FACTORS}),
        ("time", 8, 0, {}),
        ("sessions", 6, 2, {"factors": FACTORS}),
    ],
)
def test_the_embedding_is_that_of_cebra(name, cells, seed, how, embeddings):
    recording = recording_of(cells, seed)
    found = open_cebra(SAVED / f"{name}.pt", recording, **how, standardised=False)
    np.testing.assert_allclose(found.embed(recording)[STORED], embeddings[name], atol=1e-5)


def test_traces_are_read_as_the_model_reads_them_best(recording, embeddings):
    found = open_cebra(SAVED / "z-scored.pt", recording, FACTORS)
    np.testing.assert_allclose(found.embed(recording)[STORED], embeddings["scored"], atol=1e-4)
    assert any("Traces are given to it z-scored" in note for note in found.notes)


def test_traces_or_labels_unlike_those_of_its_training_are_told(opened, recording):
    assert not any("Its loss is" in note for note in opened.notes)
    other = replace(recording, behavior=recording_of(8, 7).behavior)
    found = open_cebra(SAVED / "window.pt", other, FACTORS)
    assert any("it was trained on other traces" in note for note in found.notes)
    # an encoder that has learned these very labels tells them; the cells do not
    assert found.goodness["speed"].strength == "at chance"


def test_every_map_is_made_of_an_opened_model(opened, recording):
    carried = np.arange(8) % 2 == 0
    for method in METHODS:
        scores = np.asarray(attribute(opened, recording, method).score("speed"))
        assert scores.shape == (8,)
        assert np.isfinite(scores).all(), method
        if method in ("generative-gradient", "conditional-encoding"):
            assert scores[carried].min() > scores[~carried].max()


def test_cells_of_an_opened_model_are_tested(opened, recording):
    p = significance(opened, recording).p("speed")
    assert p[::2].max() < 0.01 < p[1::2].min()


def test_goodness_says_that_it_is_not_held_out(opened):
    goodness = opened.goodness["speed"]
    assert goodness.in_sample
    assert goodness.strength == "clear"
    assert "on frames it may have been trained on" in goodness.verdict
    assert "held-out" not in goodness.verdict
    assert "nothing was trained here" in opened.notes[0]


def test_an_opened_model_is_saved_and_loaded_as_a_fit(opened, recording, tmp_path):
    again = Fit.load(opened.save(tmp_path / "fit"))
    assert again.digest == opened.digest
    assert again.goodness == opened.goodness or again.summary() == opened.summary()
    np.testing.assert_array_equal(again.embed(recording), opened.embed(recording))


def test_an_opened_model_is_not_trained_on(opened, recording):
    with pytest.raises(InputError, match="opened from cebra"):
        adapt(opened, recording)


def test_latents_of_each_factor_are_chosen_and_the_rest_is_unobserved(recording):
    found = open_cebra(SAVED / "window.pt", recording, FACTORS, latents={"speed": [2]})
    assert found.factors == ("speed", "time")
    whole = open_cebra(SAVED / "window.pt", recording, FACTORS)
    turned = found.embed(recording)[STORED]
    np.testing.assert_array_equal(turned, whole.embed(recording)[STORED][:, [2, 0, 1]])


@pytest.mark.parametrize(
    ("name", "how", "words"),
    [
        ("time", {"factors": FACTORS}, "trained on time alone"),
        ("solver", {"factors": FACTORS}, "without the name of their architecture"),
        ("solver", {"architecture": "offset10-model"}, "does not hold weights of offset10-model"),
        ("solver", {"architecture": "offset11-model"}, "no architecture 'offset11-model'"),
        ("window", {"architecture": "offset1-model"}, "holds the architecture offset5-model"),
        ("sessions", {"factors": FACTORS}, "of which 0 fit this recording"),
        ("window", {"factors": {"a": ["speed"], "b": ["speed"]}}, "which of its 3 latents"),
        ("window", {"factors": FACTORS, "latents": {"speed": [3]}}, "has latents 0 to 2"),
    ],
)
def test_what_does_not_fit_is_a_sentence(name, how, words, recording):
    with pytest.raises(InputError, match=words):
        open_cebra(SAVED / f"{name}.pt", recording, **how)


def test_a_model_of_other_cells_is_refused(recording):
    fewer = replace(recording, accepted=np.arange(8) < 7)
    assert open_cebra(SAVED / "window.pt", fewer, FACTORS).inputs.cell_ids.size == 8
    with pytest.raises(InputError, match="trained on 8 cells, and the recording has 9"):
        open_cebra(SAVED / "window.pt", recording_of(9, 0), FACTORS)


def test_another_number_of_frames_is_told(recording):
    shorter = Recording.from_arrays(
        recording.traces[:1500], 10.0, {"speed": recording.variable("speed").values[:1500, 0]}
    )
    found = open_cebra(SAVED / "window.pt", shorter, FACTORS)
    assert any("trained on 1,600 frames" in note for note in found.notes)


def test_the_state_of_a_solver_opens_with_its_architecture(recording, embeddings):
    found = open_cebra(
        SAVED / "solver.pt", recording, architecture="offset1-model", standardised=False
    )
    np.testing.assert_allclose(found.embed(recording)[STORED], embeddings["time"], atol=1e-5)


def test_a_constant_cell_does_no_harm(recording):
    traces = np.array(recording.traces)
    traces[:, 3] = 5.0
    still = Recording.from_arrays(traces, 10.0, dict(recording.behavior))
    found = open_cebra(SAVED / "window.pt", still, FACTORS)
    scores = attribute(found, still, "generative-gradient").score("speed")
    assert np.nan_to_num(scores)[3] <= np.nan_to_num(scores)[::2].min()


# ---------------------------------------------------------------- nothing is run


class _Touch:
    """Pickled, it asks for a file to be made when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def pt_of(pickled: bytes, path):
    """A file as torch writes it, around a pickle."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/byteorder", b"little")
        archive.writestr("archive/version", b"3\n")
    return path


def crafted(tmp_path) -> dict[str, bytes]:
    ran = tmp_path / "ran"
    harmful = _Touch(ran)
    named = {
        name: f"c{module}\n{name}\n(S'touch {ran}'\ntR.".encode()
        for module, name in (
            ("builtins", "eval"),
            ("builtins", "getattr"),
            ("torch", "load"),
            ("torch.hub", "load"),
            ("numpy", "load"),
            ("subprocess", "check_output"),
            ("napari_xcebra.interop.cebra_files", "read_cebra_model"),
        )
    }
    return {
        "plain": pickle.dumps(harmful, 2),
        "inside": pickle.dumps({"args": {}, "state": {}, "state_dict": {"model": harmful}}, 2),
        "an estimator": b"ccebra.integrations.sklearn.cebra\nCEBRA\n)\x81}b.",
    } | named


def test_a_crafted_file_is_refused_in_a_sentence_and_runs_nothing(tmp_path):
    for name, content in crafted(tmp_path).items():
        for path in (
            pt_of(content, tmp_path / f"{name}.pt"),
            tmp_path / f"{name}-bare.pt",
        ):
            if not path.exists():
                path.write_bytes(content)
            with pytest.raises(InputError) as refused:
                read_cebra_model(path)
            assert path.name in str(refused.value)
            assert not (tmp_path / "ran").exists(), name


def test_a_whole_object_is_refused_with_what_to_do(tmp_path):
    path = pt_of(crafted(tmp_path)["an estimator"], tmp_path / "old.pt")
    with pytest.raises(InputError, match='save it again with backend="sklearn"'):
        read_cebra_model(path)


@pytest.mark.parametrize(
    "content",
    [
        [1, 2],
        {"args": {}, "state": {}, "state_dict": {}},
        {"model": {"net.0.weight": 3}},
        {"model": {"net.0.weight": torch.zeros(1).expand(10**6, 10**6)}},
        {"model": {"net.1.weight": torch.zeros(4, 3, device="meta")}},
        {"model": {}},
        {"model": {"net.weight": torch.zeros(2, 2), "net.bias": torch.zeros(2)}},
    ],
)
def test_what_is_no_model_is_refused_in_a_sentence(content, tmp_path):
    torch.save(content, tmp_path / "odd.pt")
    with pytest.raises(InputError, match=r"odd\.pt is not a model that cebra saved"):
        read_cebra_model(tmp_path / "odd.pt", "offset1-model")


def test_a_damaged_file_is_refused_in_a_sentence(tmp_path):
    whole = (SAVED / "window.pt").read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 30):
        (tmp_path / "cut.pt").write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"cut\.pt"):
            read_cebra_model(tmp_path / "cut.pt")


# ---------------------------------------------------------------- and back


def test_a_model_is_written_back_with_the_weights_it_had(recording, tmp_path):
    before = read_cebra_model(SAVED / "window.pt")
    found = open_cebra(SAVED / "window.pt", recording, FACTORS, latents={"speed": [1]})
    after = read_cebra_model(save_cebra(found, tmp_path / "again.pt"))
    assert after.architecture == before.architecture
    for name, weights in before.sessions[0].items():
        np.testing.assert_array_equal(after.sessions[0][name], weights)
    again = open_cebra(tmp_path / "again.pt", recording, FACTORS)
    assert again.settings.temperature_value == found.settings.temperature_value


def test_a_fit_as_published_is_written_for_cebra(tmp_path):
    simulation = box(frames=3000)
    settings = FitSettings.paper(steps=20, batch_size=128)
    ours = fit(simulation.recording, simulation.factors, settings)
    path = save_cebra(ours, tmp_path / "ours.pt")
    theirs = open_cebra(path, simulation.recording, simulation.factors, standardised=False)
    np.testing.assert_allclose(
        theirs.embed(simulation.recording), ours.embed(simulation.recording), atol=1e-4
    )


def test_a_fit_that_cebra_has_no_network_for_is_refused():
    simulation = box(frames=3000)
    ours = fit(simulation.recording, simulation.factors, FitSettings(steps=5))
    with pytest.raises(InputError, match="no network like that of this fit"):
        save_cebra(ours, io.BytesIO())


def test_the_command_line_opens_a_model(tmp_path, capsys):
    traces, label = session(8, 0)
    np.savez(tmp_path / "recording.npz", traces=traces, rate=10.0)
    np.savetxt(tmp_path / "speed.csv", label, header="speed", comments="")
    words = ["run", str(tmp_path / "recording.npz"), "--behavior", str(tmp_path / "speed.csv")]
    words += ["--rate", "10", "--factor", "speed=speed", "--latents", "speed=0-2", "--quiet"]
    words += ["--model", str(SAVED / "window.pt"), "--out", str(tmp_path / "out")]
    assert main(words) == 0, capsys.readouterr().err
    assert Fit.load(tmp_path / "out" / "fit").architecture == "offset5-model"
    assert main([*words, "--model", str(SAVED / "solver.pt")]) == 2
    assert "--architecture offset10-model" in capsys.readouterr().err
