"""What went wrong is a sentence that says what to do."""

import errno
import signal

import numpy as np
import pytest

from napari_xcebra.errors import InputError, TrainingDiverged
from napari_xcebra.jobs import failures, tasks

CALL = tasks.FIT.doing, tasks.FIT.sparing


@pytest.mark.parametrize("kind", [InputError, TrainingDiverged])
def test_errors_that_are_sentences_stay_as_they_are(kind):
    assert failures.from_exception(kind("F.npy has 3 cells."), *CALL).sentence == (
        "F.npy has 3 cells."
    )


@pytest.mark.parametrize(
    "error, where",
    [
        (MemoryError(), "memory:"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "memory:"),
        (RuntimeError("unable to mmap 12 bytes from file"), "memory:"),
        (RuntimeError("can't start new thread"), "memory:"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB."), "memory on the GPU:"),
        (RuntimeError("MPS backend out of memory"), "memory on the GPU:"),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling"), "memory on the GPU:"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "memory:"),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried"), "memory:"),
    ],
)
def test_the_end_of_memory_says_what_to_try(error, where):
    sentence = failures.from_exception(error, *CALL).sentence
    assert sentence.startswith(f"Training ran out of {where}")
    assert "batch_size" in sentence
    assert "cpu" in sentence


def test_an_array_that_does_not_fit_says_what_to_try():
    with pytest.raises(MemoryError) as raised:
        np.empty(2**60, np.uint8)
    assert failures.from_exception(raised.value, *CALL).sentence.startswith(
        "Training ran out of memory:"
    )


@pytest.mark.parametrize(
    "error, words",
    [
        (OSError(errno.ENOSPC, "No space", "a.npy"), "the disk is full (a.npy): free some space."),
        (OSError(errno.EDQUOT, "Quota"), "the disk is full: free some space."),
        (PermissionError(errno.EACCES, "Denied", "a.npy"), "access is denied (a.npy): allow it"),
        (OSError(errno.ENAMETOOLONG, "Too long"), "a name is too long: choose a shorter one."),
        (BlockingIOError(errno.EAGAIN, "Again"), "the computer cannot run more programs: close"),
        (FileNotFoundError(errno.ENOENT, "None", b"a.npy"), "a file is not there (a.npy): put it"),
        (OSError(errno.EIO, "I/O error"), "a drive fails: reconnect it and try again."),
        (OSError(errno.EMFILE, "Too many"), "too many files are open: close other programs."),
        (OSError(errno.EXDEV, "Cross-device link"), "the system says “Cross-device link”: try"),
    ],
)
def test_what_the_system_refuses_is_not_to_be_reported(error, words):
    failed = failures.from_exception(error, *CALL)
    assert failed.sentence.startswith(f"Training failed because {words}")
    assert "report" not in failed.sentence
    assert failed.details


def test_an_unexpected_error_is_one_line_with_a_traceback_in_its_details():
    try:
        {}["first\nsecond"]
    except KeyError as error:
        failed = failures.from_exception(error, *CALL)
    assert "\n" not in failed.sentence
    assert "KeyError" in failed.sentence
    assert "Traceback" in failed.details


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no signals here")
def test_a_kill_points_to_memory_and_a_crash_to_its_signal():
    killed = failures.from_exit(-signal.SIGKILL, *CALL, output="last words")
    assert "memory" in killed.sentence
    assert killed.details == "last words"
    assert "SIGSEGV" in failures.from_exit(-signal.SIGSEGV, *CALL, output="").sentence
    assert "exit code 3" in failures.from_exit(3, *CALL, output="").sentence


def test_a_process_that_does_not_come_up_says_whether_it_was_killed_or_is_not_installed():
    refused = failures.from_start(OSError(2, "No such file"), tasks.FIT.sparing).sentence
    assert "could not be started" in refused
    assert "No such file" in refused
    full = failures.from_start(BlockingIOError(errno.EAGAIN, "Again"), tasks.FIT.sparing).sentence
    assert "cannot run more programs: close some" in full
    assert "exit code 1" in failures.from_start(1, tasks.FIT.sparing).sentence
    assert "memory" in failures.from_start(-9, tasks.FIT.sparing).sentence
