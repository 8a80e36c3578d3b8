"""JAAS strings, read as Java's StreamTokenizer reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.sasl.jaas import parse_jaas, quoted

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def options(text: str) -> dict[str, str]:
    (entry,) = parse_jaas(f"Module required {text};")
    return dict(entry.options)


def test_an_entry_of_apaches_documentation() -> None:
    users = 'username="admin"\n user_admin="admin-secret" user_alice="a=b;c";'
    (entry,) = parse_jaas(f"{PLAIN_MODULE} required {users}")
    assert (entry.class_name, entry.control_flag) == (PLAIN_MODULE, "required")
    assert entry.options["username"] == "admin"
    assert entry.passwords == {"admin": "admin-secret", "alice": "a=b;c"}


@given(st.text())
def test_a_quoted_value_is_read_as_it_was(value: str) -> None:
    assert options(f"password={quoted(value)} next=1") == {"password": value, "next": "1"}


def test_several_entries() -> None:
    entries = parse_jaas("a.B REQUIRED x=1; c.D optional;")
    assert [(entry.class_name, entry.control_flag, dict(entry.options)) for entry in entries] == [
        ("a.B", "required", {"x": "1"}),
        ("c.D", "optional", {}),
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x=plain", "plain"),
        ("x='single \"inside\"'", 'single "inside"'),
        (r'x="quote \" and \\"', 'quote " and \\'),
        (r'x="tab\tbell\aoctal\101\0end"', "tab\tbell\aoctalA\0end"),
        # A first digit above 3 takes one more digit, not two.
        (r'x="\4777"', "\x2777"),
        (r'x="\q"', "q"),
        ("x = 'spaces around'", "spaces around"),
        ("x=/* why */1", "1"),
        ("x=1 // to the end of the line\n", "1"),
        ("x=1 / to the end of the line too\n", "1"),
        ("x=pass/word\n", "pass"),
        ("x='pass/word'", "pass/word"),
        ("x=ключ", "ключ"),
        ("x=''", ""),
        ("x=1 x=2", "2"),
    ],
)
def test_values(text: str, value: str) -> None:
    assert options(text) == {"x": value}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Login module not specified"),
        (" // nothing", "Login module not specified"),
        ("; Module required;", "Login module not specified"),
        ("Module", "control flag not specified"),
        ("Module ;", "control flag is not available"),
        ("Module always;", "Invalid login module control flag"),
        ("Module required", "not terminated by semi-colon"),
        ("Module required x=1", "not terminated by semi-colon"),
        ("Module required x=1 y;", "key number 2"),
        ("Module required x=;", "key number 1"),
        ("Module required x 1;", "key number 1"),
        ("Module required x=\x851;", "key number 1"),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_jaas(text)


@pytest.mark.parametrize(
    "text", ["Module hunter2;", "Module required password=my hunter2;", 'Module required hunter2="hunter2"']
)
def test_no_refusal_quotes_a_secret(text: str) -> None:
    with pytest.raises(ValueError) as refusal:
        parse_jaas(text)
    assert "hunter2" not in str(refusal.value)


def test_no_secret_in_repr() -> None:
    assert "hunter2" not in repr(parse_jaas('Module required password="hunter2";'))
