"""Sweeps on a real Dask cluster: workers die, the scheduler is lost, and nothing else is."""

import os
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import odd_members
import pytest
from clusters import RealCluster, free_port

from napari_xcebra.batch import cluster as cluster_module
from napari_xcebra.batch import run_sweep, running
from napari_xcebra.batch.cluster import Cluster, ClusterFound, _read_slurm, _slurm_jobs, look_at
from napari_xcebra.batch.running import _run_member
from napari_xcebra.cli import main
from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.io import save_recording
from napari_xcebra.jobs.calls import CallFailed
from napari_xcebra.learn import fit

TIMEOUT = 120

# Dask leaves its sockets and loops to the garbage collector
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    made = RealCluster(tmp_path_factory.mktemp("dask"), workers=3)
    yield made
    made.kill()


@pytest.fixture
def real(shared):
    """A cluster with three workers, whatever other tests did to it."""
    shared.mend()
    return shared


@pytest.fixture
def cluster(real):
    with Cluster(real.address) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def begun(two_seeds, tmp_path_factory):
    """Members without torch; and a function that tells which of them were begun, in order."""
    folder = tmp_path_factory.mktemp("begun")
    result = folder.parent / "result.pickle"
    member = two_seeds.members[0]
    result.write_bytes(pickle.dumps(_run_member(two_seeds.recordings["box"], member)))
    return folder, partial(odd_members.light, folder, result)


@pytest.fixture
def light(begun, monkeypatch):
    folder, stand_in = begun
    for file in folder.iterdir():
        file.unlink()
    monkeypatch.setattr(running, "_run_member", stand_in)
    return lambda: [path.name[:10] for path in sorted(folder.iterdir(), key=_when)]


def _when(path):
    return int(path.name.rpartition("-")[2])


def many(two_seeds, count):
    return replace(two_seeds, grid={"seed": list(range(count))})


class Stop:
    """Does something once so many members are finished; never stops the sweep."""

    def __init__(self, after, do):
        self.after, self.do, self.finished = after, do, 0

    def heard(self, at):
        self.finished = at.finished

    def __call__(self):
        if self.finished >= self.after and self.do is not None:
            do, self.do = self.do, None
            do()
        return False


def test_a_member_comes_to_the_same_on_a_cluster(cluster, two_seeds, simulation, tmp_path):
    told = []
    one = replace(two_seeds, grid={"seed": [1]})
    folder = run_sweep(one, tmp_path, cluster, on_progress=told.append)
    kept = folder.run(one.members[0].id).fit
    expected = fit(simulation.recording, simulation.factors, one.members[0].settings)
    for name, weight in expected.weights.items():
        np.testing.assert_allclose(kept.weights[name], weight, rtol=1e-3, atol=1e-5)
    assert told[-1].finished == 1


def test_the_command_line_runs_on_a_cluster(real, simulation, tmp_path, capsys, light):
    save_recording(simulation.recording, tmp_path / "box.npz")
    config = tmp_path / "sweep.toml"
    config.write_text("[[recordings]]\npath = 'box.npz'\n[factors]\nz2 = 'z2'\n")
    out = tmp_path / "out"
    assert main(["sweep", str(config), "--cluster", real.address, "--out", str(out)]) == 0
    assert f"1 run on {real.address}: 3 workers, 3 threads" in capsys.readouterr().out
    assert len(light()) == 1
    assert (out / "summary.csv").exists()


def test_a_recording_is_sent_to_a_worker_once(cluster, simulation):
    calls = [cluster.submit(odd_members.seen, simulation.recording) for _ in range(9)]
    found = {call.result(TIMEOUT) for call in calls}
    assert len(found) == len({pid for pid, _ in found}) <= 3  # the same object each time


def test_a_worker_with_several_threads_runs_one_call_at_a_time(tmp_path):
    real = RealCluster(tmp_path, workers=1, threads=2)
    try:
        with Cluster(real.address) as cluster:
            calls = [cluster.submit(odd_members.begun_and_ended) for _ in range(3)]
            times = sorted(call.result(TIMEOUT) for call in calls)
    finally:
        real.kill()
    assert all(ended <= begun for (_, ended), (begun, _) in pairwise(times))


def test_an_error_comes_back_as_its_sentence(cluster):
    with pytest.raises(CallFailed, match=r"^This cannot be done: do something else\.$"):
        cluster.submit(odd_members.refuse).result(TIMEOUT)


