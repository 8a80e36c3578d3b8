"""A topic as brokers serve it: an iterator over the batches of its partitions, which connects, waits and
tries again.

Each broker has one answer under way while another one is in use: the next one is requested as soon as an
answer has come and its end offsets are known, so the broker works while the records are decoded.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Collection, Iterator, Mapping

from pykafka_broker.arrow.core.fetched import TopicName, fetch_request, take_answer
from pykafka_broker.arrow.core.limits import Limits
from pykafka_broker.arrow.core.stored_batches import OffsetRange, StoredBatch
from pykafka_broker.arrow.ranges import EARLIEST, LATEST
from pykafka_broker.client.blocking import BlockingConnection, Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.core.metadata import leaders_of, topic_error
from pykafka_broker.client.core.retries import RETRIABLE, RETRY_PAUSE_MS
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.fetch import FetchResponse, PartitionData
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

#: The errors that pass while the leader of a partition changes, or a broker starts. If the topic is gone, or
#: another one has its name, the look-up of the leaders raises an error.
PASSING = RETRIABLE | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.REPLICA_NOT_AVAILABLE,
}


class TopicReader:
    """The partitions of one topic, through one client."""

    def __init__(self, client: Client, topic: str, isolation_level: int, limits: Limits) -> None:
        """Ask for the partitions.

        Raises:
            KafkaError: there is no such topic.
            ConnectionError: no broker answers.
        """
        self._client = client
        self._isolation_level = isolation_level
        self._limits = limits
        self._topic = TopicName(topic, b"")
        self._leaders: Mapping[int, int] = {}
        self._find_leaders(())
        #: The connections of the brokers that owe an answer.
        self._asked: dict[int, BlockingConnection] = {}
        #: The offsets still to be read by partition; the partitions that were answered last come last.
        self._ranges: dict[int, OffsetRange] = {}
        #: When a partition last made progress.
        self._moved_s = 0.0
        #: When each broker that leads partitions still to be read began to fail.
        self._failing_since_s: dict[int, float] = {}

    @property
    def partitions(self) -> list[int]:
        """All partitions of the topic."""
        return list(self._leaders)

    def _find_leaders(self, needed: Collection[int]) -> None:
        """Look up the leaders, once these partitions have one."""
        name, topic_id = self._topic
        found = self._client.topic(name, led=needed)
        if topic_id not in (b"", found.topic_id):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"Topic '{name}' was deleted and created again.")
        self._topic = TopicName(name, found.topic_id)
        self._leaders = leaders_of(found)

    # -- offsets
    # ----------

    def look_up(self, times: Mapping[int, int]) -> dict[int, int]:
        """The first offset of each partition at or after a time; -1 where there is none. EARLIEST and
        LATEST stand for the ends of the log.

        Raises:
            KafkaError: a partition cannot be read.
        """
        return self._client.retrying(lambda: self._look_up(times), PASSING)

    def _look_up(self, times: Mapping[int, int]) -> dict[int, int]:
        self._find_leaders(times)
        found: dict[int, int] = {}
        for leader in sorted({self._leaders[partition] for partition in times}):
            asked = [
                ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
                for partition, timestamp in times.items()
                if self._leaders[partition] == leader
            ]
            # The end follows the isolation level; a time is looked up among all records.
            is_end = any(each.timestamp == LATEST for each in asked)
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=self._isolation_level if is_end else 0,
                topics=[ListOffsetsTopic(name=self._topic.name, partitions=asked)],
            )
            response: ListOffsetsResponse = self._client.send(request, leader)
            for answer in response.topics[0].partitions:
                if answer.error_code:
                    raise topic_error(answer.error_code, f"{self._topic.name}-{answer.partition_index}")
                found[answer.partition_index] = answer.offset
        return found

    # -- batches
    # ----------

    def batches(self, ranges: Mapping[int, OffsetRange], *, follow: bool) -> Iterator[list[StoredBatch]]:
        """The batches with these offsets, as answers bring them, in the order of the offsets of every
        partition. A reader that follows waits for new ones.

        Raises:
            KafkaError: a partition cannot be read at its offset; REQUEST_TIMED_OUT, nothing comes before
                its end.
            ConnectionError: a broker is away for longer than the time-out.
        """
        self._ranges = {
            partition: wanted for partition, wanted in ranges.items() if wanted.start < wanted.end
        }
        self._moved_s = time.monotonic()
        while self._ranges:
            try:
                self._ask()
                leaders = self._answered()
            except (ConnectionError, KafkaError) as error:
                self._recover(error)
                continue
            for leader in leaders:
                batches, trouble = self._next(leader)
                if batches:
                    given_s = time.monotonic()
                    yield batches
                    self._leave_out(time.monotonic() - given_s)
                if trouble is not None:
                    self._recover(trouble)
                    break
            else:
                if not follow:
                    self._insist_on_progress()

    def _ask(self) -> None:
        """Send a request to each broker that owes no answer and leads a partition still to be read."""
        for leader in {self._leaders[partition] for partition in self._ranges} - self._asked.keys():
            positions = {p: wanted.start for p, wanted in self._ranges.items() if self._leaders[p] == leader}
            try:
                connection = self._client.connection(leader)
                connection.post(fetch_request(self._topic, positions, self._isolation_level, self._limits))
            except (ConnectionError, KafkaError):
                self._failing_since_s.setdefault(leader, time.monotonic())
                raise
            self._asked[leader] = connection

    def _answered(self) -> list[int]:
        """The brokers whose answers begin to come; waits until there is one."""
        if len(self._asked) == 1:
            return list(self._asked)
        with selectors.DefaultSelector() as selector:
            for leader, connection in self._asked.items():
                selector.register(connection, selectors.EVENT_READ, leader)
            ready = selector.select(self._limits.timeout_s)
        # If none answers, the first one times out, and the error names it.
        return [key.data for key, _ in ready] or list(self._asked)[:1]

    def _next(self, leader: int) -> tuple[list[StoredBatch], Exception | None]:
        """The batches of a broker's answer, and the temporary error that stopped the next one."""
        batches: list[StoredBatch] = []
        passing: Exception | None = None
        try:
            response: FetchResponse = self._asked.pop(leader).receive()
        except ConnectionError as error:
            self._failing_since_s.setdefault(leader, time.monotonic())
            return batches, error
        check(response.error_code)
        for answer in (answer for topic in response.responses for answer in topic.partitions):
            if not answer.error_code:
                batches += self._take(answer)
            elif answer.error_code in PASSING:
                passing = self._error(answer)
            else:
                raise self._error(answer)
        if passing is not None:
            self._failing_since_s.setdefault(leader, time.monotonic())
            return batches, passing
        self._failing_since_s.pop(leader, None)
        try:
            # The next answer is on its way while the records of this one are decoded.
            self._ask()
        except (ConnectionError, KafkaError) as error:
            passing = error
        return batches, passing

    def _take(self, answer: PartitionData) -> list[StoredBatch]:
        partition = answer.partition_index
        wanted = self._ranges.get(partition)
        if wanted is None:  # was not asked for
            return []
        batches, position = take_answer(self._topic.name, answer, wanted, self._isolation_level)
        if position != wanted.start:
            # Move it behind the others: the first partitions fill an answer.
            del self._ranges[partition]
            if position < wanted.end:
                self._ranges[partition] = OffsetRange(position, wanted.end)
            self._moved_s = time.monotonic()
        return batches

    def _error(self, answer: PartitionData) -> KafkaError:
        partition = answer.partition_index
        name = f"{self._topic.name}-{partition}"
        if answer.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
            return topic_error(answer.error_code, name)
        position = self._ranges[partition].start
        begin = self._look_up({partition: EARLIEST})[partition]
        text = f"{name} has no offset {position}"
        if position < begin:
            text += f": it begins at {begin}, records before that were deleted"
        return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{text}.")

    # -- trouble
    # ----------

    def _recover(self, error: Exception) -> None:
        """Find the leaders after a failure that may pass, and ask again for everything that was not answered.

        Raises:
            ConnectionError, KafkaError: it lasts for longer than the time-out.
        """
        if isinstance(error, KafkaError) and error.code not in PASSING:
            raise error
        now_s = time.monotonic()
        if now_s - min(self._failing_since_s.values(), default=now_s) > self._limits.timeout_s:
            raise error
        for connection in self._asked.values():
            connection.close()
        self._asked.clear()
        time.sleep(RETRY_PAUSE_MS / 1000)
        try:
            self._find_leaders(self._ranges)
        except ConnectionError:
            # The next call tries again.
            return
        leaders = {self._leaders[partition] for partition in self._ranges}
        self._failing_since_s = {
            leader: since for leader, since in self._failing_since_s.items() if leader in leaders
        }

    def _leave_out(self, seconds: float) -> None:
        """Count the time that the caller took for none of the partitions, and for no broker."""
        self._moved_s += seconds
        self._failing_since_s = {leader: since + seconds for leader, since in self._failing_since_s.items()}

    def _insist_on_progress(self) -> None:
        if time.monotonic() - self._moved_s <= self._limits.timeout_s:
            return
        for partition, (start, end) in self._ranges.items():
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"{self._topic.name}-{partition} brings nothing at offset {start}, though its end was {end}.",
            )
