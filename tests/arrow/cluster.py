"""A broker to read from, its data directory, and what fills its topics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_broker.arrow import read_folder, read_topic

NOW = 1_769_860_800_000


class Cluster:
    """A broker, its data directory, and what fills its topics."""

    def __init__(self, address: str, data_dir: Path) -> None:
        self.address = address
        self.data_dir = data_dir
        self._admin = AdminClient({"bootstrap.servers": address, "log_level": 0})

    def create(self, topic: str, partitions: int = 1, **configs: str) -> str:
        """The topic, created; keys of `configs` have _ for dots.

        Its records are of long ago, and stay all the same.
        """
        settings = {
            name.replace("_", "."): value for name, value in {"retention_ms": "-1", **configs}.items()
        }
        for created in self._admin.create_topics([NewTopic(topic, partitions, 1, config=settings)]).values():
            created.result(60)
        return topic

    def producer(self, **settings: Any) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.address,
                "log_level": 0,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )

    def fill(self, topic: str, values: Sequence[bytes | None], **settings: Any) -> None:
        """Produce values to partition 0, a second apart."""
        refused: list[object] = []

        def delivered(error: object, _message: object) -> None:
            if error is not None:
                refused.append(error)

        producer = self.producer(**settings)
        for number, value in enumerate(values):
            time = NOW + 1000 * number
            producer.produce(topic, value, b"key", 0, timestamp=time, on_delivery=delivered)
        assert (producer.flush(60), refused) == (0, [])

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        for deleted in self._admin.delete_topics([topic]).values():
            deleted.result(60)

    def delete_records(self, up_to: TopicPartition) -> None:
        """Delete the records of a partition before an offset."""
        for deleted in self._admin.delete_records([up_to]).values():
            deleted.result(60)

    def both(self, topic: str, **arguments: Any) -> pa.Table:
        """What is read from the broker, which must be what is read from the folder."""
        read = read_topic(topic, self.address, **arguments).read_all()
        assert in_order(read_folder(self.data_dir, topic, **arguments).read_all()) == in_order(read)
        return read


def in_order(table: pa.Table) -> pa.Table:
    """The rows by partition and offset, if both are among the columns."""
    return table.sort_by([("partition", "ascending"), ("offset", "ascending")]).combine_chunks()


def values_of(table: pa.Table) -> list[bytes | None]:
    found: list[bytes | None] = table.column("value").to_pylist()
    return found