def test_what_the_workers_do_not_have_is_told(cluster, monkeypatch, tmp_path):
    (tmp_path / "only_here.py").write_text("def function():\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    with pytest.raises(CallFailed, match="same versions of Python and napari-xcebra"):
        cluster.submit(only_here.function).result(TIMEOUT)


def test_a_call_that_is_stopped_ends_on_its_worker(cluster, tmp_path):
    running = cluster.submit(odd_members.until_stopped, tmp_path)
    until((tmp_path / "begun").exists)
    running.stop()
    with pytest.raises(Stopped):
        running.result(TIMEOUT)
    until((tmp_path / "stopped").exists)


def test_a_cluster_is_looked_at_before_it_is_used(real):
    found = look_at(real.address)
    assert (found.workers, found.threads, found.without) == (3, 3, 0)
    assert found.usable
    assert found.sentence.startswith("3 workers, 3 threads, ")
    assert found.sentence.endswith("Versions are the same as here.")


def test_what_a_cluster_lacks_is_said():
    lacking = ClusterFound("tcp://here:1", 2, 4, 2**30, 2, ("python 3.9 there, 3.11 here",))
    assert not lacking.usable
    assert "None of them has napari-xcebra" in lacking.sentence
    assert "Versions differ: python 3.9 there, 3.11 here." in lacking.sentence
    assert "no workers" in ClusterFound("tcp://here:1", 0, 0, 0).sentence


def test_where_no_scheduler_answers_there_is_a_sentence():
    with pytest.raises(InputError, match="No Dask scheduler answers at tcp://127"):
        look_at(f"127.0.0.1:{free_port()}", timeout=0.5)


@pytest.mark.skipif(os.name != "posix", reason="no signals here")
def test_a_killed_worker_costs_nothing_but_time(real, cluster, two_seeds, light, tmp_path):
    sweep = many(two_seeds, 8)
    stop = Stop(2, real.workers[0].kill)
    folder = run_sweep(sweep, tmp_path, cluster, on_progress=stop.heard, stop=stop)
    assert stop.do is None
    assert [folder.status(each.id) for each in sweep.members] == ["finished"] * 8
    assert folder.summary()["id"].is_unique
    # at most what was under way on the dead worker was begun again
    assert set(light()) == {member.id for member in sweep.members}
    assert len(light()) <= 8 + 2


def test_a_scheduler_that_is_lost_is_told_and_the_rest_goes_on_elsewhere(
    real, two_seeds, light, tmp_path
):
    sweep = many(two_seeds, 6)
    end = Stop(1, real.kill)
    with Cluster(real.address) as cluster:
        folder = run_sweep(sweep, tmp_path, cluster, on_progress=end.heard, stop=end)
    assert set(folder.summary()["status"]) == {"finished", "failed"}
    assert (
        "The connection to the Dask scheduler was lost"
        in folder.summary()["failure"].dropna().iloc[0]
    )
    finished = [each.id for each in sweep.members if folder.status(each.id) == "finished"]
    with ThreadPoolExecutor(2) as here:
        run_sweep(sweep, tmp_path, here)
    assert set(folder.summary()["status"]) == {"finished"}
    assert all(light().count(each) == 1 for each in finished)


def test_a_slurm_file_becomes_the_job_script_it_asks_for(tmp_path):
    path = tmp_path / "slurm.yaml"
    path.write_text(
        """
jobqueue:
  slurm:
    queue: normal
    account: imaging
    cores: 4
    memory: 16GB
    walltime: "04:00:00"
    job_script_prologue: ["source ~/venv/bin/activate"]
    jobs: 3
"""
    )
    asked = _read_slurm(path)
    assert asked.pop("jobs") == 3
    jobs = _slurm_jobs(asked, path)
    try:
        script = jobs.job_script()
    finally:
        jobs.close()
    for line in ("-p normal", "-A imaging", "--cpus-per-task=4", "-t 04:00:00"):
        assert f"#SBATCH {line}\n" in script
    assert "source ~/venv/bin/activate\n" in script
    # a process for every core, each with one thread
    assert "--nthreads 1 " in script
    assert "--nworkers 4 " in script


LAUGHS = "\n".join(
    [
        "a0: &a0 [x, x]",
        *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 40)),
        "jobqueue: {slurm: {cores: 4, memory: 4GB, jobs: *a39}}",
    ]
)
"""Written out, it has 2 to the power of 40 entries."""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("jobqueue: {pbs: {}}", "no part jobqueue: slurm:"),
        ("- a list", "no part jobqueue: slurm:"),
        ("jobqueue: {slurm: {cores: 4}}", "does not say jobqueue.slurm.memory"),
        ("jobqueue: {slurm: {cores: 4, memory: 4GB, jobs: some}}", "jobs: 'some'"),
        (LAUGHS, "too long for the description of a job"),
        ("jobqueue: {slurm: [", "not valid YAML"),
    ],
)
def test_a_mistake_in_a_slurm_file_is_named(tmp_path, text, sentence):
    (tmp_path / "slurm.yaml").write_text(text)
    with pytest.raises(InputError, match=sentence):
        _read_slurm(tmp_path / "slurm.yaml")


def until(condition):
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_without_dask_the_way_to_get_it_is_told(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'napari-xcebra\[cluster\]'"):
        cluster_module._connect("somewhere")
