"""Defines the errors that are shown to users as they are, and words for those of the system."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST = 700
"""Characters of a sentence that is shown: about six lines."""
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that command a terminal, or turn the text behind them around."""


def printable(text: str, kept: str = "") -> str:
    r"""Text in which no character is a command, but for those that are kept.

    >>> printable("x\x1b[31m_cm"), printable("a\tb\n", kept="\n\t")
    ('x_[31m_cm', 'a\tb\n')
    """
    return _CONTROL.sub(lambda found: found[0] if found[0] in kept else "_", text)


def _brief(sentence: str, longest: int = LONGEST) -> str:
    """Sentence of a length that can be read; of a longer one, the middle is left out.

    What was found stands at its beginning, and what to do at its end.

    >>> _brief("A very long name is not known: choose another.", 30)
    'A very long nam […] e another.'
    """
    if len(sentence) <= longest:
        return sentence
    end = longest // 3
    start = longest - end - len(" […] ")  # what is brief stays as it is
    return f"{sentence[:start].rstrip()} […] {sentence[-end:].lstrip()}"


class InputError(ValueError):
    """A sentence for the scientist: what was found, where, and what is needed."""

    def __init__(self, *args: object) -> None:
        super().__init__(
            *(_brief(printable(arg, "\n")) if isinstance(arg, str) else arg for arg in args)
        )


class ValuesError(InputError):
    """An `InputError` about values alone: whoever read them adds the name of their file."""


class CannotWrite(InputError, OSError):
    """A file could not be written; an `OSError` too, for those that can do without the file."""

    def __str__(self) -> str:
        return str(self.args[0])


class Stopped(Exception):
    """The caller asked to stop; there is no result."""


class TrainingDiverged(RuntimeError):
    """The loss became infinite or NaN; says what to change."""


_REFUSALS = {
    ("ENOSPC", "EDQUOT", "EFBIG"): ("the disk is full", "free some space"),
    ("EROFS",): ("nothing can be written there", "choose another folder"),
    ("EACCES", "EPERM"): (
        "access is denied",
        "allow it, close programs that use it, or choose another folder",
    ),
    ("ENAMETOOLONG",): ("a name is too long", "choose a shorter one"),
    ("EEXIST", "ENOTDIR", "EISDIR"): ("a file has the name of a folder", "choose another folder"),
    ("ENOENT", "ENODEV"): ("a file is not there", "put it back, or reconnect its drive"),
    ("EIO", "ENXIO", "ESTALE", "EREMOTEIO"): ("a drive fails", "reconnect it and try again"),
    ("ENETDOWN", "ENETUNREACH", "EHOSTDOWN"): ("the network is out of reach", "reconnect it"),
    ("ENOMEM",): ("the computer is out of memory", "close other programs"),
    ("EAGAIN",): ("the computer cannot run more programs", "close some and try again"),
    ("EMFILE", "ENFILE"): ("too many files are open", "close other programs"),
}
_BY_NUMBER = {
    getattr(errno, name): words
    for names, words in _REFUSALS.items()
    for name in names
    if hasattr(errno, name)
}


def is_refusal(error: BaseException) -> bool:
    """Whether the system, rather than a mistake in the program, is the reason."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and bool(error.errno))


def refusal(error: BaseException, path: str | os.PathLike[str] | None = None) -> str:
    """Why the system refused something, and what to do: the end of a sentence after "because".

    Parameters
    ----------
    error : exception
        What it says itself is returned if it is none of the system's.
    path : path, optional
        What it is about; by default the file that the error names.

    Examples
    --------
    >>> refusal(OSError(errno.ENOSPC, "No space left on device"), "out/maps.png")
    'the disk is full (out/maps.png): free some space'
    """
    if not is_refusal(error):
        return str(error)
    number = error.errno if isinstance(error, OSError) else errno.ENOMEM
    said = error.strerror if isinstance(error, OSError) else ""
    what, to_do = _BY_NUMBER.get(number or 0, (f"the system says “{said}”", "try again"))
    name = getattr(error, "filename", None) if path is None else os.fspath(path)
    about = f" ({os.fsdecode(name)})" if isinstance(name, str | bytes) and name else ""
    return f"{what}{about}: {to_do}"


@contextmanager
def sentence_on_failure(path: Path, what: str = "") -> Iterator[None]:
    """Raise an `InputError` that names the file for whatever fails while it is read.

    Parameters
    ----------
    path : Path
    what : str
        What the file should hold, such as "a table of numbers".
    """
    try:
        yield
    except ValuesError as error:
        raise InputError(f"{path}: {error}") from error
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(
            f"{path} cannot be read: it asks for more memory than it can have. It is damaged, not "
            "what it seems, or too large to be read at once."
        ) from error
    # a damaged file fails in zipfile, zlib, libhdf5, numpy or pandas, each in its own way
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from error
        details = " ".join(str(error).split())[:200].rstrip(".") or "no details"
        details = f"{type(error).__name__}: {details}"
        raise InputError(
            f"{path} cannot be read as {what} ({details})."
            if what
            else f"{path} cannot be read: it is damaged, incomplete or not the kind of file that "
            f"its name suggests ({details})."
        ) from error
