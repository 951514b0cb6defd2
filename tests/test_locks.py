"""Two programs do not write to one folder at once."""

import errno
import subprocess
import sys
import textwrap

import pytest
from filelock import FileLock

from napari_xcebra.errors import InputError
from napari_xcebra.locks import LOCK, locked

COUNTING = """
    import sys
    from pathlib import Path
    from napari_xcebra.locks import locked
    count = Path(sys.argv[1]) / "count"
    for _ in range(100):
        with locked(count.parent, patience=60):
            count.write_text(str(int(count.read_text()) + 1))
"""


def started(program, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_four_programs_take_turns(tmp_path):
    (tmp_path / "count").write_text("0")
    counting = [started(COUNTING, tmp_path) for _ in range(4)]
    assert [each.communicate() and each.returncode for each in counting] == [0] * 4
    assert (tmp_path / "count").read_text() == "400"
    assert not (tmp_path / LOCK).exists()


def test_who_has_to_wait_too_long_is_told_for_whom(tmp_path):
    holding = """
        import sys, time
        from napari_xcebra.locks import locked
        with locked(sys.argv[1]):
            print("held", flush=True)
            time.sleep(60)
    """
    with started(holding, tmp_path) as holder:
        assert holder.stdout.readline() == "held\n"
        said = rf"process {holder.pid}\) is writing to .*: try again"
        with pytest.raises(InputError, match=said), locked(tmp_path, patience=0):
            pass
        holder.kill()
        holder.wait()
        with locked(tmp_path, patience=5):  # the lock of a killed program is free
            pass


def test_a_drive_without_locks_gets_a_file_that_names_its_holder(tmp_path, monkeypatch):
    def no_locks(self):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(FileLock, "_acquire", no_locks)
    with locked(tmp_path):
        assert (tmp_path / LOCK).exists()
        with pytest.raises(InputError, match="is writing to"), locked(tmp_path, patience=0):
            pass
    assert not (tmp_path / LOCK).exists()
