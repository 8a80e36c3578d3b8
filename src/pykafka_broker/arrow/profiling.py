"""`profile_topic` and `profile_folder`: what is in a topic, in one pass over its records."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from os import PathLike

from pykafka_broker.arrow.core.decoding import decode
from pykafka_broker.arrow.core.limits import Limits
from pykafka_broker.arrow.core.profile.results import TopicProfile
from pykafka_broker.arrow.core.profile.topic import TopicState
from pykafka_broker.arrow.core.sections import sections_of
from pykafka_broker.arrow.core.stored_batches import OffsetRange
from pykafka_broker.arrow.ranges import Ranges
from pykafka_broker.arrow.sources import (
    EVERYTHING,
    LIMITS,
    IsolationLevel,
    Reading,
    Source,
    client_of,
    folder_source,
    folders_of,
    topic_source,
)

#: The number of keys that a profile names unless another one is asked for.
HOT_KEYS = 10


def profile_topic(
    topic: str,
    bootstrap_servers: str | Mapping[str, str],
    *,
    ranges: Ranges = EVERYTHING,
    isolation_level: IsolationLevel = "read_uncommitted",
    hot_keys: int = HOT_KEYS,
    limits: Limits = LIMITS,
) -> TopicProfile:
    """What is in a topic of any Kafka cluster, up to its present end: `core/profile/results.py` has the
    fields, with their units and errors. The memory in use does not grow with the records.

    The arguments are those of `read_topic`; `hot_keys` is how many of the most frequent keys are named.

    Raises:
        ValueError, KafkaError, ConnectionError: as `read_topic`, also what that raises while reading.
    """
    with client_of(bootstrap_servers, limits.timeout_s) as client:
        source = topic_source(client, topic, Reading(ranges, isolation_level, limits))
        return profile(source, limits, hot_keys)


def profile_folder(
    path: str | PathLike[str],
    topic: str | None = None,
    *,
    ranges: Ranges = EVERYTHING,
    isolation_level: IsolationLevel = "read_uncommitted",
    hot_keys: int = HOT_KEYS,
    limits: Limits = LIMITS,
) -> TopicProfile:
    """The same of the folder of a partition, or, with `topic`, of all its partitions in a log directory.

    Raises:
        ValueError, KafkaError: as `read_folder`, also what that raises while reading.
    """
    name, folders = folders_of(path, topic)
    return profile(folder_source(folders, name, Reading(ranges, isolation_level, limits)), limits, hot_keys)


def profile(
    source: Source,
    limits: Limits,
    hot_keys: int,
    advance: Callable[[int, int], object] | None = None,
    is_enough: Callable[[], bool] | None = None,
) -> TopicProfile:
    """What is in these batches. `advance` is told the bytes and the number of records that were counted. Once
    `is_enough`, which is asked after some batches, no more are read. Of the partitions in the result, each
    ends behind its last batch that was read.

    Raises:
        KafkaError, ConnectionError: as `read_topic` while reading.
    """
    state = TopicState(now_ms=time.time_ns() // 1_000_000)
    read = {partition: OffsetRange(start, start) for partition, (start, _) in source.wanted.items()}
    for some in source.batches:
        for batch in some:
            if batch.is_marker:
                state.add_marker(batch.partition, batch.header)
        for sections in sections_of(some, source.topic, limits):
            decoded = decode(sections, source.topic, headers=True)
            state.add(sections, decoded)
            if advance is not None:
                advance(len(decoded.data), len(decoded.offsets))
        if is_enough is not None:
            for batch in some:
                end = min(batch.end_offset, batch.header.next_offset)
                read[batch.partition] = read[batch.partition]._replace(end=end)
            if is_enough():
                return state.result(source.topic, read, hot_keys)
    return state.result(source.topic, source.wanted, hot_keys)
