"""What a simulation raises when something does not hold that must."""

from __future__ import annotations


class Violation(AssertionError):
    """An invariant does not hold."""


def check(condition: bool, what: str) -> None:
    """Raise a Violation unless the condition holds."""
    if not condition:
        raise Violation(what)
