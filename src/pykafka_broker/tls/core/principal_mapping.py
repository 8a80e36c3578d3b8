r"""`ssl.principal.mapping.rules`: the user's name from the distinguished name in a certificate.

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, RULE:^CN=([^,]+),.*$/$1/, DEFAULT

Rules are separated by commas; the first whose pattern matches the whole name applies.
`RULE:pattern/replacement/` replaces each match of the pattern in the name; `L` or `U` at the end makes the
result lower or upper case. A slash is written `\/` in either part. `DEFAULT` takes the name as it is.

In a replacement `$1` is a group of the pattern, with as many digits as still name a group, and `${name}` is a
named one; a backslash quotes the next character. If the pattern has groups, but not the one of a number, `$`
and the number are kept as text.

Patterns are Python's, with Java's meaning of `\w`, `\d` and `\s` (ASCII); named groups and character classes
such as `\p{Alpha}` may be written as in Java (`java_classes.py`). Java's sets within sets, such as
`[a-z&&[^b]]`, are refused on purpose.

Source: SslPrincipalMapper of Apache Kafka.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from pykafka_broker.tls.core.java_classes import with_python_classes

DEFAULT_RULES = "DEFAULT"

_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(?:.*?)"
_RULE_AND_COMMA = re.compile(rf"\s*({_RULE})\s*(?:,\s*|$)", re.ASCII)
_WHOLE_RULE = re.compile(_RULE, re.ASCII)
_JAVA_NAMED_GROUP = re.compile(r"(?<!\\)\(\?<(?=[A-Za-z])")


class NoRuleApplies(ValueError):
    """No rule matches this distinguished name."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; without a pattern it is `DEFAULT`."""

    pattern: re.Pattern[str] | None
    replacement: str = ""
    #: `L`, `U`, or neither.
    case: str = ""

    def apply(self, distinguished_name: str) -> str | None:
        """The user's name, or None if the pattern does not match.

        Raises:
            ValueError: the replacement is invalid.
        """
        if self.pattern is None:
            return distinguished_name
        if not self.pattern.fullmatch(distinguished_name):
            return None
        name = self.pattern.sub(self._expanded, distinguished_name)
        if self.case == "L":
            return name.lower()
        return name.upper() if self.case == "U" else name

    def _expanded(self, match: re.Match[str]) -> str:
        """The replacement of one match."""
        text, groups = self.replacement, match.re.groups
        out: list[str] = []
        pos = 0
        while pos < len(text):
            character = text[pos]
            pos += 1
            if character == "\\":
                # By the syntax of rules a replacement never ends with a backslash.
                out.append(text[pos])
                pos += 1
            elif character != "$":
                out.append(character)
            elif text.startswith("{", pos):
                end = text.find("}", pos)
                name = text[pos + 1 : end]
                if end < 0 or name not in match.re.groupindex:
                    raise ValueError(f"No group with name {{{name}}}")
                out.append(match[name] or "")
                pos = end + 1
            else:
                start = pos
                while pos < len(text) and "0" <= text[pos] <= "9":
                    if pos > start and int(text[start : pos + 1]) > groups:
                        break
                    pos += 1
                if start == pos:
                    raise ValueError("Illegal group reference")
                number = int(text[start:pos])
                if number <= groups:
                    out.append(match[number] or "")
                elif groups:
                    out.append("$" + text[start:pos])
                else:
                    raise ValueError(f"No group {number}")
        return "".join(out)


class PrincipalMapping:
    """The rules of a node."""

    def __init__(self, rules: str | None = DEFAULT_RULES) -> None:
        """Raises ValueError for rules that cannot be read; the message quotes the rule."""
        self.rules = parse_rules(DEFAULT_RULES if rules is None else rules)

    def name_of(self, distinguished_name: str) -> str:
        """The user's name of a certificate.

        Raises:
            NoRuleApplies: no rule matches.
            ValueError: the replacement of the matching rule is invalid.
        """
        for rule in self.rules:
            name = rule.apply(distinguished_name)
            if name is not None:
                return name
        raise NoRuleApplies(f"No rules apply to {distinguished_name}")


def parse_rules(text: str) -> Sequence[Rule]:
    """The rules of a configuration; empty rules between commas are skipped.

    Raises:
        ValueError: a rule is malformed, or its pattern cannot be read.
    """
    return tuple(
        rule
        for match in _RULE_AND_COMMA.finditer(text.strip())
        if (rule := _parse_rule(match[1])) is not None
    )


def _parse_rule(text: str) -> Rule | None:
    match = _WHOLE_RULE.match(text)
    end = match.end() if match else 0
    if match is None or end != len(text):
        raise ValueError(f"Invalid rule: `{text}`, unmatched substring: `{text[end:]}`")
    is_default, pattern, replacement, case = match.groups()
    if is_default:
        return Rule(None)
    if pattern is None:
        return None
    try:
        with warnings.catch_warnings():
            # Python warns where a pattern may mean sets within sets, as in Java: that is refused.
            warnings.simplefilter("error", FutureWarning)
            compiled = re.compile(_JAVA_NAMED_GROUP.sub("(?P<", with_python_classes(pattern)), re.ASCII)
    except (ValueError, re.error, FutureWarning) as error:
        raise ValueError(f"Invalid rule: `{text}`, its pattern cannot be read: {error}") from None
    return Rule(compiled, replacement, case)
