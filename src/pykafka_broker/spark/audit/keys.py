"""What Spark says of the keys in a partition. Pure."""

from __future__ import annotations

from pykafka_broker.spark.audit.seen import Seen
from pykafka_broker.system.named_tuple import NamedTuple


class Keys(NamedTuple):
    """Order and repetition in a partition."""

    partition: int
    #: Records that have a key.
    keyed: int
    #: Those whose key has no record in a partition before this one.
    keys: int
    #: Keys that have records in a partition before this one.
    moved: int
    #: Records with a timestamp behind that of the record before it of its key, and the most that one is.
    backwards: Seen
    worst_back_ms: int
    #: Records whose key was there before.
    repeated: Seen
    #: Records that are there once more: the same key, value, headers and timestamp; partition and offset of
    #: what the first of them is like.
    doubled: Seen
    first_double: tuple[int, int] | None
    #: Records with the same key, value and headers as another one.
    alike: int
