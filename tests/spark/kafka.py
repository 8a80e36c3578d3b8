"""What the Spark tests do to Kafka without Spark: make topics, put records in, delete some."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import UnknownTopicOrPartitionError

Headers = Sequence[tuple[str, bytes]]

TIMEOUT_S = 90

#: Yesterday's noon: not now, but recent, or retention would delete the records under the readers.
NOON = dt.datetime.now(dt.UTC).replace(hour=12, minute=0, second=0, microsecond=0) - dt.timedelta(days=1)
_numbers = itertools.count(int(time.time() * 1000))


class Kafka:
    """One broker, seen by kafka-python. Topic names are unique, so that tests share a broker in any order."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.open()

    def open(self) -> None:
        self.producer = self.new_producer()
        self.admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Without connections: kafka-python leaves a socket open where a broker that is down refuses it."""
        self.close()
        yield
        self.open()

    def close(self) -> None:
        self.producer.close()
        self.admin.close()

    def new_producer(self) -> KafkaProducer:
        return KafkaProducer(bootstrap_servers=self.bootstrap, acks="all", linger_ms=0)

    def forget(self) -> None:
        """Start over with a producer that knows nothing of a topic that changed.

        The old one would notice in its own time, and by asking for a deleted topic bring it back.
        """
        self.producer.close()
        self.producer = self.new_producer()

    def new_name(self, prefix: str = "spark") -> str:
        return f"{prefix}-{next(_numbers)}"

    def topic(self, partitions: int = 1, prefix: str = "spark", **configs: str) -> str:
        return self.create(self.new_name(prefix), partitions, **configs)

    def create(self, name: str, partitions: int = 1, **configs: str) -> str:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        wanted = {"num_partitions": partitions, "replication_factor": 1, "configs": settings}
        self.admin.create_topics({name: wanted}, wait_for_metadata=True)
        return name

    def delete(self, name: str) -> None:
        self.forget()
        self.admin.delete_topics([name])
        self.eventually(lambda: name not in self.admin.list_topics())

    def add_partitions(self, name: str, count: int) -> None:
        self.admin.create_partitions({name: count})
        self.admin.wait_for_topics([name])
        self.forget()
        self.eventually(lambda: len(self.producer.partitions_for(name)) == count)

    def delete_records(self, name: str, before: int, partition: int = 0) -> None:
        self.admin.delete_records({TopicPartition(name, partition): before})

    def send(
        self,
        topic: str,
        values: Iterable[str | int | None],
        *,
        partition: int | None = 0,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> None:
        sent = [
            self.producer.send(
                topic,
                value=None if value is None else str(value).encode(),
                key=key,
                partition=partition,
                headers=list(headers),
                timestamp_ms=timestamp_ms,
            )
            for value in values
        ]
        for future in sent:
            future.get(timeout=TIMEOUT_S)

    def values(self, topic: str) -> list[str]:
        """Every value in the topic, partition after partition."""
        with KafkaConsumer(bootstrap_servers=self.bootstrap, auto_offset_reset="earliest") as consumer:
            partitions = [
                TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())
            ]
            consumer.assign(partitions)
            ends = consumer.end_offsets(partitions)
            consumer.seek_to_beginning()
            found: list[tuple[int, int, str]] = []
            deadline = time.monotonic() + TIMEOUT_S
            while any(consumer.position(p) < ends[p] for p in partitions):
                assert time.monotonic() < deadline, f"{topic} was not read to its end {ends}"
                for records in consumer.poll(timeout_ms=200).values():
                    found += [(r.partition, r.offset, r.value.decode()) for r in records]
        return [value for _, _, value in sorted(found)]

    def eventually(self, condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> None:
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                if condition():
                    return
            except UnknownTopicOrPartitionError:
                pass
            assert time.monotonic() < deadline, "the broker did not get there"
            time.sleep(0.02)


def offsets(**by_topic: dict[int, int]) -> str:
    """The offsets or timestamps JSON of Spark's options: `offsets(**{topic: {partition: offset}})`."""
    return json.dumps(
        {topic: {str(p): o for p, o in by_partition.items()} for topic, by_partition in by_topic.items()}
    )
