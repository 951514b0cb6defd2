"""Turns whatever fails while a file is read into a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from napari_xcebra.errors import InputError, ValuesError


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
