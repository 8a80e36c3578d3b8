"""Fetching: the records of some partitions of a topic, between two offsets of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pykafka_broker.cli.interrupts import Interrupts
from pykafka_broker.cli.offsets import LONG_MAX
from pykafka_broker.cli.suggestions import known_topic, same_topic
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.metadata import leaders_of, partition_error
from pykafka_broker.client.core.retries import RETRIABLE
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from pykafka_broker.protocol.records.aborted_transactions import AbortedTransactions
from pykafka_broker.protocol.records.batch import Record, iter_batches, read_records
from pykafka_broker.system.named_tuple import NamedTuple

MAX_WAIT_MS = 500
PARTITION_MAX_BYTES = 1024 * 1024
READ_COMMITTED = 1
#: The errors of a topic that may have been deleted, or created again.
OF_LOST_TOPICS = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class ReadRecord(NamedTuple):
    """A record, and the partition that it is from."""

    partition: int
    is_append_time: bool
    record: Record


class Reader:
    """Fetches from some partitions of one topic, in the order of their leaders."""

    def __init__(
        self,
        client: Client,
        topic: str,
        positions: dict[int, int],
        ends: dict[int, int] | None = None,
        *,
        read_committed: bool = False,
        interrupts: Interrupts | None = None,
    ) -> None:
        self.client = client
        self.topic = topic
        #: The next offset of each partition.
        self.positions = positions
        #: The offsets to stop at; a partition that is not in here goes on forever.
        self.ends = ends or {}
        self.read_committed = read_committed
        #: Bytes of the answers so far.
        self.bytes = 0
        self._interrupts = interrupts or Interrupts()
        #: Goes on from one attempt to the next while a leader does not answer.
        self._attempts: Iterator[bool] | None = None
        found = known_topic(client, topic, led=positions)
        self.topic_id: bytes = found.topic_id
        self.leaders = leaders_of(found)

    def _learn_leaders(self) -> None:
        try:
            self.leaders = leaders_of(same_topic(self.client, self.topic, self.topic_id, led=self.unfinished))
        except KafkaError as error:
            if error.code in OF_LOST_TOPICS:
                # They are not to be committed: a topic that was created again has other records there.
                self.positions.clear()
            raise

    @property
    def unfinished(self) -> list[int]:
        """The partitions that have not reached their end."""
        return [p for p, position in self.positions.items() if position < self.ends.get(p, LONG_MAX)]

    @property
    def is_finished(self) -> bool:
        """Whether all partitions have reached their end."""
        return not self.unfinished

    @property
    def distance(self) -> int | None:
        """The number of offsets up to the end; None without one."""
        if set(self.ends) != set(self.positions):
            return None
        return sum(max(end - self.positions[p], 0) for p, end in self.ends.items())

    def poll(self) -> Iterator[ReadRecord]:
        """The records that one round of fetches brings; none if there were none for a while.

        Raises:
            KafkaError: a partition cannot be read, or not at its offset.
            OSError: a leader has not answered for the client's time-out, and there is no other.
            KeyboardInterrupt: a signal came before an answer.
        """
        by_leader: dict[int, list[int]] = {}
        for partition in self.unfinished:
            by_leader.setdefault(self.leaders[partition], []).append(partition)
        missing = None
        for leader, partitions in sorted(by_leader.items()):
            try:
                response = self._fetch(leader, partitions)
            except OSError as error:
                missing = error
            else:
                yield from self._answered(response)
        if missing is None:
            self._attempts = None
        else:
            self._look_again(missing)

    def _look_again(self, error: OSError) -> None:
        """Look up the leaders again: the one that has not answered may have stopped, and another may lead."""
        if self._attempts is None:
            self._attempts = self.client.attempts()
        with self._interrupts.waiting():
            if next(self._attempts):
                raise error
            self.client.retrying(self._learn_leaders)

    def _fetch(self, leader: int, partitions: list[int]) -> FetchResponse:
        request = FetchRequest(
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            isolation_level=READ_COMMITTED if self.read_committed else 0,
            topics=[
                FetchTopic(
                    topic=self.topic,
                    topic_id=self.topic_id,
                    partitions=[
                        FetchPartition(
                            partition=partition,
                            fetch_offset=self.positions[partition],
                            partition_max_bytes=PARTITION_MAX_BYTES,
                        )
                        for partition in partitions
                    ],
                )
            ],
        )
        with self._interrupts.waiting():
            response: FetchResponse = self.client.send(request, leader)
        return response

    def _answered(self, response: FetchResponse) -> Iterator[ReadRecord]:
        if response.error_code:
            raise KafkaError(ErrorCode(response.error_code))
        for topic in response.responses:
            for answer in topic.partitions:
                if answer.error_code in RETRIABLE | OF_LOST_TOPICS:
                    with self._interrupts.waiting():
                        self._learn_leaders()
                elif answer.error_code:
                    raise self._fetch_error(answer)
                else:
                    yield from self._records(answer)

    def _fetch_error(self, answer: Any) -> KafkaError:
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic}-{answer.partition_index} has no offset "
                f"{self.positions[answer.partition_index]}.",
            )
        return partition_error(answer.error_code, self.topic, answer.partition_index)

    def _records(self, answer: Any) -> Iterator[ReadRecord]:
        partition = answer.partition_index
        data = answer.records
        if not data:
            return
        self.bytes += len(data)
        end = self.ends.get(partition, LONG_MAX)
        aborted = AbortedTransactions(
            (each.first_offset, each.producer_id) for each in answer.aborted_transactions or ()
        )
        for at, header in iter_batches(data):
            hidden = self.read_committed and aborted.hides(header, data[at:])
            if not hidden and not header.is_control:
                for record in read_records(data[at:]):
                    if self.positions[partition] <= record.offset < end:
                        self.positions[partition] = record.offset + 1
                        yield ReadRecord(partition, header.timestamp_type == 1, record)
            # After the last record there may be offsets of records that were compacted away, or are hidden.
            self.positions[partition] = max(self.positions[partition], min(header.next_offset, end))
