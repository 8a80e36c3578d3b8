"""The error of a state that the code excludes, where going on would lose data."""

from __future__ import annotations


class IllegalState(RuntimeError):
    """The broker found itself in a state that only a bug of its own leads to; it has changed nothing further.

    Unlike an `assert`, which only narrows a type or documents, this check also runs under `python -O`.
    """
