"""The latency of producers while a gigabyte is compacted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from bench import pinger

TOPIC = "bench-compacted"
SEGMENT_BYTES = 100 << 20
VALUE_BYTES = 1000
#: Pings between two looks whether the compaction is over; also of the quiet measurement.
PINGS = 5_000
PATIENCE_S = 300


def fill(address: str, records: int) -> None:
    """Records of which every tenth is the newest of its key."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    topic = NewTopic(TOPIC, 1, 1, config={"segment.bytes": str(SEGMENT_BYTES)})
    for created in admin.create_topics([topic]).values():
        created.result(30)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "queue.buffering.max.kbytes": 1 << 18})
    value = os.urandom(VALUE_BYTES)
    for number in range(records):
        while True:
            try:
                producer.produce(TOPIC, key=b"%d" % (number % (records // 10)), value=value)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(60)


def compact(address: str) -> None:
    """From now on the topic is compacted, and the cleaner does not sleep for long."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})

    def resource(kind: ResourceType, name: str, **values: str) -> ConfigResource:
        entries = [
            ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for key, value in values.items()
        ]
        return ConfigResource(kind, name, incremental_configs=entries)

    for wanted in (
        resource(ResourceType.BROKER, "1", log_cleaner_backoff_ms="1000"),
        resource(ResourceType.TOPIC, TOPIC, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01"),
    ):
        for altered in admin.incremental_alter_configs([wanted]).values():
            altered.result(30)


def is_compacted(data_dir: Path) -> Callable[[], bool]:
    """Whether the cleaner has been through the topic."""
    deadline = time.monotonic() + PATIENCE_S

    def over() -> bool:
        assert time.monotonic() < deadline, "the topic is not compacted"
        checkpoint = data_dir / "cleaner-offset-checkpoint"
        return checkpoint.exists() and f"\n{TOPIC} 0 " in checkpoint.read_text()

    return over


def run(address: str, data_dir: Path, ping_topic: str, records: int) -> dict[str, float]:
    """How long the compaction takes, and what becomes of the p99 of one record at a time."""
    fill(address, records)
    quiet = pinger.one_at_a_time(address, ping_topic, PINGS)
    compact(address)
    started = time.perf_counter()
    during = pinger.one_at_a_time(address, ping_topic, PINGS // 10, is_over=is_compacted(data_dir))
    return {
        "seconds": time.perf_counter() - started,
        "quiet_us": quiet["p99_us"],
        "p99_us": during["p99_us"],
        "ratio": during["p99_us"] / quiet["p99_us"],
    }
