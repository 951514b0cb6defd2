"""Jobs in a real child process: they report, end in one way, and leave nothing behind."""

import gc
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import odd_calls
import psutil
import pytest
from odd_calls import odd

from napari_xcebra.attribution import attribute, significance
from napari_xcebra.attribution.methods import OVER_TIME
from napari_xcebra.jobs import (
    Advanced,
    Cancelled,
    Failed,
    Finished,
    Sketched,
    Started,
    Worker,
    sending,
    tasks,
)
from napari_xcebra.jobs.child import _Reporter
from napari_xcebra.jobs.events import Counter
from napari_xcebra.learn import fit

TIMEOUT = 120

signals = pytest.mark.skipif(os.name != "posix", reason="no signals here")


def outcome(job, kind=Finished):
    ended = job.wait(TIMEOUT)
    assert isinstance(ended, kind), ended
    return ended


def until(condition):
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_for_report(job):
    next(event for event in job.events() if isinstance(event, Advanced))


@pytest.fixture(scope="module")
def trained(simulation, quick):
    return fit(simulation.recording, simulation.factors, quick)


def test_a_fit_is_the_same_as_in_this_process(worker, simulation, quick, trained):
    job = worker.submit(tasks.FIT(simulation.recording, simulation.factors, quick))
    first, *between, last = list(job.events())
    assert first == Started()
    assert all(isinstance(event, Advanced) for event in between)
    assert isinstance(last, Finished)
    assert job.outcome is last
    for name, weight in trained.weights.items():
        np.testing.assert_allclose(last.result.weights[name], weight, rtol=1e-3, atol=1e-5)
    for name, values in trained.history.items():
        np.testing.assert_allclose(last.result.history[name], values, rtol=1e-3)
    assert last.result.goodness["z2"].goodness == pytest.approx(trained.goodness["z2"].goodness)


def test_progress_says_where_training_stands(worker, simulation, quick):
    job = worker.submit(tasks.FIT(simulation.recording, simulation.factors, quick))
    reports = [event for event in job.events() if isinstance(event, Advanced)]
    last = reports[-1]
    assert (last.done, last.total, last.unit, last.phase) == (40, 40, "step", "holding")
    assert set(last.loss) == {"z2", "time"}
    assert last.lambda_ == pytest.approx(0.05)
    assert last.penalty > 0
    assert last.seconds_left == 0
    assert [report.done for report in reports] == sorted({report.done for report in reports})


def test_a_map_is_shown_before_training_is_through(worker, simulation, quick):
    call = tasks.FIT(simulation.recording, simulation.factors, quick, live="conditional-encoding")
    events = list(worker.submit(call).events())
    sketch = next(event for event in events if isinstance(event, Sketched))
    assert events.index(sketch) < len(events) - 1
    assert (sketch.done, sketch.total) == (10, 40)
    assert sketch.attribution.method == "conditional-encoding"
    assert np.isfinite(sketch.attribution.score("z2")).all()
    assert events[-1].result.steps == 40


def test_an_attribution_is_the_same_and_belongs_to_this_process(worker, recording, trained):
    frames = slice(100, 1500)
    job = worker.submit(
        tasks.ATTRIBUTE(trained, recording, "neuron-gradient", frames=frames, aggregate="max")
    )
    reports = [event for event in job.events() if isinstance(event, Advanced)]
    result = outcome(job).result
    expected = attribute(
        trained, recording, "neuron-gradient", frames=frames, aggregate="max"
    ).latent_scores
    np.testing.assert_allclose(result.latent_scores, expected, rtol=1e-4)
    assert result.fit is trained
    assert result.recording is recording
    assert (reports[-1].done, reports[-1].total, reports[-1].unit) == (1400, 1400, "frame")


def test_a_test_of_significance_is_the_same(worker, recording, trained):
    job = worker.submit(tasks.SIGNIFICANCE(trained, recording, shifts=50))
    reports = [event for event in job.events() if isinstance(event, Advanced)]
    expected = significance(trained, recording, shifts=50)
    np.testing.assert_allclose(outcome(job).result.p_values, expected.p_values, atol=0.05)
    assert (reports[-1].done, reports[-1].unit) == (recording.n_frames, "frame")


def test_scores_over_time_are_those_of_the_attribution(worker, recording, trained):
    frames = slice(50, 90)
    job = worker.submit(tasks.OVER_TIME(trained, recording, "time", frames, OVER_TIME, smooth=1.5))
    expected = attribute(trained, recording).over_time("time", frames, smooth=1.5)
    np.testing.assert_allclose(outcome(job).result, expected, rtol=1e-3)


def test_scores_over_time_are_computed_once(worker, recording, trained):
    folder = Path(os.environ["NAPARI_XCEBRA_CACHE"])
    call = tasks.OVER_TIME(trained, recording, "z2", slice(700, 760), "neuron-gradient")
    before = len(list(folder.glob("*.npy")))
    first, again = (outcome(worker.submit(call)).result for _ in range(2))
    assert len(list(folder.glob("*.npy"))) == before + 1
    np.testing.assert_array_equal(first, again)


