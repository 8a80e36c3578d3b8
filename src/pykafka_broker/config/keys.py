"""Configuration keys: their types, defaults, bounds and error texts.

The tables (`broker.py`, `topic.py`, `group.py`, `client_metrics.py`) are tuples of `Key` rows; everything
else in this package derives from them. Types, parsing, rendering and the words of an error follow Apache
Kafka 4.3's ConfigDef, because clients show these words to people and tools compare the rendered values.

Typed values are plain Python: bool, int, float, str, `Password` for secrets, and tuples of str for lists.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Union

from pykafka_broker.system.named_tuple import NamedTuple

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1

#: The key that names config providers.
PROVIDERS = "config.providers"


class ConfigError(ValueError):
    """A configuration that cannot be accepted; the text says which key, which value and why."""


def code_for_java(listener: str, key: str) -> ConfigError:
    """The refusal of a key whose value is a class of Java's."""
    return ConfigError(f"Listener {listener}: {key} names code for Java, which this broker cannot run")


class Password(str):
    """A secret; its characters never appear in a log or a traceback."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'[hidden]'"


Value = Union[bool, int, float, str, "tuple[str, ...]", None]


class ConfigType(IntEnum):
    """Types of values, numbered as DescribeConfigs reports them."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = list(ConfigType)[1:]

#: The importance of a key to an ordinary installation.
HIGH, MEDIUM, LOW = "high", "medium", "low"

#: The update modes of a broker key at run time: not at all, for one named broker, also for the cluster.
READ_ONLY, PER_BROKER, CLUSTER_WIDE = "read-only", "per-broker", "cluster-wide"

#: What this broker does with a key. ACTS: it applies it. UNHEEDED: it accepts it without effect and logs it,
#: which does no harm. REFUSED: it refuses any value but the default, as operators would rely on the effect.
ACTS, UNHEEDED, REFUSED = "acts", "unheeded", "refused"


class _Required:
    """Stands for the missing default of a key that must be configured."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()


class Range(NamedTuple):
    """A number from `low` to `high`, both inclusive; without `high` there is no upper bound."""

    low: float
    high: float | None = None

    def check(self, name: str, value: Any) -> None:
        if value is None:
            raise invalid(name, None, "Value must be non-null")
        if value < self.low:
            raise invalid(name, value, f"Value must be at least {self.low}")
        if self.high is not None and value > self.high:
            raise invalid(name, value, f"Value must be no more than {self.high}")

    def __str__(self) -> str:
        return f"[{self.low},...]" if self.high is None else f"[{self.low},...,{self.high}]"


class OneOf(NamedTuple):
    """One of a few words."""

    words: tuple[str, ...]

    def check(self, name: str, value: Any) -> None:
        if value not in self.words:
            raise invalid(name, value, "String must be one of: " + ", ".join(self.words))

    def __str__(self) -> str:
        return f"[{', '.join(self.words)}]"


class OneOfAnyCase(NamedTuple):
    """One of a few words, in upper or lower case."""

    words: tuple[str, ...]

    def check(self, name: str, value: Any) -> None:
        if value is None or value.upper() not in self.words:
            raise invalid(name, value, "String must be one of (case insensitive): " + ", ".join(self.words))

    def __str__(self) -> str:
        return f"(case insensitive) [{', '.join(self.words)}]"


class ListOf(NamedTuple):
    """A list; repetitions are dropped. If there are `words`, only these are allowed."""

    words: tuple[str, ...] = ()
    may_be_empty: bool = True
    may_be_null: bool = False

    def check(self, name: str, value: Any) -> None:
        if value is None:
            if not self.may_be_null:
                raise ConfigError(f"Configuration '{name}' values must not be null.")
            return
        if not value and not self.may_be_empty:
            allowed = str(self) if self.words else "any non-empty value"
            raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: {allowed}")
        for entry in value:
            if not entry:
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if self.words and entry not in self.words:
                raise invalid(name, entry, "String must be one of: " + ", ".join(self.words))

    def __str__(self) -> str:
        return f"[{', '.join(self.words)}]" if self.words else ""


class NotEmpty:
    """A string with at least one character, or null."""

    def check(self, name: str, value: Any) -> None:
        if value == "":
            raise invalid(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "non-empty string"


class NotNull:
    """Any string, also an empty one."""

    def check(self, name: str, value: Any) -> None:
        if value is None:
            raise invalid(name, "null", "entry must be non null")

    def __str__(self) -> str:
        return "non-null string"


class GzipLevel:
    """1 to 9, or -1 for the library's own default."""

    def check(self, name: str, value: Any) -> None:
        if value != -1 and not 1 <= value <= 9:
            raise invalid(name, value, "Value must be between 1 and 9 or equal to -1")

    def __str__(self) -> str:
        return "[1,...,9] or -1"


