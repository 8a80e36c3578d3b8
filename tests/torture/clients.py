"""Clients that keep writing, reading and committing while their broker dies and comes back; they note what
they were told.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from tests.torture.history import History, Place, Value
from tests.torture.users import ANYBODY, Users

TOPIC = "ledger"
GROUP = "bookkeepers"
PADDING_BYTES = 100
#: Records a producer hands out before it rests: a few batches a round trip, and not more than can be checked.
BURST = 20
REST_S = 0.004
QUIET = {
    "log_level": 0,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "topic.metadata.refresh.fast.interval.ms": 50,
}
#: For what takes a second or two where nothing else runs.
PATIENCE_S = 180


class Load:
    """Producers, a consumer, and an administrator that commits, creates and deletes; each in a thread."""

    def __init__(
        self,
        address: str,
        partitions: int,
        *,
        producers: int = 2,
        chores: bool = True,
        codec: str = "none",
        in_flight: int = 5,
        users: Users = ANYBODY,
    ) -> None:
        self.history = History(partitions)
        self._address = address
        self._users = users
        self._codec = codec
        #: Requests of a producer at a time and broker. With more than one, librdkafka may send a batch to a
        #: new leader while the one before is still with the old: what that leader answers makes it begin a
        #: new producer epoch, in which it repeats what was written (its issue 4953).
        self._in_flight = in_flight
        self._progress = threading.Condition()
        self._stop = threading.Event()
        jobs: list[Callable[[], None]] = [self._consume]
        jobs += [self._producer(number) for number in range(producers)]
        if chores:
            jobs.append(self._do_chores)
        self._errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=(job,)) for job in jobs]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop; what is under way is waited for."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    @property
    def acknowledged(self) -> int:
        return self.history.acknowledged_count

    def wait_for(self, more: int, until: Callable[[], bool] = lambda: False) -> None:
        """Return when so many more records have been acknowledged, or `until()`."""
        target = self.acknowledged + more
        deadline = time.monotonic() + PATIENCE_S
        with self._progress:
            while (
                self.acknowledged < target and not until() and not self._errors and not self.history.refused
            ):
                assert time.monotonic() < deadline, f"{self.acknowledged} of {target} acknowledged"
                self._progress.wait(0.02)

    def _run(self, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:
            self._errors.append(error)

    # --- producing --------------------------------------------------------------------------------

    def _producer(self, number: int) -> Callable[[], None]:
        def produce() -> None:
            history = self.history
            producer = self._users.producer(
                "writer",
                {
                    "bootstrap.servers": self._address,
                    "enable.idempotence": True,
                    "acks": "all",
                    "linger.ms": 1,
                    "batch.num.messages": 10,
                    "compression.type": self._codec,
                    "max.in.flight.requests.per.connection": self._in_flight,
                    "delivery.timeout.ms": PATIENCE_S * 1000,
                    **QUIET,
                },
            )
            history.sent[number] = 0
            try:
                self._produce(producer, number)
                producer.flush(PATIENCE_S)
            except (KafkaException, SystemError) as fatal:  # a SystemError is what the binding makes of it
                history.refused.append(repr(fatal))
            if left := len(producer):
                history.refused.append(f"{left} records were never answered")

        return produce

    def _produce(self, producer: Producer, number: int) -> None:
        history = self.history
        while not self._stop.is_set():
            for _ in range(BURST):
                value = Value(number, history.sent[number])
                history.sent[number] += 1
                producer.produce(
                    TOPIC,
                    value.to_bytes(PADDING_BYTES),
                    partition=value.number % history.partitions,
                    on_delivery=self._delivered,
                )
            producer.poll(REST_S)
            while len(producer) > 500 and not self._stop.is_set():
                producer.poll(0.01)

    def _delivered(self, error: Any, message: Any) -> None:
        with self._progress:
            if error is not None:
                self.history.refused.append(str(error))
            else:
                # No offset: librdkafka took the answer to a later batch for that to this one, which was lost.
                self.history.acknowledge(message.partition(), message.offset(), Value.parse(message.value()))
            self._progress.notify_all()

    # --- consuming --------------------------------------------------------------------------------

    def _consume(self) -> None:
        consumer = new_consumer(self._address, self._users)
        consumer.assign([TopicPartition(TOPIC, p, 0) for p in range(self.history.partitions)])
        reads = self.history.polls["reader"]
        while not self._stop.is_set():
            for message in consumer.consume(500, timeout=0.05):
                if message.error() is None:
                    reads.append((place_of(message), Value.parse(message.value())))
        consumer.close()

    # --- everything else --------------------------------------------------------------------------

    def _do_chores(self) -> None:
        """Commit ever greater offsets, create and delete topics: metadata and coordinators have work too."""
        admin = self._users.admin("clerk", {"bootstrap.servers": self._address, **QUIET})
        consumer = new_consumer(self._address, self._users)
        where = [TopicPartition(TOPIC, 0)]
        number = told = 0
        while not self._stop.is_set():
            number += 1
            try:
                consumer.commit(offsets=[TopicPartition(TOPIC, 0, number)], asynchronous=False)
                told = number
            except KafkaException:
                time.sleep(0.02)
            try:
                asked = told
                [committed] = consumer.committed(where, timeout=2)
                self.history.commits.append((asked, max(committed.offset, 0)))
            except KafkaException:
                time.sleep(0.02)
            try:
                if number % 2:
                    admin.create_topics([NewTopic(f"brief-{number}", 1, 1)])[f"brief-{number}"].result(1)
                else:
                    name = f"brief-{number - 1}"
                    admin.delete_topics([name], operation_timeout=1)[name].result(1)
            except KafkaException:
                time.sleep(0.02)
            except TimeoutError:
                continue
            self._stop.wait(0.05)
        consumer.close()


def new_consumer(address: str, users: Users = ANYBODY) -> Consumer:
    return users.consumer(
        "reader",
        {
            "bootstrap.servers": address,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 20,
            "fetch.error.backoff.ms": 20,
            **QUIET,
        },
    )


def create_ledger(
    address: str, partitions: int, replicas: int = 1, users: Users = ANYBODY, **configs: str
) -> None:
    admin = users.admin("clerk", {"bootstrap.servers": address, **QUIET})
    config = {key.replace("_", "."): value for key, value in configs.items()}
    admin.create_topics([NewTopic(TOPIC, partitions, replicas, config=config)])[TOPIC].result(PATIENCE_S)


def place_of(message: Message[Any, Any]) -> Place:
    """Where a record that was read is."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None
    return Place(partition, offset)


