"""A planted bug: a rule with a public name, which outlives changes of what is behind it, is done wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest


class Bug(NamedTuple):
    """What is done wrong, and where: a model that finds nothing in the right core has to find it."""

    name: str
    #: A module, a class, or a dict of rules.
    where: Any
    attribute: str
    #: Makes the wrong rule from the right one.
    spoil: Callable[[Any], Any]

    def plant(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Do it wrong until the end of the test."""
        name = self.attribute
        assert not name.startswith("_") or name.endswith("__"), f"{name} is private"
        if isinstance(self.where, dict):
            monkeypatch.setitem(self.where, name, self.spoil(self.where[name]))
        else:
            monkeypatch.setattr(self.where, name, self.spoil(getattr(self.where, name)))
