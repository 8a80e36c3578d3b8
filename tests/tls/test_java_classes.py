r"""Java's classes of characters: what `\p{...}` means, in a set and outside of one."""

from __future__ import annotations

import re
import string

import pytest

from pykafka_broker.tls.core.java_classes import with_python_classes


def members(pattern: str) -> str:
    """The characters up to ÿ that the pattern matches."""
    compiled = re.compile(with_python_classes(pattern), re.ASCII)
    return "".join(chr(code) for code in range(256) if compiled.fullmatch(chr(code)))


@pytest.mark.parametrize(
    ("pattern", "characters"),
    [
        (r"\p{Lower}", string.ascii_lowercase),
        (r"\p{Upper}", string.ascii_uppercase),
        (r"\p{Alpha}", string.ascii_letters),
        (r"\p{Digit}", string.digits),
        (r"\p{Alnum}", string.digits + string.ascii_letters),
        (r"\p{XDigit}", string.hexdigits),
        (r"\p{Punct}", string.punctuation),
        (r"\p{Space}", "\t\n\v\f\r "),
        (r"\p{Blank}", "\t "),
        (r"\p{Graph}", string.digits + string.ascii_letters + string.punctuation),
        (r"\p{Print}", string.digits + string.ascii_letters + string.punctuation + " "),
        (r"\p{Cntrl}", "".join(map(chr, [*range(32), 127]))),
        (r"\p{ASCII}", "".join(map(chr, range(128)))),
        (r"\P{ASCII}", "".join(map(chr, range(128, 256)))),
        (r"[^\P{Lower}]", string.ascii_lowercase),
        (r"[\p{Digit}.\-\p{Upper}]", string.digits + ".-" + string.ascii_uppercase),
        (r"[]\p{Digit}]", "]" + string.digits),
        (r"[\p{Digit}]|[\]a]|\p{Blank}", string.digits + "]a\t "),
        (r"\p{Nd}", string.digits),
        (r"\\p\{L}|\p{Sc}", "$¢£¤¥"),
    ],
)
def test_a_class_has_these_characters(pattern: str, characters: str) -> None:
    assert members(pattern) == "".join(sorted(characters))


def test_letters_are_those_of_all_scripts() -> None:
    letters = "".join(chr(code) for code in range(256) if chr(code).isalpha())
    assert members(r"\p{L}") == members(r"\pL") == members(r"[\p{Lu}\p{Ll}\p{Lo}]") == letters
    assert re.fullmatch(with_python_classes(r"\p{L}+"), "Жуков李")


@pytest.mark.parametrize("pattern", [r"\p{}", r"\p{alpha}", r"\p{IsLatin}", r"\p{javaUpperCase}", r"[\p{X}]"])
def test_other_classes_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="unknown class of characters"):
        with_python_classes(pattern)