def test_scores_over_time_of_the_latents_average_to_those_of_the_factor(worker, recording, trained):
    frames = np.array([3, 700, 701])
    jobs = [
        worker.submit(tasks.OVER_TIME(trained, recording, "time", frames, OVER_TIME, latent=latent))
        for latent in (0, 1, None)
    ]
    first, second, mean = (outcome(job).result for job in jobs)
    np.testing.assert_allclose((first + second) / 2, mean, rtol=1e-4)
    job = worker.submit(tasks.OVER_TIME(trained, recording, "time", frames, OVER_TIME, latent=2))
    assert "has no latent 2: it has 0 to 1" in outcome(job, Failed).sentence


def test_an_embedding_of_some_frames_is_part_of_the_whole(worker, recording, trained):
    job = worker.submit(tasks.EMBED(trained, recording, slice(10, 500, 7)))
    expected = trained.embed(recording)[10:500:7]
    np.testing.assert_allclose(outcome(job).result, expected, rtol=1e-3, atol=1e-4)


def test_a_sentence_to_the_user_passes_through_unchanged(worker, recording):
    job = worker.submit(tasks.FIT(recording, {"mood": ["mood"]}))
    expected = Failed("There is no variable 'mood' in this recording; it has: z2.")
    assert list(job.events())[-1] == expected


@pytest.mark.parametrize("greedy", [odd_calls.no_memory, odd_calls.no_torch_memory])
def test_the_end_of_memory_says_what_to_try(worker, greedy):
    sentence = outcome(worker.submit(odd(greedy)), Failed).sentence
    assert sentence == "An odd call ran out of memory: ask for less."


def test_an_unexpected_error_is_one_line_and_its_details_hold_the_rest(worker, capfd):
    failed = outcome(worker.submit(odd(odd_calls.noisy)), Failed)
    assert failed.sentence == (
        "An odd call failed unexpectedly (ZeroDivisionError: by zero): please report it."
    )
    assert "odd_calls.py" in failed.details
    until(lambda: "complained" in outcome(worker.submit(odd(odd_calls.noisy)), Failed).details)
    assert capfd.readouterr() == ("", "")


def test_a_result_that_cannot_be_handed_over_is_a_failure(worker, recording):
    assert (
        "Handing over the result" in outcome(worker.submit(odd(odd_calls.secret)), Failed).sentence
    )
    outcome(worker.submit(odd(odd_calls.look, recording)))


def test_a_task_that_cannot_be_pickled_is_a_failure_and_the_child_stays(worker, recording):
    pid, *_ = outcome(worker.submit(odd(odd_calls.look, recording))).result
    outcome(worker.submit(odd(odd_calls.echo, lambda: None)), Failed)
    assert outcome(worker.submit(odd(odd_calls.look, recording))).result[0] == pid


