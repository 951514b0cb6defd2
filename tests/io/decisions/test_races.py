"""Two windows write at once, or one is killed: no decision and no original is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RACING = Path(__file__).with_name("racing.py")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")


def outcomes(*words):
    """How often what happened, if nothing went wrong."""
    command = [sys.executable, str(RACING), *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert not ran.stderr
    said = json.loads(ran.stdout)
    assert said["wrong"] == []
    return said["counts"]


@pytest.mark.parametrize("kind", ["suite2p", "caiman"])
@pytest.mark.parametrize("processes", [2, 4])
def test_programs_that_write_and_restore_at_once_take_turns(tmp_path, kind, processes):
    counts = outcomes("race", kind, tmp_path, "--processes", processes, "--rounds", 12)
    assert counts["export done"] > 3
    assert counts.get("restore done", 0) + counts.get("export refused", 0) > 3


@pytest.mark.parametrize("kind", ["suite2p", "caiman"])
def test_one_that_is_killed_among_others_leaves_them_whole_files(tmp_path, kind):
    counts = outcomes("race", kind, tmp_path, "--processes", 3, "--rounds", 12, "--kills")
    assert counts.get("export killed", 0) + counts.get("restore killed", 0) > 0


@pytest.mark.parametrize("kind, stride", [("suite2p", 7), ("caiman", 3)])
def test_a_program_killed_at_any_step_is_undone_or_complete(tmp_path, kind, stride):
    counts = outcomes("steps", kind, tmp_path, "--stride", stride)
    assert counts["export killed"] > 10 and counts["repair killed"] > 2
    if kind == "suite2p":  # some of its files were new, and the recording said so
        assert counts["mixed"] > 2
