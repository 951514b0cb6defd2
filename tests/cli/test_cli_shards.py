"""A sweep in several jobs that know nothing of each other, as a SLURM array starts them."""

import shutil
import subprocess
import sys

import pandas as pd
import pytest

from napari_xcebra.batch import Shard, SweepFolder
from napari_xcebra.batch.plan import read_sweep
from napari_xcebra.cli import main
from napari_xcebra.io import save_recording
from napari_xcebra.simulate import field

NAPARI_XCEBRA = [sys.executable, "-c", "import sys; from napari_xcebra.cli import main; "
                 "sys.exit(main())"]  # fmt: skip


@pytest.fixture
def config(tmp_path):
    recording = field(cells=16, frames=1500, shape=(96, 96), junk=0).recording
    save_recording(recording, tmp_path / "recording.npz")
    path = tmp_path / "sweep.toml"
    path.write_text(
        "[[recordings]]\npath = 'recording.npz'\n[factors]\nplace = ['position']\n"
        "[settings]\nsteps = 5\nbatch_size = 64\nseed = [0, 1, 2]\n"
    )
    return path


def test_shards_that_run_at_once_make_one_sweep_and_collecting_says_what_is_missing(
    config, tmp_path, capsys
):
    out = tmp_path / "out"
    command = ["sweep", str(config), "--out", str(out), "--processes", "1"]
    jobs = [
        subprocess.Popen([*NAPARI_XCEBRA, *command, "--shard", f"{number}/2"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for number in (1, 2)
    ]  # fmt: skip
    said = [job.communicate(timeout=200) for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], said
    assert [text.partition(",")[0] for text, _ in said] == ["2 runs", "1 run"]
    kept = SweepFolder(out)
    ids = [member.id for member in kept.members]
    assert sorted(path.name for path in (out / "members").iterdir()) == sorted(ids)
    assert not (out / "summary.csv").exists()
    assert not list(out.glob(".shard-*"))

    collect = ["sweep", "--out", str(out), "--collect"]
    assert main(collect) == 0
    assert pd.read_csv(out / "summary.csv")["status"].tolist() == ["finished"] * 3
    shutil.rmtree(kept.home(ids[1]))
    capsys.readouterr()
    assert main(collect) == 2
    assert f"1 of 3 runs are missing: {ids[1]} (seed 1)." in capsys.readouterr().err
    # and a shard that has nothing to do ends at once
    assert main([*command, "--shard", "1/2"]) == 0
    assert kept.status(ids[1]) == "waiting"


@pytest.mark.parametrize(
    ("shard", "why"), [("2", "as in 2/4"), ("0/3", "from 1 to 3"), ("4/3", "from 1 to 3")]
)
def test_a_shard_that_cannot_be_gets_a_sentence(config, tmp_path, capsys, shard, why):
    assert main(["sweep", str(config), "--out", str(tmp_path / "out"), "--shard", shard]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_one_shard_is_not_run_twice_at_once(config, tmp_path, capsys):
    out = tmp_path / "out"
    sweep = ["sweep", str(config), "--out", str(out), "--processes", "1", "--shard", "4/4"]
    with SweepFolder(out).shared(read_sweep(config), Shard(4, 4)):
        assert main(sweep) == 2
    assert "is running shard 4 of 4" in capsys.readouterr().err
    assert main(sweep) == 0  # more shards than runs: there is nothing to do
