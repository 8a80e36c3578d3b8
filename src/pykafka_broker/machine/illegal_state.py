"""The error of an impossible state in which going on would lose data."""

from __future__ import annotations


class IllegalState(RuntimeError):
    """The broker is in a state that only a bug can cause; it has changed nothing further.

    Unlike an `assert`, which only narrows a type or documents, this check also runs under `python -O`.
    """
