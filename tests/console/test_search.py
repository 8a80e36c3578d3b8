"""What is looked for in records."""

from __future__ import annotations

import pytest

from pykafka_broker.console.search import PathError, Search, parse_path

VALUE = {
    "customer": {"names": ["Ada", "Grace"], "age": 36},
    "paid": True,
    "note": None,
    "town": {"name": "Köln"},
}


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("", ()),
        ("$", ()),
        ("$.customer.names[0]", ("customer", "names", 0)),
        ("customer.names[10]", ("customer", "names", 10)),
        ("$[1].a b", (1, "a b")),
    ],
)
def test_a_path_is_names_and_numbers(text: str, steps: tuple[str | int, ...]) -> None:
    assert parse_path(text) == steps


@pytest.mark.parametrize("text", ["$..", "a[", "a[x]", "a]", "a[1234567890]"])
def test_a_text_that_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(PathError):
        parse_path(text)


@pytest.mark.parametrize(
    ("path", "equals", "matches"),
    [
        ("customer.names[1]", "Grace", True),
        ("customer.names[1]", "Ada", False),
        ("customer.names[2]", "", False),
        ("customer.age", "36", True),
        ("customer.age", "", True),
        ("paid", "true", True),
        ("note", "null", True),
        ("note", "", True),
        ("other", "", False),
        ("customer.names.0", "", False),
        ("customer.names", '["Ada", "Grace"]', True),
        ("town", '{"name": "Köln"}', True),
        ("$", "5", False),
        ("$", "", True),
    ],
)
def test_a_value_is_looked_for_at_a_path(path: str, equals: str, matches: bool) -> None:
    search = Search(path=parse_path(path), equals=equals)

    assert search.matches("", "", "", VALUE) is matches


@pytest.mark.parametrize(
    ("part", "text", "matches"),
    [
        ("anywhere", "KEY", True),
        ("anywhere", "trace", True),
        ("key", "key-1", True),
        ("key", "body", False),
        ("value", "BODY", True),
        ("headers", "trace=7", True),
        ("headers", "body", False),
    ],
)
def test_a_text_is_looked_for_in_a_part(part: str, text: str, matches: bool) -> None:
    assert Search(text, part).matches("key-1", "the body", "trace=7", None) is matches
