"""The profile of a topic is the same from a broker and from its data directory, and counts what is there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pykafka_broker.arrow import Ranges, TopicProfile, profile_folder, profile_topic
from pykafka_broker.arrow.core.stored_batches import OffsetRange
from pykafka_broker.arrow.profiling import profile
from pykafka_broker.arrow.sources import LIMITS, Reading, folder_source, folders_of
from pykafka_broker.broker.broker import Broker
from pykafka_broker.config.sources import load_config
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from tests.arrow.cluster import NOW, Cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    data_dir = tmp_path_factory.mktemp("data")
    with Broker(load_config(data_dir=data_dir, listen="127.0.0.1:0")) as broker:
        yield Cluster(broker.bootstrap_servers, data_dir)


def both(cluster: Cluster, topic: str, **arguments: Any) -> TopicProfile:
    """The profile of what the broker serves, which must be that of its folders."""
    served = profile_topic(topic, cluster.address, **arguments)
    assert profile_folder(cluster.data_dir, topic, **arguments) == served
    return served


def test_a_topic_of_several_partitions_and_codecs_is_counted(cluster: Cluster) -> None:
    topic = cluster.create("mixed", partitions=3)
    # A batch of one record is also smaller when it is compressed: else librdkafka leaves it as it is.
    long = ("text", b"-" * 200)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = cluster.producer(compression_type=codec, batch_num_messages=50)
        for number in range(600):
            producer.produce(
                topic,
                None if number % 10 == 0 else b'{"number": %d}' % number,
                None if number % 7 == 0 else b"user-%d" % (number % 20),
                number % 2,
                timestamp=NOW + number,
                headers=[long, ("trace", b"x")] if number % 3 == 0 else [long],
            )
        assert producer.flush(60) == 0

    found = both(cluster, topic, hot_keys=20)

    assert [each.records for each in found.partitions] == [1_500, 1_500, 0]
    assert (found.records, found.missing_offsets, found.record_skew) == (3_000, 0, 1.5)
    assert found.tombstones == 5 * 60
    assert found.null_keys == 5 * len(range(0, 600, 7))
    assert (found.distinct_keys, found.partitions_per_key) == (20, 1.0)
    expected = sum(number % 7 > 0 and number % 20 == 4 for number in range(600))
    assert {each.key: each.records for each in found.hot_keys}["user-4"] == 5 * expected
    assert [(each.name, each.headers) for each in found.headers] == [
        ("text", 3_000),
        ("trace", 5 * 200),
    ]
    assert [(each.codec, each.records) for each in found.codecs] == [
        (codec, 600) for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    ]
    assert all(each.stored_bytes < each.bytes for each in found.codecs[1:])
    assert {each.format for each in found.value_content} == {"json", "null"}
    assert (found.times.oldest_ms, found.times.newest_ms) == (NOW, NOW + 599)
    # Each producer begins with the oldest time again.
    assert found.times.behind > 0


def test_a_transaction_and_its_marker_are_counted(cluster: Cluster) -> None:
    topic = cluster.create("transactions")
    producer = cluster.producer(transactional_id="profiled")
    producer.init_transactions(60)
    for ends in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(topic, b"v", partition=0)
        producer.flush(60)
        ends(60)

    everything = both(cluster, topic)
    assert (everything.records, everything.missing_offsets, everything.control_batches) == (2, 2, 2)
    assert everything.transactional_batches == 2
    committed = both(cluster, topic, isolation_level="read_committed")
    assert (committed.records, committed.missing_offsets, committed.control_batches) == (1, 3, 2)


def test_a_topic_with_append_times_says_how_far_producers_are_behind(cluster: Cluster) -> None:
    topic = cluster.create("append-time", message_timestamp_type="LogAppendTime")
    cluster.fill(topic, [b"a", b"b"])

    times = both(cluster, topic).times

    assert times.append_time == 2
    assert times.newest_ms is not None
    assert times.least_append_delay_ms is not None
    assert times.least_append_delay_ms > 0
    assert times.ahead == 0


def test_records_of_chosen_partitions_since_a_time_are_counted(cluster: Cluster) -> None:
    topic = cluster.create("since", partitions=2)
    cluster.fill(topic, [b"%d" % number for number in range(50)], batch_num_messages=7)
    since = datetime.fromtimestamp(NOW / 1000 + 30, UTC)

    found = both(cluster, topic, ranges=Ranges(start=since, partitions=[0]), hot_keys=0)

    [partition] = found.partitions
    assert (partition.start_offset, partition.end_offset, partition.records) == (30, 50, 20)
    assert (found.times.oldest_ms, found.hot_keys, found.other_keys_at_most) == (NOW + 30_000, [], 20)


def test_what_is_not_there_has_no_profile(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(KafkaError) as refused:
        profile_topic("nothing", cluster.address)
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(KafkaError) as refused:
        profile_folder(cluster.data_dir, "nothing")
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(ValueError, match="There is no folder"):
        profile_folder(tmp_path / "nothing", "orders")
    with pytest.raises(ValueError, match="neither read_uncommitted"):
        profile_topic("since", cluster.address, isolation_level="all")  # type: ignore[arg-type]


def test_what_was_read_is_counted_where_that_is_enough(cluster: Cluster) -> None:
    """Half of the partitions' batches: the offsets end behind the last that was read."""
    topic = cluster.create("enough", partitions=2)
    producer = cluster.producer(batch_num_messages=10)
    for number in range(200):
        producer.produce(topic, b"v", partition=number % 2)
    assert producer.flush(60) == 0
    source = folder_source(folders_of(cluster.data_dir, topic)[1], topic, Reading())
    [(one, *rest), *others] = source.batches

    found = profile(
        source._replace(batches=iter([[one], rest, *others])), LIMITS, hot_keys=0, is_enough=lambda: True
    )

    assert source.wanted == {0: OffsetRange(0, 100), 1: OffsetRange(0, 100)}
    assert [(each.start_offset, each.end_offset) for each in found.partitions] == [
        (0, one.header.next_offset),
        (0, 0),
    ]
    assert (found.records, found.missing_offsets) == (one.header.records_count, 0)