class Voters:
    """`id@host:port` entries."""

    def check(self, name: str, value: Any) -> None:
        parse_voters(value)

    def __str__(self) -> str:
        return "non-empty list"


class BootstrapServers:
    """`host:port` entries."""

    def check(self, name: str, value: Any) -> None:
        parse_bootstrap_servers(value, name)

    def __str__(self) -> str:
        return "non-empty list"


class ThrottledReplicas:
    """`partition:broker` entries, or `*` alone."""

    def check(self, name: str, value: Any) -> None:
        if value == ("*",):
            return
        for entry in value:
            partition, colon, broker = entry.partition(":")
            if not (colon and partition.isdecimal() and broker.isdecimal()):
                raise invalid(
                    name,
                    f"[{', '.join(value)}]",
                    f"{name} must be the literal '*' or a list of replicas in the following format: "
                    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
                )

    def __str__(self) -> str:
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


class OffsetReset:
    """`earliest`, `latest`, or `by_duration:` and an ISO 8601 duration."""

    def check(self, name: str, value: Any) -> None:
        if value in ("latest", "earliest"):
            return
        word, _, duration = value.partition(":")
        if word != "by_duration" or duration_ms(duration) is None:
            raise invalid(
                name,
                value,
                f"Invalid value `{value}` for configuration {name}. "
                "The value must be either 'earliest', 'latest' or "
                "of the format 'by_duration:<PnDTnHnMn.nS>'.",
            )

    def __str__(self) -> str:
        return "[latest, earliest, by_duration:PnDTnHnMn.nS]"


def duration_ms(text: str) -> int | None:
    """The milliseconds of an ISO 8601 duration, cut as in Java; None if it is malformed, or has more seconds
    than a long.
    """
    import re

    number = r"0*(\d{1,19})"
    time = rf"T(?=\d)(?:{number}H)?(?:{number}M)?(?:{number}(?:[.,](\d{{0,9}}))?S)?"
    parts = re.fullmatch(rf"(?ai)P(?=[\dT])(?:{number}D)?(?:{time})?", text)
    if parts is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in parts.groups()[:4])
    seconds += ((days * 24 + hours) * 60 + minutes) * 60
    fraction_ms = int(((parts[5] or "") + "000")[:3])
    return None if seconds >= 1 << 63 else seconds * 1_000 + fraction_ms


Validator = Union[
    Range,
    OneOf,
    OneOfAnyCase,
    ListOf,
    NotEmpty,
    NotNull,
    GzipLevel,
    Voters,
    BootstrapServers,
    ThrottledReplicas,
    OffsetReset,
]


class Key(NamedTuple):
    """One row of a table: one configuration key."""

    name: str
    type: ConfigType
    #: Already typed; REQUIRED if there is no default, None if the key is unset by default.
    default: Any
    validator: Validator | None
    importance: str
    scope: str
    handling: str
    documentation: str
    #: Internal keys are accepted but never listed.
    internal: bool = False

    @property
    def is_sensitive(self) -> bool:
        return self.type is PASSWORD

    def parse(self, text: str) -> Value:
        """The typed and checked value of `text`.

        Raises:
            ConfigError: `text` is not of this key's type, or out of its bounds.

        """
        value = parse(self.name, text, self.type)
        if isinstance(self.validator, ListOf) and isinstance(value, tuple):
            value = tuple(dict.fromkeys(value))
        if self.validator is not None:
            self.validator.check(self.name, value)
        return value


