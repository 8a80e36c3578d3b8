"""Names that are asked whether one of them begins another, beside a look at all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.authorization.names import Names

TEXTS = st.text(alphabet="ab\U0010ffff", max_size=5)


def names(*added: str) -> Names:
    made = Names()
    for name in added:
        made.add(name)
    return made


def test_a_name_that_is_added_twice_is_removed_twice() -> None:
    twice = names("a", "a")
    twice.remove("a")
    assert ("a" in twice, len(twice), twice.in_order()) == (True, 1, ["a"])
    twice.remove("a")
    assert ("a" in twice, len(twice), twice.in_order()) == (False, 0, [])
    with pytest.raises(KeyError):
        twice.remove("a")


def test_a_beginning_is_found_behind_others_that_are_none() -> None:
    some = names("a", "ab", "abb", "abc", "abcz", "b")
    assert some.beginning_of("abcde") in ("a", "ab", "abc")
    assert names("abb", "abca", "b").beginning_of("abcde") is None


@given(st.lists(TEXTS), st.lists(TEXTS), TEXTS)
def test_names_in_any_order_say_what_all_of_them_say(first: list[str], second: list[str], asked: str) -> None:
    some = names(*first)
    some.in_order()
    for name in second:
        some.add(name)
    for name in first:
        some.remove(name)

    assert some.in_order() == sorted(set(second))
    found = some.beginning_of(asked)
    assert (found is not None) == any(asked.startswith(name) for name in second)
    assert found is None or (found in some and asked.startswith(found))


@given(st.lists(TEXTS), st.lists(st.lists(TEXTS.filter(bool), max_size=4), max_size=3))
def test_what_is_left_begins_with_no_name_that_closes(listed: list[str], closing: list[list[str]]) -> None:
    left = list(names(*listed).left_by([names(*each) for each in closing]))
    closed = tuple(name for each in closing for name in each)
    assert left == [name for name in sorted(set(listed)) if not name.startswith(closed)]
