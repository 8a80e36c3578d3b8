"""The faults of a Spark set-up, in words."""

from __future__ import annotations

from pykafka_broker.system.named_tuple import NamedTuple


class SparkError(Exception):
    """Spark cannot be used as it is; the message says why and what to do."""


class Fault(NamedTuple):
    """A problem and its remedy; commands stand on lines of their own, indented."""

    message: str
    remedy: str
    #: Whether Spark works in spite of it, so far.
    is_warning: bool = False