def invalid(name: str, value: object, reason: str) -> ConfigError:
    shown = "null" if value is None else value
    return ConfigError(f"Invalid value {shown} for configuration {name}: {reason}")


_BITS = {INT: 31, SHORT: 15, LONG: 63}


def parse(name: str, text: str, type_: ConfigType) -> Value:
    """Parse `text` as Kafka parses a value of this type.

    Raises:
        ConfigError: it is not of this type.

    """
    trimmed = text.strip()
    if type_ in _BITS:
        digits = trimmed[1:] if trimmed[:1] in ("-", "+") else trimmed
        if digits.isdecimal() and digits.isascii():
            number = int(trimmed)
            bits = _BITS[type_]
            if -(1 << bits) <= number < 1 << bits:
                return number
        raise invalid(name, text, f"Not a number of type {type_.name}")
    if type_ is BOOLEAN:
        lowered = trimmed.lower()
        if lowered not in ("true", "false"):
            raise invalid(name, text, "Expected value to be either true or false")
        return lowered == "true"
    if type_ is LIST:
        return tuple(entry.strip() for entry in trimmed.split(",")) if trimmed else ()
    if type_ is PASSWORD:
        return Password(trimmed)
    if type_ is DOUBLE:
        try:
            if "_" not in trimmed:
                return float(trimmed)
        except ValueError:
            pass
        raise invalid(name, text, "Not a number of type DOUBLE")
    return trimmed


def render(value: Value, type_: ConfigType) -> str | None:
    """A typed value as Kafka's text."""
    if value is None:
        return None
    if type_ is BOOLEAN:
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if type_ is DOUBLE and isinstance(value, (int, float)):
        return _java_double(float(value))
    return str(value)


def _java_double(value: float) -> str:
    """A number as Java prints it: always with a fraction, in E notation outside of 1e-3 to 1e7."""
    magnitude = abs(value)
    if value == 0 or 1e-3 <= magnitude < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value:e}".partition("e")
    digits = repr(value).partition("e")[0].replace(".", "").strip("-0") or "0"
    sign = "-" if mantissa.startswith("-") else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{int(exponent)}"


class Voter(NamedTuple):
    """A controller of a fixed quorum."""

    node_id: int
    host: str
    port: int


def parse_voters(entries: tuple[str, ...]) -> tuple[Voter, ...]:
    """The voters of `controller.quorum.voters`.

    Raises:
        ConfigError: an entry is not `id@host:port`.

    """
    name = "controller.quorum.voters"
    form = "Each entry should be in the form `{id}@{host}:{port}`."
    where = f"for the configuration {name}. {form}"
    voters = []
    for entry in entries:
        node_id, at, address = entry.partition("@")
        if not at:
            raise ConfigError(f"Invalid configuration value for {name}. {form}")
        if not node_id.isdecimal():
            raise ConfigError(f"Failed to parse voter ID as an integer from {node_id}")
        host, _, port = address.rpartition(":")
        if not host:
            raise ConfigError(f"Failed to parse host name from entry {entry} {where}")
        if not port.isdecimal():
            raise ConfigError(f"Failed to parse host port from entry {entry} {where}")
        if host == "0.0.0.0":
            raise ConfigError(f"Host string ({host}) is not routeable")
        voters.append(Voter(int(node_id), host.strip("[]"), int(port)))
    return tuple(voters)


def parse_bootstrap_servers(
    entries: tuple[str, ...], name: str = "controller.quorum.bootstrap.servers"
) -> tuple[tuple[str, int], ...]:
    """The host and port of each entry.

    Raises:
        ConfigError: an entry is not `host:port`.
    """
    servers = []
    for entry in entries:
        host, _, port = entry.rpartition(":")
        problem = "host name" if not host else "host port" if not port.isdecimal() else None
        if problem:
            raise ConfigError(
                f"Failed to parse {problem} from {entry} for the configuration {name}. "
                'Each entry should be in the form "{host}:{port}"'
            )
        servers.append((host.strip("[]"), int(port)))
    return tuple(servers)
