"""Order and repetition of the keys in a partition, as Spark counts them. Pure."""

from __future__ import annotations

from pykafka_broker.spark.audit.seen import Seen
from pykafka_broker.system.named_tuple import NamedTuple


class Keys(NamedTuple):
    """Order and repetition in a partition."""

    partition: int
    #: Records that have a key.
    keyed: int
    #: Keys without a record in a lower partition.
    keys: int
    #: Keys with records in a lower partition too.
    moved: int
    #: Records with an earlier timestamp than the previous record of their key; the greatest difference.
    backwards: Seen
    worst_back_ms: int
    #: Records whose key was there before.
    repeated: Seen
    #: Records that repeat another one with the same key, value, headers and timestamp; the partition and
    #: offset that the first of them repeats.
    doubled: Seen
    first_double: tuple[int, int] | None
    #: Records with the same key, value and headers as another one.
    alike: int
