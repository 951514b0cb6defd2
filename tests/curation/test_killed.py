"""Real processes: killed while deciding, and holding the lock."""

import json
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

from napari_xcebra.curation import Curation, Journal, JournalInUse

N_CELLS = 300
DECIDING = f"""
import random, sys
from napari_xcebra.curation import STATUSES, Curation, Journal

draw = random.Random(int(sys.argv[2]))
curation = Curation(range({N_CELLS}), journal=Journal(sys.argv[1], curator="Child"))
while True:
    cells = draw.sample(range({N_CELLS}), draw.choice([1, 1, 1, 40]))
    status = draw.choice(STATUSES)
    curation.decide(cells, status)
    print(cells, status, sep="|", flush=True)
"""
HOLDING = """
import sys
from napari_xcebra.curation import Curation, Journal

curation = Curation(range(3), journal=Journal(sys.argv[1], curator="Child"))
curation.decide(1, "accepted")
print("open", flush=True)
sys.stdin.read()
"""


@contextmanager
def child(program, *arguments):
    command = [sys.executable, "-c", program, *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_every_acknowledged_decision_survives_kill_9(tmp_path):
    draw = random.Random(5)
    journals = [tmp_path / f"{seed}.jsonl" for seed in range(3)]
    with child(DECIDING, journals[0], 0) as a, child(DECIDING, journals[1], 1) as b, \
            child(DECIDING, journals[2], 2) as c:  # fmt: skip
        for process, path in zip((a, b, c), journals, strict=True):
            acknowledged = [process.stdout.readline()]
            time.sleep(draw.uniform(0, 0.3))
            process.send_signal(signal.SIGKILL)
            acknowledged += process.stdout.readlines()
            _check(path, [line for line in acknowledged if line.endswith("\n")])


def _check(path, acknowledged):
    """What stands in the journal is what was acknowledged, and at most one decision more."""
    expected = np.zeros(N_CELLS, np.int8)
    for line in acknowledged:
        cells, status = line.strip().split("|")
        expected[json.loads(cells)] = ["undecided", "accepted", "rejected"].index(status)
    with Curation(range(N_CELLS), journal=Journal(path)) as curation:
        states = [curation.status]
        curation.undo()
        states.append(curation.status)
    assert any(np.array_equal(state, expected) for state in states)


def test_a_second_process_is_told_who_has_the_journal_until_that_one_is_killed(tmp_path):
    path = tmp_path / "journal.jsonl"
    with child(HOLDING, path) as process:
        assert process.stdout.readline() == "open\n"
        with pytest.raises(JournalInUse, match=rf"by Child \(process {process.pid} on"):
            Journal(path, curator="Ann")
        looking = Curation(range(3), journal=Journal(path, read_only=True))
        assert looking.status_of(1) == "accepted"
        process.kill()
        process.wait()
        with Curation(range(3), journal=Journal(path, curator="Ann")) as curation:
            assert curation.status_of(1) == "accepted"
            curation.decide(2, "rejected")
