"""Puts failures into a sentence for the user, with details for a bug report."""

from __future__ import annotations

import errno
import pickle
import signal
import sys
import tempfile
import traceback

from napari_xcebra.errors import InputError, TrainingDiverged, is_refusal, refusal
from napari_xcebra.jobs.events import Failed
from napari_xcebra.support.logs import LOGGER

_MEMORY_SIGNS = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "cannot allocate memory",
    "alloc_failed",
    "cudaerrormemoryallocation",
    "unable to mmap",
    "unable to allocate",
    "can't start new thread",
)
"""What torch's allocators (CPU on each system, CUDA, cuBLAS, Metal) and threads say in a
RuntimeError."""


def from_exception(error: Exception, doing: str, sparing: str) -> Failed:
    """Failure of a call that raised an exception, in the child."""
    if isinstance(error, InputError):
        return Failed(str(error), error=error if _can_be_sent(error) else None)
    if isinstance(error, TrainingDiverged):
        return Failed(str(error))
    details = "".join(traceback.format_exception(error))
    if memory := _memory_short(error):
        return Failed(f"{doing} ran out of {memory}: {sparing}.", details)
    if is_refusal(error):
        return Failed(f"{doing} failed because {refusal(error)}.", details)
    first, *_ = str(error).strip().splitlines() or [""]
    what = f"{type(error).__name__}: {first}" if first else type(error).__name__
    return Failed(f"{doing} failed unexpectedly ({what}): please report it.", details)


def _can_be_sent(error: InputError) -> bool:
    """Whether another process gets the same error: one of a plug-in may not be importable."""
    try:
        return str(pickle.loads(pickle.dumps(error))) == str(error)
    except Exception:  # code of others fails in any way
        return False


def log(failed: Failed) -> None:
    """Write a failure to the log: as an error if it was not foreseen."""
    if failed.details:
        LOGGER.error("%s\n%s", failed.sentence, failed.details.rstrip())
    else:
        LOGGER.warning("%s", failed.sentence)


def _memory_short(error: Exception) -> str:
    """Memory that did not suffice, in words; empty if that was not the reason."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return "memory"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return "memory on the GPU"
    # the allocators of the CPU, of Metal and of cuBLAS raise a plain RuntimeError
    said = str(error).lower()
    if not isinstance(error, RuntimeError) or not any(sign in said for sign in _MEMORY_SIGNS):
        return ""
    on_gpu = any(word in said for word in ("cuda", "cublas", "mps ", "hip "))
    return "memory on the GPU" if on_gpu else "memory"


def from_exit(code: int | None, doing: str, sparing: str, output: str) -> Failed:
    """Failure of a call whose process ended under it.

    Parameters
    ----------
    code : int or None
        Exit code; a signal if negative.
    output : str
        Last lines that the process wrote.
    """
    if code is not None and code == -getattr(signal, "SIGKILL", 9):
        sentence = (
            f"{doing} was killed by the system (SIGKILL), most likely because the computer ran "
            f"out of memory: close other programs, {sparing}."
        )
    else:
        sentence = f"{doing} crashed ({_ending(code)}): try again, and report it if it recurs."
    return Failed(sentence, output)


def from_disk(error: OSError) -> Failed:
    """Failure to write the arrays of a call to disk."""
    return Failed(
        "The recording could not be handed to the background process because "
        f"{refusal(error, tempfile.gettempdir())}."
    )


def from_start(reason: OSError | int | None, sparing: str, output: str = "") -> Failed:
    """Failure to bring up a process at all.

    Parameters
    ----------
    reason : OSError, int or None
        Why the system refused, or the exit code of a process that ended before it was ready.
    """
    if isinstance(reason, int) and reason < 0:
        return from_exit(reason, "The background process", sparing, output)
    if isinstance(reason, OSError) and reason.errno in (errno.ENOMEM, errno.EAGAIN, errno.ENOSPC):
        return Failed(
            f"The background process could not be started because {refusal(reason)}.", output
        )
    why = reason if isinstance(reason, OSError) else _ending(reason)
    return Failed(
        f"The background process could not be started ({why}): check that napari-xcebra is "
        "installed in the Python that runs napari.",
        output,
    )


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"signal {-code}, {signal.Signals(-code).name}"
        except ValueError:
            return f"signal {-code}"
    return f"exit code {code}"
