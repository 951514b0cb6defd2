"""Reads numbers as people write them; writes numbers, times and lists as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from napari_xcebra.errors import InputError

_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:(?P<mark>[.,])\d{3})(?:(?P=mark)\d{3})*")
_SPACED = re.compile(r"(?<=\d)[ '’\u00a0\u202f](?=\d{3}(?!\d))")


class AmbiguousNumber(InputError):
    """A number that may be two different ones."""


def parse_number(text: str, decimal: str = "") -> float:
    """Number that a person wrote: with a decimal point or comma, and thousands set apart or not.

    Parameters
    ----------
    text : str
    decimal : {"", ".", ","}
        The decimal mark of the source, if it is known. Otherwise one group of three digits after
        a comma may be either, and is refused; after a point it is a fraction, as in Python.

    Raises
    ------
    InputError
        If it is no number, or may be two different ones.

    >>> parse_number("7,5"), parse_number("1,234.5"), parse_number("1.234,5"), parse_number("0,125")
    (7.5, 1234.5, 1234.5, 0.125)
    """
    plain = _SPACED.sub("", text.strip())
    mark = decimal_mark(plain) or decimal
    if not mark and "," in plain and _GROUPED.fullmatch(plain):
        fraction, thousands = plain.replace(",", "."), plain.replace(",", "")
        raise AmbiguousNumber(
            f"{text.strip()!r} may be {fraction} or {thousands}: write one of these."
        )
    mark = mark or "."
    whole, _, rest = plain.partition(mark)
    other = ".,".replace(mark, "")
    try:
        if other in rest or (other in whole and not _GROUPED.fullmatch(whole)):
            raise ValueError
        return float(plain.replace(other, "").replace(mark, "."))
    except ValueError:
        raise InputError(f"{text.strip()!r} is not a number.") from None


def decimal_mark(number: str) -> str:
    """The decimal mark that a number must have; empty if it tells none.

    >>> decimal_mark("7,5"), decimal_mark("1,234.5"), decimal_mark("1,234"), decimal_mark("75")
    (',', '.', '', '')
    """
    points, commas = number.count("."), number.count(",")
    if points and commas:
        return max(".,", key=number.rfind)
    if _GROUPED.fullmatch(number):
        return "" if points + commas == 1 else "," if points else "."
    return "," if commas == 1 else "." if points == 1 else ""


def duration(seconds: float) -> str:
    """A length of time.

    >>> duration(42.31), duration(200), duration(1200), duration(5400), duration(float("nan"))
    ('42.3 s', '3 min 20 s', '20 min', '1 h 30 min', 'an unknown time')
    """
    if math.isnan(seconds):
        return "an unknown time"
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.3g} s"
    size, large, small = (60, "min", "s") if whole < 3600 else (3600, "h", "min")
    rest = whole % size * 60 // size
    return f"{whole // size} {large}" + (f" {rest} {small}" if rest else "")


def left(seconds: float) -> str:
    """The time that remains, in full seconds.

    >>> left(8.2), left(200.0)
    ('9 s', '3 min 20 s')
    """
    return duration(math.ceil(seconds)) if math.isfinite(seconds) else duration(math.nan)


def about(seconds: float) -> str:
    """A length of time that is not known exactly.

    >>> about(2.3), about(23), about(200), about(9000), about(float("nan"))
    ('about 5 s', 'about 25 s', 'about 3 min', 'about 2.5 h', 'an unknown time')
    """
    if math.isnan(seconds):
        return duration(seconds)
    rounded = 5 * math.ceil(seconds / 5)
    if rounded < 90:
        return f"about {rounded} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {seconds / 3600:.2g} h"


def percent(share: float) -> str:
    """A share of the whole; what is not all or nothing is not rounded to it.

    >>> percent(1.0), percent(0.9996), percent(0.0)
    ('100 %', '99.9 %', '0 %')
    """
    value = 100 * share
    if value in (0, 100) or 1 <= value <= 99:
        return f"{value:.0f} %"
    return f"{min(max(value, 0.1), 99.9):.1f} %"


def two(value: float) -> str:
    """Two decimals, without a negative zero.

    >>> two(-0.001), two(-1.5)
    ('0.00', '−1.50')
    """
    return f"{round(value, 2) + 0:.2f}".replace("-", "−")


def brief(value: float) -> str:
    """Three digits, without a negative zero.

    >>> brief(0.90254), brief(-0.0), brief(-1.5)
    ('0.903', '0', '−1.5')
    """
    return f"{value + 0:.3g}".replace("-", "−")


def chance_text(value: float) -> str:
    """A p or q; how far one lies below 0.001 says nothing.

    >>> chance_text(0.0321), chance_text(2e-7)
    ('0.032', '< 0.001')
    """
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def counted(count: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "cell"), counted(12000, "cell")
    ('1 cell', '12,000 cells')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def listed(names: Iterable[str]) -> str:
    """Names in a sentence.

    >>> listed(["place", "speed", "time"])
    'place, speed and time'
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def unmarked(text: str) -> str:
    """Text that nobody takes for markup: for names of layers, which napari shows as they come.

    >>> unmarked("speed<b>")
    'speed‹b>'
    """
    return text.replace("<", "‹")


def round_length(most: float) -> float:
    """The longest of 1, 2, 5, 10, 20 … that is no longer than a length.

    >>> round_length(73.0), round_length(0.3)
    (50.0, 0.2)
    """
    power = 10.0 ** math.floor(math.log10(most))
    return round(max(step for step in (1, 2, 5) if step * power <= most * (1 + 1e-9)) * power, 12)
