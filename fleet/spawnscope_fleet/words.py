"""Formats numbers as the reports of spawnscope do. A value with a unit has three significant digits, except that from 1,000 of the
largest unit on it has all of them."""

import re
import unicodedata

TIME_UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1))
# Longer spans are shown in hours, so that seconds have at most four digits.
MIN_HOURS_NS = 9_999_500_000_000


def time(value_ns):
    """Formats nanoseconds, which may be negative, as `45.6 ms`; `-` if unknown."""
    if value_ns is None:
        return "-"
    span = round(abs(value_ns))
    sign = "-" if value_ns < 0 else ""
    unit, length = ("h", 3600e9) if span >= MIN_HOURS_NS else next((unit for unit in TIME_UNITS if span / unit[1] >= 0.9995), TIME_UNITS[-1])
    scaled = span / length
    digits = 0 if length == 1 or scaled >= 99.95 else 1 if scaled >= 9.995 else 2
    return f"{sign}{scaled:,.{digits}f} {unit}"


def count(number):
    """Formats a whole number with thousands separated by commas; `-` if unknown."""
    return "-" if number is None else f"{max(0, round(number)):,}"


def counted(number, one, many):
    """Formats a number with its noun: `1 run`, `2 runs`."""
    return f"{count(number or 0)} {one if round(number or 0) == 1 else many}"


def printable(text):
    """Escapes control characters, including those that change the direction of text: recordings are of unknown origin."""
    return "".join(escaped(each) for each in text)


def escaped(character):
    is_directional = "\u202a" <= character <= "\u202e" or "\u2066" <= character <= "\u2069"
    if unicodedata.category(character) == "Cc" or is_directional or "\ud800" <= character <= "\udfff":
        return f"\\u{{{ord(character):x}}}"
    return character


def one_line(text):
    return re.sub(r"\s+", " ", text or "").strip()
