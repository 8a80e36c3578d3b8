"""A map whose versions share their content: every version keeps what it held, and tells how it differs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.machine.shared_map import SharedMap

CHANGES = st.dictionaries(st.integers(0, 200), st.one_of(st.none(), st.integers(1000, 1010)), max_size=40)


class Key(int):
    """A number that counts how often one is looked at."""

    looks = 0

    def __eq__(self, other: object) -> bool:
        Key.looks += 1
        return int.__eq__(self, other)

    def __hash__(self) -> int:
        Key.looks += 1
        return int.__hash__(self)


def place_of(key: int) -> int:
    return key * 2_654_435_761 >> 7


def changed(version: SharedMap[int, int], changes: dict[int, int | None]) -> SharedMap[int, int]:
    draft = version.draft()
    for key, value in changes.items():
        if value is None:
            draft.pop(key, None)
        else:
            draft[key] = value
    return draft.finished()


def test_a_version_stays_as_it_is_while_others_are_made_of_it() -> None:
    first = changed(SharedMap(place_of), {1: 10, 2: 20})
    left, right = changed(first, {2: None, 3: 30}), changed(first, {1: 11})

    assert first == {1: 10, 2: 20}
    assert left == {1: 10, 3: 30}
    assert right == {1: 11, 2: 20}
    assert sorted(left.changes_since(right)) == [(1, 11, 10), (2, 20, None), (3, None, 30)]


@given(st.lists(CHANGES, max_size=8))
def test_versions_equal_copies(steps: list[dict[int, int | None]]) -> None:
    versions: list[SharedMap[int, int]] = [SharedMap(place_of)]
    copies: list[dict[int, int]] = [{}]
    for changes in steps:
        versions.append(changed(versions[-1], changes))
        merged = {**copies[-1], **changes}
        copies.append({key: value for key, value in merged.items() if value is not None})
    for version, copy in zip(versions, copies, strict=True):
        assert version == copy
        assert len(version) == len(copy)
        assert sorted(version) == sorted(copy)
        assert sorted(version.items()) == sorted(copy.items())
        assert sorted(version.values()) == sorted(copy.values())
        assert repr(version).startswith("SharedMap({")
        told = {key: (before, after) for key, before, after in versions[-1].changes_since(version)}
        assert told == {
            key: (copy.get(key), copies[-1].get(key))
            for key in copy.keys() | copies[-1].keys()
            if copy.get(key) != copies[-1].get(key)
        }


def test_one_change_among_many_entries_looks_at_few_of_them() -> None:
    draft = SharedMap[int, int](place_of).draft()
    for number in range(100_000):
        draft[Key(number)] = number
    before = draft.finished()
    Key.looks = 0
    after = changed(before, {100_001: 1})
    assert list(after.changes_since(before)) == [(100_001, None, 1)]
    # Those of one bucket, each a few times.
    assert 100 < Key.looks < 5_000
