"""How often an authorizer has allowed what clients tried to do, and how often it has denied it."""

from __future__ import annotations


class DecisionCounts:
    """Counts since the start."""

    __slots__ = ("allowed", "denied")

    def __init__(self) -> None:
        self.allowed = 0
        self.denied = 0
