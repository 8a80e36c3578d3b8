"""A ShareFetch: the wait for records, and their acquisition.

Of the fetches that wait at a share partition one reads at a time. When the share partition moves, the fetch
that has waited longest is checked first, and takes the fetch lock if there is enough to read: one new record
wakes one of a hundred members, not all. The others are checked when it has read.

As in Apache Kafka a share partition that cannot be loaded does not end the wait, or its members would retry
at once. A share partition that has moved to another leader does end it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.sharing.reading import PartitionRead, read_batches
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.share_fetch import AcquiredRecords, LeaderIdAndEpoch, PartitionData
from pykafka_broker.share.core.events import Acquired, AcquireMode, Result
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.ports.share_partitions import LedSharePartition
    from pykafka_broker.apis.sharing.sessions import Answer, Member, Place
    from pykafka_broker.log.partition.limit import Limit
    from pykafka_broker.log.partition.partition_log import PartitionLog


class ShareLimits(NamedTuple):
    """The limits of a fetch."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    mode: AcquireMode


def answer_of(place: Place, error: ErrorCode = ErrorCode.NONE) -> PartitionData:
    """The answer of a partition without records."""
    return PartitionData(
        partition_index=place[1],
        error_code=int(error),
        acknowledge_error_code=0,
        current_leader=LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
        records=b"",
        acquired_records=[],
    )


