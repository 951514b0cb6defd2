"""Messages over a pair of pipes."""

from __future__ import annotations

import struct
from typing import BinaryIO

GREETING = b"\x00napari-xcebra jobs\x00"
JOB, STOP = b"j", b"s"
"""Messages to the child."""
EVENT, IDLE = b"e", b"i"
"""Messages from the child."""

_HEADER = struct.Struct("<cQ")


class Channel:
    """Messages, each a kind of one byte and a payload, to and from another process.

    Parameters
    ----------
    source, sink : binary files
        Buffered and blocking.
    """

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self.source, self.sink = source, sink

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """Write one message; OSError if the other side is gone."""
        self.sink.write(_HEADER.pack(kind, len(payload)))
        self.sink.write(payload)
        self.sink.flush()

    def receive(self) -> tuple[bytes, bytes] | None:
        """Wait for one message; None if the other side is gone."""
        header = self.source.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return None
        kind, length = _HEADER.unpack(header)
        payload = self.source.read(length)
        return (kind, payload) if len(payload) == length else None

    def greet(self) -> None:
        """Mark where messages begin."""
        self.sink.write(GREETING)
        self.sink.flush()

    def await_greeting(self) -> bool:
        """Pass over whatever start-up files of Python printed; False if nothing follows it."""
        seen = b""
        while not seen.endswith(GREETING):
            byte = self.source.read(1)
            if not byte:
                return False
            seen = seen[-len(GREETING) :] + byte
        return True
