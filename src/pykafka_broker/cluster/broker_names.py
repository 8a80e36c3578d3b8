"""The names of the resources that are brokers: a broker's configuration, and its loggers."""

from __future__ import annotations


def broker_id_of(name: str) -> int | None:
    """The broker id in a name, as Java's `Integer.parseInt` reads it; None if it is none."""
    digits = name[1:] if name[:1] in ("-", "+") else name
    if not digits.isdecimal():
        return None
    number = int(digits) if name[:1] != "-" else -int(digits)
    return number if -(1 << 31) <= number < 1 << 31 else None
