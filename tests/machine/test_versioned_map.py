"""A map that behaves like a value: every version keeps what it held."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.machine.versioned_map import VersionedMap

KEYS = st.integers(0, 5)
CHANGES = st.tuples(st.dictionaries(KEYS, st.integers()), st.frozensets(KEYS))


def test_an_older_version_still_holds_what_it_held() -> None:
    first = VersionedMap({"a": 1, "b": 2})
    second = first.with_changes({"a": 10, "c": 3}, ["b"])

    assert second == {"a": 10, "c": 3}
    assert first == {"a": 1, "b": 2}
    assert sorted(second.items()) == [("a", 10), ("c", 3)]
    assert sorted(first.values()) == [1, 2]


def test_two_changes_can_start_from_the_same_version() -> None:
    first = VersionedMap({"a": 1})
    left, right = first.with_item("b", 2), first.without("a")

    assert left == {"a": 1, "b": 2}
    assert right == {}
    assert first == {"a": 1}


def test_a_change_and_a_removal_of_the_same_key_is_a_removal() -> None:
    first = VersionedMap({"a": 1})

    assert first.with_changes({"a": 2, "b": 3}, ["a", "b"]) == {}
    assert first == {"a": 1}


def test_it_reads_like_any_mapping() -> None:
    version = VersionedMap({"a": 1})

    assert (len(version), list(version), version["a"], version.get("b"), version.get("b", 7)) == (
        1,
        ["a"],
        1,
        None,
        7,
    )
    assert (list(version.items()), list(version.values())) == ([("a", 1)], [1])
    assert "a" in version
    assert not VersionedMap()
    assert repr(version) == "VersionedMap({'a': 1})"
    assert version != {"a": 2}
    assert version == {"a": 1}


@given(st.lists(st.tuples(st.integers(0, 20), CHANGES), max_size=20), st.data())
def test_a_tree_of_versions_equals_a_tree_of_copies(
    steps: list[tuple[int, tuple[dict[int, int], frozenset[int]]]], data: st.DataObject
) -> None:
    versions = [VersionedMap[int, int]()]
    copies: list[dict[int, int]] = [{}]
    for parent, (changes, removed) in steps:
        parent %= len(versions)
        versions.append(versions[parent].with_changes(changes, removed))
        copies.append(
            {key: value for key, value in {**copies[parent], **changes}.items() if key not in removed}
        )
    for at in data.draw(st.permutations(range(len(versions)))):
        assert versions[at] == copies[at]
        assert (versions[at] == versions[0]) is (copies[at] == copies[0])