def test_a_large_result_arrives(worker):
    result = outcome(worker.submit(odd(odd_calls.big, sending.FILE_FROM))).result
    np.testing.assert_array_equal(result, np.arange(sending.FILE_FROM // 8))


def test_the_recording_is_sent_once(worker, recording):
    _, where, total = outcome(worker.submit(odd(odd_calls.look, recording))).result
    assert total == pytest.approx(float(np.sum(recording.traces, dtype=np.float64)))
    curated = replace(recording, accepted=np.arange(recording.n_cells) > 0)
    assert outcome(worker.submit(odd(odd_calls.look, recording))).result[1] == where
    assert outcome(worker.submit(odd(odd_calls.look, curated))).result[1] == where


def test_a_full_disk_is_a_sentence_and_the_next_job_works(worker, recording, monkeypatch):
    traces = np.array(recording.traces)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(sending, "FILE_FROM", traces.nbytes)
        patch.setattr(sending, "_written", full)
        failed = outcome(
            worker.submit(odd(odd_calls.look, replace(recording, traces=traces))), Failed
        )
    assert "the disk is full" in failed.sentence
    changed = outcome(worker.submit(odd(odd_calls.look, replace(recording, traces=traces)))).result
    assert changed[2] == pytest.approx(float(traces.sum(dtype=np.float64)))


def test_a_stopped_training_hands_over_what_it_learned(worker, simulation, quick):
    settings = replace(quick, steps=100_000)
    job = worker.submit(tasks.FIT(simulation.recording, simulation.factors, settings))
    wait_for_report(job)
    pid = worker.pid
    job.cancel(grace=TIMEOUT)
    result = outcome(job, Cancelled).result
    assert 0 < result.steps < 100_000
    assert worker.pid == pid


@signals
def test_an_interrupt_from_the_terminal_does_not_reach_the_child(worker, simulation, quick):
    job = worker.submit(tasks.FIT(simulation.recording, simulation.factors, quick))
    wait_for_report(job)
    os.kill(worker.pid, signal.SIGINT)
    outcome(job)


def test_jobs_queue_and_one_that_waits_is_cancelled_at_once(light_worker, recording):
    deaf = light_worker.submit(odd(odd_calls.deaf))
    wait_for_report(deaf)
    waiting = light_worker.submit(odd(odd_calls.look, recording))
    after = light_worker.submit(odd(odd_calls.look, recording))
    waiting.cancel()
    assert list(waiting.events()) == [Cancelled()]
    assert deaf.outcome is None
    pid = light_worker.pid
    deaf.cancel()
    assert outcome(deaf, Cancelled) == Cancelled()
    assert outcome(after).result[0] != pid
    until(lambda: is_gone(pid))


@signals
def test_a_killed_child_is_one_failure_and_the_next_job_works(light_worker, recording):
    deaf = light_worker.submit(odd(odd_calls.deaf))
    after = light_worker.submit(odd(odd_calls.look, recording))
    wait_for_report(deaf)
    pid = light_worker.pid
    os.kill(pid, signal.SIGKILL)
    failed = [event for event in deaf.events() if isinstance(event, Failed)]
    assert [failure.sentence for failure in failed] == [
        "An odd call was killed by the system (SIGKILL), most likely because the computer ran "
        "out of memory: close other programs, ask for less."
    ]
    seen_by, _, total = outcome(after).result
    assert seen_by != pid
    assert total == pytest.approx(float(np.sum(recording.traces, dtype=np.float64)))
    assert is_gone(pid)


@signals
def test_a_crash_says_how_and_where(light_worker):
    failed = outcome(light_worker.submit(odd(odd_calls.crash)), Failed)
    assert "SIGABRT" in failed.sentence
    assert "odd_calls.py" in failed.details


@pytest.mark.skipif(sys.platform != "linux", reason="others give it back by themselves")
def test_an_idle_child_gives_back_memory_that_lies_below_what_it_keeps(no_torch, recording):
    with Worker() as worker:
        outcome(worker.submit(odd(odd_calls.look, recording)))
        before = psutil.Process(worker.pid).memory_info().rss
        had = outcome(worker.submit(odd(odd_calls.scattered))).result
        until(lambda: psutil.Process(worker.pid).memory_info().rss - before < had / 2)


def test_a_child_that_holds_much_memory_is_replaced(no_torch, recording):
    with Worker(memory_limit=1) as worker:
        pid, *_ = outcome(worker.submit(odd(odd_calls.look, recording))).result
        until(lambda: worker.pid not in (None, pid))
        until(lambda: is_gone(pid))


def test_a_child_without_torch_says_so(light_worker, simulation):
    failed = outcome(
        light_worker.submit(tasks.FIT(simulation.recording, simulation.factors)), Failed
    )
    assert "no torch in this test" in failed.sentence


def test_closing_ends_everything_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    worker = Worker()
    job = worker.submit(odd(odd_calls.deaf))
    until(lambda: worker.pid is not None)
    pid = worker.pid
    worker.close()
    assert list(job.events()) == [Cancelled()]
    assert is_gone(pid)
    assert worker.pid is None
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RuntimeError, match="closed"):
        worker.submit(odd(odd_calls.deaf))
    worker.close()


def test_a_worker_that_nobody_holds_ends_its_child():
    def started():
        worker = Worker()
        worker.start()
        until(lambda: worker.pid is not None)
        return worker.pid

    pid = started()
    gc.collect()
    until(lambda: is_gone(pid))


def test_a_python_that_cannot_be_started_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.executable", str(tmp_path / "no-python"))
    with Worker() as worker:
        failed = outcome(worker.submit(odd(odd_calls.deaf)), Failed)
    assert "could not be started" in failed.sentence


def test_a_python_without_the_package_is_a_sentence(monkeypatch):
    monkeypatch.setattr("sys.path", [])
    with Worker() as worker:
        failed = outcome(worker.submit(odd(odd_calls.deaf)), Failed)
    assert "could not be started (exit code 1)" in failed.sentence
    assert "ModuleNotFoundError" in failed.details


class Window:
    def __init__(self):
        self.told = []

    def tell(self, event):
        self.told.append(event)


def test_of_many_reports_the_first_the_last_and_changes_of_phase_come_through():
    window = Window()
    report = _Reporter(window)
    for step in range(1, 1001):
        report(Advanced(step, 1000, "step", phase="settling" if step < 500 else "holding"))
    steps = [event.done for event in window.told]
    assert {1, 500, 1000} <= set(steps)
    assert len(steps) < 100


def seconds_left(monkeypatch, *done):
    """What is told of 1000 steps, two seconds between two reports."""
    clock = iter([10.0, 12.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    told = []
    count = Counter(told.append, "step")
    for steps in done:
        count(steps, 1000)
    return [advanced.seconds_left for advanced in told]


def test_the_time_left_is_unknown_at_the_first_report(monkeypatch):
    assert np.isnan(seconds_left(monkeypatch, 500)).all()


def test_a_resumed_run_is_timed_from_where_it_went_on(monkeypatch):
    assert seconds_left(monkeypatch, 500, 600)[1] == 8.0
