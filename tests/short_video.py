"""Writes a real video whose frames carry their number."""

from fractions import Fraction

import av
import numpy as np

FRAMES, RATE = 120, 20
BIT = 8
"""Pixels across that stand for a bit of the number."""


def write_video(path, frames=FRAMES, rate=RATE, times=None):
    """48 × 64 pixels, a stripe a bit; key frames are 25 frames apart.

    Frames are evenly spaced, or shown at `times`, in milliseconds.
    """
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=Fraction(rate))
        stream.width, stream.height, stream.pix_fmt = 8 * BIT, 48, "yuv420p"
        stream.gop_size = 25
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        for number in range(frames):
            bits = np.array([number >> bit & 1 for bit in range(8)], np.uint8) * 200
            pixels = np.broadcast_to(np.repeat(bits, BIT)[None, :, None], (48, 8 * BIT, 3))
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
            if times is not None:
                frame.pts, frame.time_base = int(times[number]), Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def number_in(row):
    """Number that a row of grey values carries."""
    return sum(1 << bit for bit in range(8) if row[bit * BIT + BIT // 2] > 100)
