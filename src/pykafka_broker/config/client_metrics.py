"""The keys of a client metrics subscription, and what its `match` says (KIP-714)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pykafka_broker.config.keys import (
    ACTS,
    CLUSTER_WIDE,
    INT,
    LIST,
    MEDIUM,
    ConfigError,
    Key,
    ListOf,
)

# fmt: off
CLIENT_METRICS_KEYS: tuple[Key, ...] = (
    Key("metrics", LIST, (), ListOf(), MEDIUM, CLUSTER_WIDE, ACTS,
        "Prefixes of the metrics that matching clients push; * is all."),
    Key("interval.ms", INT, 300000, None, MEDIUM, CLUSTER_WIDE, ACTS,
        "How often matching clients push."),
    Key("match", LIST, (), ListOf(), MEDIUM, CLUSTER_WIDE, ACTS,
        "Which clients push, as selector=pattern; without one, all."),
)
# fmt: on

#: Every client metrics key by name.
CLIENT_METRICS: dict[str, Key] = {key.name: key for key in CLIENT_METRICS_KEYS}

#: The properties by which a subscription may select clients.
MATCH_SELECTORS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
#: Whether a pattern matches the whole of a text: truthy if it does.
Matcher = Callable[[str], object]


def matchers_of(patterns: Iterable[str]) -> dict[str, Matcher]:
    """The matcher of each selector in the entries of `match`; of a selector named twice the last one counts.

    Raises:
        ConfigError: an entry is not `selector=pattern`, in the words of Apache Kafka.
    """
    found: dict[str, Matcher] = {}
    for pattern in patterns:
        # Java's `split` drops empty parts at the end.
        selector, *expressions = pattern.rstrip("=").split("=")
        if selector.strip() not in MATCH_SELECTORS or len(expressions) != 1:
            raise _illegal(pattern)
        try:
            found[selector.strip()] = _matcher(expressions[0].strip())
        except ValueError:
            raise _illegal(pattern) from None
    return found


def _illegal(pattern: str) -> ConfigError:
    return ConfigError(f"Illegal client matching pattern: {pattern}")


def _matcher(expression: str) -> Matcher:
    """A matcher of a regular expression of Java's.

    RE2 matches in time proportional to the text, which a client chooses. It knows neither look-around nor
    back references: Python's own expressions do. What only Java knows is invalid here.

    Raises:
        ValueError: the expression is invalid.
    """
    import re

    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        matcher: Matcher = re2.compile(expression, options).fullmatch
    except re2.error:
        try:
            return re.compile(expression).fullmatch
        except re.error as error:
            raise ValueError(str(error)) from None
    return matcher
