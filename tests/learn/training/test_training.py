"""A run reproduces itself, can be stopped and resumed, and says where it stands."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from damage import damaged_copies
from quick_settings import quick

from napari_xcebra.errors import InputError, Stopped, TrainingDiverged
from napari_xcebra.learn import Factor, Fit, FitSettings, Training, fit, fitting
from napari_xcebra.learn.data import inputs
from napari_xcebra.learn.device import embedded
from napari_xcebra.learn.training.checkpoint import Checkpoint, state_of
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.simulate import arena, field


def trained(simulation, **changes):
    training = Training(simulation.recording, simulation.factors, quick(**changes))
    list(training.run())
    return training


def weights(training):
    return {name: w.clone() for name, w in training.encoder.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


class TestSeeds:
    def test_the_same_seed_gives_identical_weights_and_history(self, simulation):
        first, second = (fit(simulation.recording, simulation.factors, quick()) for _ in "ab")
        assert same(first.weights, second.weights)
        assert {n: h.tobytes() for n, h in first.history.items()} == {
            n: h.tobytes() for n, h in second.history.items()
        }
        np.testing.assert_equal(first.goodness["z2"].as_dict(), second.goodness["z2"].as_dict())

    def test_another_seed_gives_other_weights(self, simulation):
        first, second = (trained(simulation, steps=5, seed=seed) for seed in (0, 1))
        assert not same(weights(first), weights(second))

    def test_the_random_numbers_of_the_user_are_left_alone(self, simulation):
        torch.manual_seed(5)
        np.random.seed(5)  # noqa: NPY002
        expected = torch.rand(3).tolist(), np.random.rand(3).tolist()  # noqa: NPY002
        torch.manual_seed(5)
        np.random.seed(5)  # noqa: NPY002
        fit(simulation.recording, simulation.factors, quick(steps=5, penalty="projected", settle=0))
        assert (torch.rand(3).tolist(), np.random.rand(3).tolist()) == expected  # noqa: NPY002


class TestThreads:
    @pytest.fixture(autouse=True)
    def two_threads(self):
        torch.set_num_threads(2)
        yield
        torch.set_num_threads(1)

    def test_the_number_of_threads_is_put_back_at_the_end(self, simulation):
        during = []
        fit(
            simulation.recording,
            simulation.factors,
            quick(steps=5, threads=1),
            on_progress=lambda _: during.append(torch.get_num_threads()),
        )
        assert during == [1]
        assert torch.get_num_threads() == 2

    def test_the_number_of_threads_is_put_back_after_a_stop(self, simulation):
        fit(simulation.recording, simulation.factors, quick(threads=1), stop=lambda: True)
        assert torch.get_num_threads() == 2


class StopAt:
    """Asks to stop once so many steps are done."""

    def __init__(self, step):
        self.step, self.done = step, 0

    def on_progress(self, progress):
        self.done = progress.step

    def __call__(self):
        return self.done >= self.step


def stopped_at(step, simulation, settings, **more):
    stop = StopAt(step)
    return fit(
        simulation.recording,
        simulation.factors,
        settings,
        on_progress=stop.on_progress,
        stop=stop,
        **more,
    )


class TestStopping:
    def test_a_stop_is_obeyed_at_once_and_the_fit_says_so(self, simulation):
        stopped = stopped_at(10, simulation, quick(), every=5)
        assert stopped.steps == 10
        assert stopped.notes[0] == "Stopped after 10 of 30 steps."
        assert stopped.notes[1].startswith(
            "10 steps are few: a factor at chance may not be learned"
        )
        assert stopped.history["step"].tolist() == [5, 10]
        assert set(stopped.goodness) == {"z2", "time"}

    def test_a_run_to_its_end_says_nothing_about_stopping(self, simulation):
        done = fit(simulation.recording, simulation.factors, quick(), stop=lambda: False)
        assert done.steps == 30
        assert not any("Stopped" in note for note in done.notes)

    # 60 steps: pairs are drawn for 32 steps at a time, and 20 lies within the first of them
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"temperature": "learned", "penalty": "projected"},
            {"mode": "supervised"},
            {"lambda_": "auto"},
        ],
        ids=["default", "learned temperature and projections", "supervised", "searching for λ"],
    )
    def test_a_resumed_run_ends_exactly_as_an_uninterrupted_one(
        self, simulation, tmp_path, changes
    ):
        settings, path = quick(steps=60, **changes), tmp_path / "run.safetensors"
        whole = fit(simulation.recording, simulation.factors, settings)
        part = stopped_at(20, simulation, settings, checkpoint=path)
        assert path.exists()
        assert not same(part.weights, whole.weights)
        steps = []
        resumed = fit(
            simulation.recording,
            simulation.factors,
            settings,
            checkpoint=path,
            on_progress=lambda progress: steps.append(progress.step),
        )
        assert steps[:4] == [30, 40, 50, 60]
        assert steps[-1] == whole.steps
        assert same(resumed.weights, whole.weights)
        np.testing.assert_equal(dict(resumed.history), dict(whole.history))
        np.testing.assert_array_equal(resumed.scale, whole.scale)
        assert not path.exists()  # a finished run leaves nothing to resume

    @pytest.mark.parametrize("what", ["settings", "cells", "factors", "frames", "traces"])
    def test_the_checkpoint_of_another_run_is_refused_and_left_alone(
        self, simulation, tmp_path, what
    ):
        path, settings = tmp_path / "run.safetensors", quick()
        stopped_at(10, simulation, settings, checkpoint=path)
        before = path.read_bytes()
        recording, factors = simulation.recording, simulation.factors
        if what == "settings":
            settings = quick(learning_rate=0.001)
        elif what == "cells":
            recording = replace(recording, accepted=np.arange(recording.n_cells) > 0)
        elif what == "factors":
            factors = {"z2": Factor(["z2"], latents=3)}
        elif what == "traces":
            recording = replace(recording, traces=recording.traces**3)
        else:
            short = recording.variable("z2").values[:-1]
            recording = replace(
                recording,
                traces=recording.traces[:-1],
                excluded=recording.excluded[:-1],
                times=None,
                behavior={"z2": Variable("z2", short)},
            )
        with pytest.raises(InputError) as caught:
            fit(recording, factors, settings, checkpoint=path)
        assert str(path) in str(caught.value)
        assert "another file" in str(caught.value)
        assert path.read_bytes() == before

    def test_a_broken_checkpoint_is_refused_with_a_sentence(self, simulation, tmp_path):
        path = tmp_path / "run.safetensors"
        path.write_bytes(b"not a checkpoint")
        with pytest.raises(InputError, match="cannot be read"):
            fit(simulation.recording, simulation.factors, quick(), checkpoint=path)
        assert path.read_bytes() == b"not a checkpoint"

    def test_a_damaged_checkpoint_is_never_resumed_from(self, simulation, tmp_path):
        path = tmp_path / "kept" / "run.safetensors"
        stopped_at(10, simulation, quick(), checkpoint=path)

        def restored(path):
            training = Training(simulation.recording, simulation.factors, quick())
            return Checkpoint(path, training).restore() and state_of(training)

        sound = restored(path)
        for copy in damaged_copies(path.parent, tmp_path / "copy", rounds=60):
            try:
                found = restored(copy / path.name)
            except InputError as error:
                assert str(error).endswith(".")
            else:
                assert not found or all(torch.equal(found[name], sound[name]) for name in sound)


class TestSchedule:
    SETTINGS = quick(steps=100, settle=0.2, ramp=0.3, lambda_=2.0)

    @pytest.fixture
    def training(self, simulation):
        return Training(simulation.recording, simulation.factors, self.SETTINGS)

    def test_lambda_is_zero_while_settling_then_ramps_then_holds(self, training):
        assert [training.lambda_at(step) for step in (0, 10, 20)] == [0, 0, 0]
        ramp = [training.lambda_at(step) for step in (26, 35, 44)]
        assert ramp == pytest.approx([0.4, 1.0, 1.6])
        assert [training.lambda_at(step) for step in (50, 75, 100)] == pytest.approx([2.0] * 3)

    def test_the_phase_is_what_lambda_does(self, training):
        assert {training.phase(step) for step in range(21)} == {"settling"}
        assert {training.phase(step) for step in range(21, 50)} == {"raising λ"}
        assert {training.phase(step) for step in range(51, 101)} == {"holding"}

    def test_the_penalty_takes_no_part_before_lambda_is_raised(self, simulation):
        """Until then λ changes nothing, from then on it does."""
        runs = [
            Training(simulation.recording, simulation.factors, quick(steps=20, settle=0.5, **more))
            for more in ({"lambda_": 0.0}, {"lambda_": 50.0})
        ]
        for free, held in zip(*(run.run(1) for run in runs), strict=True):
            weak, strong = (weights(run) for run in runs)
            # the step that is taken when 10 are done is still at λ = 0
            assert same(weak, strong) == (free.step <= 11)
            assert math.isnan(free.penalty)
            assert math.isnan(held.penalty) == (held.step <= 11)

    def test_the_penalty_makes_the_jacobian_smaller(self, simulation):
        free, held = (trained(simulation, settle=0, lambda_=lam) for lam in (0.0, 50.0))
        frames = free.split.training.anchors[::50]
        with torch.no_grad():
            sizes = [t.encoder.jacobian(t.data[frames]).square().mean() for t in (free, held)]
        assert sizes[1] < 0.5 * sizes[0]


def test_progress_arrives_with_finite_losses_and_the_last_step(simulation):
    reports = []
    settings = quick(steps=25)
    fit(simulation.recording, simulation.factors, settings, on_progress=reports.append)
    assert [r.step for r in reports] == [10, 20, 25]
    assert {r.steps for r in reports} == {25}
    for report in reports:
        assert set(report.loss) == {"z2", "time"}
        assert np.isfinite(list(report.loss.values())).all()
    assert reports[-1].phase == "holding"
    assert reports[-1].penalty > 0
    assert reports[-1].lambda_ == 0.05
    assert sorted(r.seconds for r in reports) == [r.seconds for r in reports]


@pytest.mark.parametrize(
    ("mode", "parts"),
    [
        ("hybrid", ("z2", "time")),
        ("behavior", ("z2",)),
        ("time", ("time",)),
        ("supervised", ("z2",)),
    ],
)
def test_every_mode_learns_the_parts_it_has(simulation, mode, parts):
    factors = None if mode == "time" else simulation.factors
    learned = fit(simulation.recording, factors, quick(mode=mode, steps=60))
    assert learned.factors == parts == tuple(learned.goodness)
    for part in parts:
        assert learned.history[part][-1] < learned.history[part][0]


def test_the_first_steps_on_thousands_of_cells_stay_within_the_bound():
    """From there the encoder would not come back."""
    rng = np.random.default_rng(0)
    latents = np.sin(np.cumsum(rng.normal(scale=0.1, size=(1200, 4)), axis=0))
    traces = np.maximum(latents @ rng.normal(size=(4, 6000)), 0).astype(np.float32)
    traces += rng.random(traces.shape, np.float32) - 0.5  # or some cells hardly ever move
    recording = Recording.from_arrays(traces, 10.0, {"position": latents[:, :2]})
    settings = quick(steps=3, batch_size=32, hidden_units=180, lambda_=0.1, settle=0.0, ramp=0.0)
    training = Training(recording, {"position": ["position"]}, settings)
    for _ in training.run(1):
        found = embedded(training.encoder, training.data, np.arange(0, 1200, 10))
        assert np.nanmax(np.abs(found)) < 0.5 * settings.bound


@pytest.mark.parametrize("window", [2, 5])
def test_a_window_of_several_frames_learns(simulation, window):
    learned = fit(simulation.recording, simulation.factors, quick(steps=60, window=window))
    assert learned.history["z2"][-1] < learned.history["z2"][0]
    embedding = learned.embed(simulation.recording)
    # frames at the ends have no whole window
    assert np.isnan(embedding).any(1).sum() == window - 1


@pytest.mark.parametrize("similarity", ["dot", "power"])
def test_every_similarity_learns(simulation, similarity):
    # from scratch: a regression, which it begins as otherwise, is close to the end already
    settings = quick(steps=120, similarity=similarity, readout=0.0)
    learned = fit(simulation.recording, simulation.factors, settings)
    assert learned.history["z2"][-1] < learned.history["z2"][0]


@pytest.fixture(scope="module")
def labelled(recording):
    """The box model with variables of every kind made from z2."""
    z2 = np.array(recording.variable("z2").values)
    missing = z2[:, 0].copy()
    missing[np.arange(len(z2)) // 50 % 3 == 0] = np.nan
    variables = {
        "odour": Variable("odour", np.digitize(z2[:, 0], [-0.3, 0.3]), "discrete"),
        "angle": Variable("angle", np.arctan2(z2[:, 1], z2[:, 0]), "circular"),
        "speed": Variable("speed", z2[:, 1]),
        "missing": Variable("missing", missing),
    }
    return replace(recording, behavior=variables)


@pytest.mark.parametrize("mode", ["hybrid", "supervised"])
@pytest.mark.parametrize(
    "names", [["odour"], ["angle"], ["odour", "speed"], ["missing"], ["missing", "odour", "angle"]]
)
def test_labels_of_every_kind_and_with_gaps_learn(labelled, names, mode):
    learned = fit(labelled, {"label": names}, quick(steps=40, mode=mode))
    assert learned.history["label"][-1] < learned.history["label"][0]
    assert np.isfinite(learned.goodness["label"].goodness)
    assert np.isfinite(learned.goodness["label"].r2)


def test_several_factors_share_one_embedding_without_overlap(labelled):
    factors = {"odour": "odour", "heading": ["angle"], "speed": Factor(["speed"], latents=2)}
    training = Training(labelled, factors, quick(time_latents=3))
    taken = [(part.name, part.start, part.stop) for part in training.parts]
    assert taken == [("odour", 0, 2), ("heading", 2, 4), ("speed", 4, 6), ("time", 6, 9)]
    assert training.encoder.latents == 9


def test_a_learned_temperature_moves_and_a_fixed_one_does_not(simulation):
    learned = trained(simulation, temperature="learned")
    fixed = trained(simulation, temperature="fixed")
    assert (learned.psi.log_temperature.detach().abs() > 1e-3).all()
    assert fixed.psi.log_temperature.detach().tolist() == [0.0, 0.0]


def test_a_run_that_diverges_ends_with_a_sentence(simulation):
    training = Training(simulation.recording, simulation.factors, quick())
    with torch.no_grad():
        next(training.encoder.parameters())[0, 0] = float("nan")
    with pytest.raises(TrainingDiverged) as caught:
        list(training.run(every=5))
    assert "diverged at step 5" in str(caught.value)
    assert "learning_rate" in str(caught.value)
    assert training.history["step"] == []


def test_cells_that_are_constant_or_not_accepted_are_not_fed_to_the_encoder(recording):
    traces = np.array(recording.traces)
    traces[:, 4] = 1.5
    changed = replace(recording, traces=traces, accepted=np.arange(recording.n_cells) != 7)
    training = Training(changed, {"z2": ["z2"]}, quick())
    ids = np.asarray(recording.cell_ids)
    assert training.inputs.cell_ids.tolist() == np.delete(ids, [4, 7]).tolist()
    everyone = Training(changed, {"z2": ["z2"]}, quick(accepted_only=False))
    assert everyone.inputs.cell_ids.tolist() == np.delete(ids, [4]).tolist()


class TestBeginning:
    """With a readout, a factor begins as the ridge regression of its labels."""

    def test_latents_begin_exactly_as_the_regression(self, simulation):
        training = Training(simulation.recording, simulation.factors, quick(bound=1e4))
        regression = training.regressions["z2"]
        frames = training.split.held_out.anchors
        with torch.no_grad():
            found = training.encoder(training.data[frames])[:, training.parts[0].latents]
        np.testing.assert_allclose(found, regression(training.rows(frames)), atol=0.02)

    @pytest.mark.parametrize(
        "without", [{"readout": 0.0}, {"mode": "supervised"}, {"mode": "time"}, {"window": 3}]
    )
    def test_without_a_readout_or_with_a_window_it_begins_at_random(self, simulation, without):
        assert (
            Training(simulation.recording, simulation.factors, quick(**without)).regressions == {}
        )

    def test_an_encoder_without_room_for_pairs_of_units_begins_at_random(self, simulation):
        narrow = Training(simulation.recording, simulation.factors, quick(hidden_units=2))
        list(narrow.run())
        assert narrow.step == 30

    @pytest.mark.parametrize("latents", [1, 3])
    def test_a_factor_may_have_fewer_or_more_latents_than_dimensions(self, simulation, latents):
        factors = {"z2": Factor(["z2"], latents=latents)}
        learned = fit(simulation.recording, factors, quick(steps=20, lambda_="auto"))
        assert learned.embed(simulation.recording).shape[1] == latents + 2
        assert np.isfinite(learned.goodness["z2"].r2)

    @pytest.mark.parametrize("lambda_", [0.05, "auto"])
    def test_a_factor_of_many_values_learns(self, recording, lambda_):
        z2 = np.array(recording.variable("z2").values)
        codes = np.digitize(z2[:, 0], [-0.6, -0.3, 0, 0.3, 0.6]) * 2 + (z2[:, 1] > 0)
        values = replace(recording, behavior={"cell": Variable("cell", codes, "discrete")})
        learned = fit(values, {"cell": ["cell"]}, quick(steps=30, blocks=4, lambda_=lambda_))
        assert learned.part("cell").stop == 8
        assert np.isfinite(learned.goodness["cell"].accuracy)


def test_a_batch_is_lowered_to_half_of_the_training_frames_and_that_is_said(simulation):
    learned = fit(simulation.recording, simulation.factors, quick(steps=5, batch_size=4096))
    training = Training(simulation.recording, simulation.factors, quick(batch_size=4096))
    assert training.batch_size == len(training.sampler.references) // 2
    assert training.settings.negatives == training.batch_size
    lowered = f"`batch_size` was lowered from 4096 to {training.batch_size}"
    assert any(lowered in note for note in learned.notes)
    usual = fit(simulation.recording, simulation.factors, quick(steps=5))
    assert not any("lowered" in note for note in usual.notes)


def test_a_short_recording_takes_fewer_steps_unless_all_are_asked_for(simulation):
    short = Training(simulation.recording, simulation.factors, quick(steps=1000))
    assert 150 <= short.steps < 1000
    whole = quick(steps=1000, stop_when_settled=False)
    assert Training(simulation.recording, simulation.factors, whole).steps == 1000


class TestAsPublished:
    """`FitSettings.paper()` trains what the paper writes, and nothing beside it."""

    @pytest.fixture
    def published(self, simulation):
        settings = FitSettings.paper(steps=12, batch_size=64, settle=0.5, ramp=0.25)
        training = Training(simulation.recording, simulation.factors, settings)
        list(training.run())
        return training

    def test_temperatures_and_weights_in_the_time_objective_stay_at_one(self, published):
        assert published.psi.log_time_weight.exp().tolist() == [1, 1]
        assert published.psi.scale().tolist() == [1] * 4

    def test_nothing_is_searched_averaged_or_begun_as_a_regression(self, published):
        assert published.search is None and published.settled is None
        assert published.regressions == {} and published.hide == 0
        assert published.inputs.filter.does_nothing

    def test_the_network_is_that_of_the_reference(self, published):
        shapes = [tuple(w.shape) for w in published.encoder.weights]
        cells, latents = shapes[0][1], shapes[-1][0]
        assert [outputs for outputs, _ in shapes] == [
            30 * latents, 30 * latents, 10 * latents, latents,
        ]  # fmt: skip
        assert shapes[0] == (30 * latents, cells)
        assert published.encoder.clips and published.encoder.bound == 5

    def test_one_lambda_is_raised_from_zero_on_the_whole_batch(self, published):
        ramp = published.settings.ramp * published.settings.steps
        start = int(published.settings.settle * published.settings.steps)
        assert published.lambdas_at(start) == [0, 0]
        assert published.lambdas_at(int(start + ramp)) == [0.1, 0.1]
        assert len(published.objective._penalty_directions(published.psi.scale(), 0)) == 64

    def test_a_fit_of_it_is_loaded_with_its_clip(self, simulation, tmp_path):
        settings = FitSettings.paper(steps=5, batch_size=64)
        done = fit(simulation.recording, simulation.factors, settings)
        again = Fit.load(done.save(tmp_path / "fit"))
        assert again.encoder().clips
        np.testing.assert_array_equal(
            again.embed(simulation.recording), done.embed(simulation.recording)
        )


def test_the_search_of_lambda_extinguishes_no_factor():
    """What a given λ of 0.1 leaves of a faint variable, one that is found leaves as well."""
    simulation = field(arena(frames=4000, seed=41), seed=41)
    bare = {"readout": 0.0, "hide": 0.0, "deconvolve": False, "time_weights": "fixed"}
    bare |= {"steps": 600, "stop_when_settled": False}
    given, searched = (
        fit(simulation.recording, simulation.factors, FitSettings(lambda_=lambda_, **bare))
        for lambda_ in (0.1, "auto")
    )
    for factor in simulation.factors:
        assert searched.goodness[factor].r2 > given.goodness[factor].r2 - 0.15, factor


class TestLargeRecordings:
    """What takes minutes of a large recording is reported, and can be stopped."""

    def test_preparing_and_measuring_are_reported(self, simulation, monkeypatch):
        monkeypatch.setattr(fitting, "REPORTED_BYTES", 0)
        reports = []
        fit(simulation.recording, simulation.factors, quick(steps=3), on_progress=reports.append)
        phases = [each.phase for each in reports]
        assert (phases[0], phases[-1]) == ("preparing", "measuring")
        assert reports[-1].step == 3

    def test_one_is_stopped_before_its_first_step(self, simulation, monkeypatch):
        monkeypatch.setattr(fitting, "REPORTED_BYTES", 0)
        with pytest.raises(Stopped, match="before the first step"):
            fit(simulation.recording, simulation.factors, quick(steps=3), stop=lambda: True)

    def test_inputs_beyond_what_memory_may_hold_are_in_a_file(self, simulation, monkeypatch):
        usual = weights(trained(simulation, steps=3))
        monkeypatch.setattr(inputs, "MOST_IN_MEMORY", 0)
        assert isinstance(inputs._room_for(10, 3), np.memmap)
        assert same(weights(trained(simulation, steps=3)), usual)
