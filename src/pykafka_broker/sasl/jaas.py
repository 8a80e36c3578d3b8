r"""JAAS strings: the values of `sasl.jaas.config`.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="admin" password="admin-secret" user_alice="alice-secret";

One or more entries: a login module, a control flag, options, a semicolon. Words end at white space, `=`,
`;`, a quote or `/`. Both quotes quote, up to the end of the line, with the escapes of Java: `\n`, `\"`,
`\101`. Outside quotes a `/` begins a comment up to the end of the line, and `/* */` is a comment too, even
inside a word: so a password with a slash needs quotes.

Source: Java's StreamTokenizer as Apache Kafka's JaasConfig sets it up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_CONTROL_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL = "01234567"
_USER_PREFIX = "user_"


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One entry. Its options hold secrets, so `repr` does not show them."""

    class_name: str
    control_flag: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def passwords(self) -> Mapping[str, str]:
        """The passwords of PLAIN's users, by name: `user_alice="..."`."""
        prefix = len(_USER_PREFIX)
        return {name[prefix:]: value for name, value in self.options.items() if name.startswith(_USER_PREFIX)}


@dataclass(frozen=True, slots=True)
class _Word:
    text: str


@dataclass(frozen=True, slots=True)
class _Sign:
    """A character that belongs to no word."""

    character: str


_Token = _Word | _Sign


def parse_jaas(text: str) -> list[LoginModule]:
    """The entries of a JAAS string, at least one.

    Raises:
        ValueError: the string is malformed. The message quotes none of it: if a quote is missing, the name
            of an option may be a part of a password.
    """
    tokens = _tokens(text)
    # An entry takes the tokens up to its semicolon.
    entries = [_entry(token, tokens) for token in tokens]
    if not entries:
        raise ValueError("Login module not specified in JAAS config")
    return entries


def quoted(value: str) -> str:
    """The value of an option, in quotes, as `parse_jaas` and Java read it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _entry(first: _Token, tokens: Iterator[_Token]) -> LoginModule:
    if not isinstance(first, _Word) or not first.text:
        raise ValueError("Login module not specified in JAAS config")
    flag = next(tokens, None)
    if flag is None:
        raise ValueError("Login module control flag not specified in JAAS config")
    if not isinstance(flag, _Word):
        raise ValueError("Login module control flag is not available in the JAAS config")
    control_flag = flag.text.lower()
    if control_flag not in _CONTROL_FLAGS:
        raise ValueError("Invalid login module control flag in JAAS config")
    options: dict[str, str] = {}
    for number, token in enumerate(tokens, start=1):
        if token == _Sign(";"):
            return LoginModule(first.text, control_flag, options)
        equals, value = next(tokens, None), next(tokens, None)
        if not isinstance(token, _Word) or equals != _Sign("=") or not isinstance(value, _Word):
            raise ValueError(f"Value not specified for key number {number} in JAAS config")
        options[token.text] = value.text
    raise ValueError("JAAS config entry not terminated by semi-colon")


def _tokens(text: str) -> Iterator[_Token]:
    pos, end = 0, len(text)
    while pos < end:
        character = text[pos]
        if character <= " ":
            pos += 1
        elif character == "/":
            pos = _after_comment(text, pos)
        elif character in "\"'":
            word, pos = _quoted(text, pos)
            yield word
        elif _is_word_character(character):
            start = pos
            while pos < end and _is_word_character(text[pos]):
                pos += 1
            yield _Word(text[start:pos])
        else:
            pos += 1
            yield _Sign(character)


def _is_word_character(character: str) -> bool:
    return character > " " and character not in "=;/\"'" and not "\x81" <= character <= "\x9f"


def _after_comment(text: str, pos: int) -> int:
    if text.startswith("/*", pos):
        stop = text.find("*/", pos + 2)
        return len(text) if stop < 0 else stop + 2
    while pos < len(text) and text[pos] not in "\r\n":
        pos += 1
    return pos


def _quoted(text: str, pos: int) -> tuple[_Word, int]:
    """The word that begins with the quote at `pos`, and where it ends."""
    quote, pos = text[pos], pos + 1
    characters = []
    while pos < len(text) and text[pos] not in "\r\n":
        character = text[pos]
        pos += 1
        if character == quote:
            break
        if character == "\\" and pos < len(text):
            character = text[pos]
            if character in _OCTAL:
                # \377 is the largest: a first digit above 3 leaves room for one more only.
                most = pos + (3 if character <= "3" else 2)
                start = pos
                while pos < min(most, len(text)) and text[pos] in _OCTAL:
                    pos += 1
                character = chr(int(text[start:pos], 8))
            else:
                pos += 1
                character = _ESCAPES.get(character, character)
        characters.append(character)
    return _Word("".join(characters)), pos
