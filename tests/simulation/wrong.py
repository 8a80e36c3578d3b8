"""What a planted bug replaces: rules with public names, which outlive changes of what is behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest


class Wrong(NamedTuple):
    """`owner.name` becomes `wrong`, which is given what it replaces."""

    owner: object
    name: str
    wrong: Callable[[Any], object]


def plant(wrongs: Iterable[Wrong], monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace these rules until the end of the test, or `monkeypatch.undo`."""
    for owner, name, wrong in wrongs:
        assert not name.startswith("_") or name.endswith("__"), f"{name} is private"
        monkeypatch.setattr(owner, name, wrong(vars(owner)[name]))