def read_at_the_end(address: str, history: History, silence_s: float = 60, users: Users = ANYBODY) -> None:
    """Fill in `final`, and begin some reads in the middle; a log that is silent so long has nothing more."""
    seeks = 20
    consumer = new_consumer(address, users)
    ends = {
        partition: consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=PATIENCE_S)[1]
        for partition in range(history.partitions)
    }
    history.final = {partition: [] for partition in ends}
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in ends])
    left = {partition for partition, end in ends.items() if end > 0}
    silent_since = time.monotonic()
    while left and time.monotonic() < silent_since + silence_s:
        messages = consumer.consume(10_000, timeout=0.5)
        if messages:
            silent_since = time.monotonic()
        for message in messages:
            if message.error() is not None:
                history.refused.append(f"reading: {message.error()}")
                left.discard(message.partition())
                continue
            partition, offset = place_of(message)
            history.final[partition].append((offset, Value.parse(message.value())))
            if offset + 1 >= ends[partition]:
                left.discard(partition)
    if left:
        history.refused.append(f"the partitions {sorted(left)} cannot be read to their ends {ends}")
        seeks = 0
    dice = random.Random(history.acknowledged_count)
    for partition, end in ends.items():
        for offset in dice.sample(range(end), min(seeks, end)):
            consumer.assign([TopicPartition(TOPIC, partition, offset)])
            found = [m for m in consumer.consume(1, timeout=silence_s) if m.error() is None]
            first = place_of(found[0]).offset if found else -1
            history.seeks.append((Place(partition, offset), first))
    consumer.close()
