"""A librdkafka producer with its defaults and acks=all, which looks for leaders in its own time. It sees what
the gaps of `cluster.py` are for those who use a client.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType

from confluent_kafka import KafkaError, Message, Producer

RECORD = bytes(100)
#: How long it rests between two records, several of which may be on their way: the resolution of a gap.
REST_S = 0.005
PATIENCE_S = 90.0


class StockProducer:
    """Writes records to a partition from a thread of its own; `delivered` are the moments of answers, with
    those at which their records were given to the client.
    """

    def __init__(self, bootstrap_servers: str, topic: str, partition: int) -> None:
        self.delivered: list[tuple[float, float]] = []
        self.failed: list[KafkaError] = []
        self._topic, self._partition = topic, partition
        quiet = {"log_level": 0}
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all", **quiet})
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> StockProducer:
        self._thread.start()
        self.another(time.perf_counter())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join()
        self._producer.flush(PATIENCE_S)

    def _write(self) -> None:
        while not self._ends.is_set():
            given = time.perf_counter()

            def answered(error: KafkaError | None, _: Message, given: float = given) -> None:
                if error is None:
                    self.delivered.append((given, time.perf_counter()))
                else:
                    self.failed.append(error)

            self._producer.produce(self._topic, RECORD, partition=self._partition, on_delivery=answered)
            self._producer.poll(REST_S)

    def another(self, since: float) -> None:
        """Return when a record is delivered that was given to the client after `since`.

        Raises:
            TimeoutError: there is none in time.
        """
        deadline = time.perf_counter() + PATIENCE_S
        while not (self.delivered and self.delivered[-1][0] > since):
            if time.perf_counter() > deadline:
                raise TimeoutError(f"no record is delivered within {PATIENCE_S} s; failed: {self.failed[:1]}")
            time.sleep(REST_S)
