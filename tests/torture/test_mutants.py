"""Bugs that are planted in a broker can be called as what they replace."""

from __future__ import annotations

import pytest

from tests.torture import mutants

PLANTED = {name: each.plant for name, each in mutants.MUTANTS.items()}
PLANTED |= mutants.RESOURCE_BUGS | mutants.REPLICATION_BUGS | mutants.COORDINATOR_BUGS


@pytest.mark.parametrize("name", PLANTED)
def test_a_bug_is_called_as_what_it_replaces(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []

    def check(owner: object, part: str, bug: mutants.Bug) -> None:
        mutants.check_place(owner, part, bug)
        checked.append(part)

    monkeypatch.setattr(mutants, "patch", check)
    PLANTED[name]()
    assert checked


def test_one_that_cannot_be_called_so_is_found() -> None:
    with pytest.raises(TypeError, match="too many positional arguments"):
        mutants.check_place(mutants, "check_place", lambda owner, name: None)
    with pytest.raises(AssertionError, match="no gone any more"):
        mutants.check_place(mutants, "gone", lambda: None)
    with pytest.raises(AssertionError, match="_private is private"):
        mutants.check_place(mutants, "_private", lambda: None)