class ShareFetch:
    """One fetch of existing partitions that the member may read, each with its topic's name."""

    def __init__(
        self,
        partitions: Iterable[tuple[Place, str]],
        member: Member,
        limits: ShareLimits,
        ctx: RequestContext,
    ) -> None:
        self._topics = dict(partitions)
        self._member = member
        self._limits = limits
        self._ctx = ctx
        self._id = ctx.node.share_partitions.new_fetch_id()
        self._limit: Limit = ctx.node.share_partitions.settings_of(member.group_id).limit
        self._open: dict[Place, LedSharePartition] = {}
        #: Partitions that cannot be served in this fetch.
        self._errors: dict[Place, ErrorCode] = {}
        #: The partitions whose fetch lock this fetch holds, and the offsets to read from.
        self._held: dict[Place, int] = {}

    async def answers(self) -> list[Answer]:
        """The answer of each partition that was read or has an error; other partitions have none.

        Raises:
            Disconnected: the client has gone.
        """
        try:
            self._look()
            if len(self._errors) < len(self._topics):
                await self._wait()
                self._held = self._held or self._taken()
            return await self._read()
        finally:
            self._give_back(self._held, has_read=True)

    # ---- waiting ----

    async def _wait(self) -> None:
        """Return when this fetch holds locks with enough to read, or its time is up."""
        node, connection = self._ctx.node, self._ctx.connection
        delayed = node.purgatory.share_fetches
        until_ms = node.clock.monotonic_ms() + self._limits.max_wait_ms
        while not self._is_ready():
            places = {each.partition.log: place for place, each in self._open.items()}
            watched: list[Any] = [*self._open.values(), *places]
            ready = partial(self._is_ready_after, places)
            delayed.begin(len(watched))
            try:
                moved = await node.purgatory.wait(watched, until_ms, connection, ready)
            finally:
                delayed.end(len(watched))
            if not moved or self._look():
                return

    def _look(self) -> bool:
        """Open the share partitions, and begin to load new ones; whether some now cannot be served here."""
        errors_before = len(self._errors)
        for place in self._topics:
            known = self._open.get(place)
            if place not in self._errors and (known is None or known.is_fenced):
                self._open.pop(place, None)
                try:
                    self._open_at(place)
                except KafkaError as error:
                    self._errors[place] = error.code
        return len(self._errors) > errors_before

    def _open_at(self, place: Place) -> None:
        node, (topic_id, index), name = self._ctx.node, place, self._topics[place]
        partition = node.partitions.led(name, index)
        if partition is None:
            raise KafkaError(node.partitions.why_not_led(name, index))
        if partition.topic_id != topic_id:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        opened = self._open[place] = node.share_partitions.open(self._member.group_id, partition)
        opened.initialize(partial(self._loaded, place))

    def _loaded(self, place: Place, result: Result) -> None:
        if result.error not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
            self._errors[place] = result.error
            self._open.pop(place, None)

    def _is_ready_after(self, places: Mapping[PartitionLog, Place], moved: Any) -> bool:
        """Whether the wait is over after a move of a share partition, or of one of these logs; neither waits
        nor raises.

        A log without records to read moves for followers; then the other partitions are not checked.
        """
        place = places.get(moved)
        return (place is None or self._has_something(place)) and self._is_ready()

    def _has_something(self, place: Place) -> bool:
        share_partition = self._open.get(place)
        if share_partition is None or share_partition.is_fenced:
            return True
        offset = share_partition.earliest_begin()
        return offset is not None and self._readable_bytes({place: offset}, self._limits.max_bytes) > 0

    def _is_ready(self) -> bool:
        """Whether the wait is over; the fetch locks are held if there is enough to read."""
        if self._held:
            return True
        if any(share_partition.is_fenced for share_partition in self._open.values()):
            return True  # it must be opened anew, or has another leader
        if not self._may_be_ready():
            return False
        held = self._taken()
        if held and self._is_enough(held, self._limits.max_bytes // len(held)):
            self._held = held
            return True
        self._give_back(held, has_read=False)
        return False

    def _may_be_ready(self) -> bool:
        """Whether taking the fetch locks may succeed: most checks of waiting fetches end here."""
        begins = {
            place: offset
            for place, share_partition in self._open.items()
            if (offset := share_partition.earliest_begin()) is not None
        }
        return bool(begins) and self._is_enough(begins, self._limits.max_bytes)

    def _taken(self) -> dict[Place, int]:
        """Take all available fetch locks; the offsets to read from."""
        held = {}
        for place in self._topics:
            share_partition = self._open.get(place)
            if share_partition is None or self._ctx.node.cold_reads.is_late(share_partition.partition.log):
                continue
            offset = share_partition.begin_fetch(self._id)
            if offset is not None:
                held[place] = offset
        return held

    def _give_back(self, held: Iterable[Place], *, has_read: bool) -> None:
        for place in held:
            share_partition = self._open.get(place)
            if share_partition is not None:
                share_partition.end_fetch(self._id, has_read=has_read)

    def _is_enough(self, begins: dict[Place, int], most_bytes: int) -> bool:
        """Whether there are `min_bytes` to read, at most `most_bytes` per partition, or there is an error."""
        return self._readable_bytes(begins, most_bytes) >= self._limits.min_bytes

    def _readable_bytes(self, begins: dict[Place, int], most_bytes: int) -> float:
        """About how many bytes there are to read, at most `most_bytes` per partition; infinite for an error.

        As in Apache Kafka all records from the fetch's offset on count, even those acquired by other members.
        """
        readable_bytes = 0
        for place, offset in begins.items():
            log = self._open[place].partition.log
            state = log.state
            if state.closed or state.offline is not None:
                return math.inf
            if not state.log_start_offset <= offset <= state.log_end_offset:
                return math.inf
            readable_bytes += min(log.reader.available_bytes(offset, self._limit), most_bytes)
        return readable_bytes

    # ---- reading ----

    async def _read(self) -> list[Answer]:
        """Read the partitions whose locks are held, each up to its share of the limits, and acquire."""
        answers: list[Answer] = []
        left_bytes, left_records, read_ahead = self._limits.max_bytes, self._limits.max_records, 0
        each_bytes, more_bytes = divmod(left_bytes, max(1, len(self._held)))
        has_records = False
        try:
            for place in self._topics:
                if place in self._errors:
                    answers.append((place, answer_of(place, self._errors[place])))
                elif place in self._held:
                    most_bytes, more_bytes = min(each_bytes + more_bytes, left_bytes), 0
                    try:
                        answer, acquired, read_bytes = await self._read_at(
                            place, most_bytes, left_records, is_first=not has_records
                        )
                    except KafkaError as error:
                        answers.append((place, answer_of(place, error.code)))
                        continue
                    answers.append((place, answer))
                    self._ctx.connection.reads_ahead(read_bytes)
                    read_ahead += read_bytes
                    has_records = has_records or read_bytes > 0
                    left_bytes -= read_bytes
                    left_records -= acquired
        finally:
            self._ctx.connection.reads_ahead(-read_ahead)
        return answers

    def _is_at_end(self, log: PartitionLog, offset: int) -> bool:
        """Whether a read would find neither a batch nor an error."""
        state = log.state
        is_in_range = state.limit_offset(self._limit) <= offset <= state.log_end_offset
        return is_in_range and not state.closed and state.offline is None

    async def _read_at(
        self, place: Place, most_bytes: int, max_records: int, *, is_first: bool
    ) -> tuple[PartitionData, int, int]:
        """The answer of one partition, the number of acquired records, and the bytes of the answer.

        Raises:
            KafkaError: the partition cannot be read.
        """
        share_partition, offset = self._open[place], self._held[place]
        answer = answer_of(place)
        if self._limits.max_bytes < 0:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if max_records <= 0 or self._is_at_end(share_partition.partition.log, offset):
            return answer, 0, 0
        before_offset = share_partition.offsets_wanted(max_records)
        wanted = PartitionRead(offset, before_offset, most_bytes, self._limit, minimum_one_batch=is_first)
        try:
            read = await read_batches(share_partition.partition.log, wanted, self._ctx.node)
        except KafkaError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            share_partition.log_start_moved()
            return answer, 0, 0
        if not read.batches or self._ctx.connection.closed:
            return answer, 0, 0
        acquired: Acquired = share_partition.acquire(
            self._member.member_id,
            offset,
            tuple(read.batches),
            max_records=max_records,
            batch_size=self._limits.batch_size,
            mode=self._limits.mode,
            aborted=tuple(read.aborted),
        )
        answer.records = read.records_of(acquired.records)
        answer.acquired_records = [
            AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in acquired.records
        ]
        return answer, acquired.size, len(answer.records)
