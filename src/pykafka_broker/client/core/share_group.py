"""A consumer of a share group (KIP-932), without I/O: its membership, and its session with one leader.

    1. `Membership`: heartbeats to the group's coordinator, which assigns the partitions to read.
    2. `ShareSession`, one per leader of these partitions: `fetch` acquires records and acknowledges earlier
       ones, `close` acknowledges the last ones; the leader then releases records that are not acknowledged.

An acquired offset without a record, such as a transaction marker, is acknowledged as a gap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import IntEnum
from itertools import groupby

from pykafka_broker.client.core.frames import MAX_RESPONSE_BYTES
from pykafka_broker.client.core.retries import RETRIABLE
from pykafka_broker.protocol.epochs import FINAL_EPOCH, INITIAL_EPOCH, JOIN_EPOCH, LEAVE_EPOCH, next_epoch
from pykafka_broker.protocol.errors import ErrorCode, KafkaError, error_of
from pykafka_broker.protocol.messages import share_acknowledge, share_fetch
from pykafka_broker.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from pykafka_broker.protocol.records.batch import Record, iter_batches, read_records
from pykafka_broker.system.named_tuple import NamedTuple

#: `share.acquire.mode`: whole batches, or at most the requested number of records.
BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
#: The member was removed from the group, and joins again.
REMOVED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
#: The leader does not know the session; a new one has to begin.
NO_SESSION = frozenset({ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH})


class Acknowledgement(IntEnum):
    """How an acquired record is acknowledged."""

    #: There is no record at this offset.
    GAP = 0
    #: Done.
    ACCEPT = 1
    #: For another delivery.
    RELEASE = 2
    #: Never again.
    REJECT = 3


class Acquired(NamedTuple):
    """A record that this consumer has acquired."""

    partition: int
    record: Record
    #: How often it was delivered, this time included.
    delivery_count: int
    is_append_time: bool


class Membership:
    """One member of a share group. `member_id` is chosen by the client, at most 36 characters."""

    def __init__(self, group: str, member_id: str, topics: Collection[str]) -> None:
        self.group = group
        self.member_id = member_id
        self._topics = list(topics)
        self.epoch = JOIN_EPOCH
        #: The assigned partitions: (topic id, partition).
        self.assigned: frozenset[tuple[bytes, int]] = frozenset()
        #: The interval between heartbeats.
        self.interval_ms = 0

    def leave(self) -> None:
        """Leave the group with the next heartbeat."""
        self.epoch = LEAVE_EPOCH

    def heartbeat(self) -> ShareGroupHeartbeatRequest:
        """The next heartbeat."""
        return ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            subscribed_topic_names=self._topics if self.epoch == JOIN_EPOCH else None,
        )

    def answered(self, response: ShareGroupHeartbeatResponse) -> bool:
        """Process the answer; return whether another heartbeat is due at once, to join again.

        Raises:
            KafkaError: the coordinator refuses this member.
        """
        if response.error_code in REMOVED and self.epoch == LEAVE_EPOCH:
            return False  # it was removed before it could leave
        if response.error_code in REMOVED and self.epoch > JOIN_EPOCH:
            self.epoch, self.assigned = JOIN_EPOCH, frozenset()
            return True
        if response.error_code:
            raise KafkaError(error_of(response.error_code), response.error_message)
        self.epoch = response.member_epoch
        self.interval_ms = response.heartbeat_interval_ms
        if response.assignment is not None:
            self.assigned = frozenset(
                (topic.topic_id, partition)
                for topic in response.assignment.topic_partitions
                for partition in topic.partitions
            )
        return False


class ShareSession:
    """The session of a member with one leader, for partitions of one topic."""

    def __init__(self, membership: Membership, topic_id: bytes) -> None:
        self._membership = membership
        self._topic_id = topic_id
        self.epoch = INITIAL_EPOCH
        self._partitions: set[int] = set()
        #: Partition -> offset -> acknowledgement to send.
        self._pending: dict[int, dict[int, Acknowledgement]] = {}
        #: Whether the last answer shows that a partition has another leader.
        self.has_moved = False
        #: Bytes of records in the answers so far.
        self.bytes = 0
        #: Acknowledgements that the leader refused, as (partition, error).
        self.refused: list[tuple[int, ErrorCode]] = []

    @property
    def has_begun(self) -> bool:
        return self.epoch != INITIAL_EPOCH

    def acknowledge(self, partition: int, offset: int, acknowledgement: Acknowledgement) -> None:
        """Acknowledge an acquired record with the next request."""
        self._pending.setdefault(partition, {})[offset] = acknowledgement

    def fetch(
        self,
        partitions: Collection[int],
        *,
        max_records: int,
        max_wait_ms: int,
        partition_max_bytes: int,
        acquire_mode: int = BATCH_OPTIMIZED,
    ) -> share_fetch.ShareFetchRequest:
        """A request to acquire records of these partitions, and to acknowledge; answered to `fetched`."""
        if not self.has_begun:
            # A new session accepts none: the records of the old session were released with it.
            self._pending.clear()
        # The leader takes acknowledgements also for partitions that are forgotten with the same request.
        told = sorted({*partitions} - self._partitions | self._pending.keys())
        forgotten = sorted(self._partitions.union(told).difference(partitions))
        request = share_fetch.ShareFetchRequest(
            group_id=self._membership.group,
            member_id=self._membership.member_id,
            share_session_epoch=self.epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=min(partition_max_bytes * max(len(partitions), 1), MAX_RESPONSE_BYTES),
            max_records=max_records,
            batch_size=max_records,
            share_acquire_mode=acquire_mode,
            topics=[share_fetch.FetchTopic(topic_id=self._topic_id, partitions=self._to_fetch(told))]
            if told
            else [],
            forgotten_topics_data=[share_fetch.ForgottenTopic(topic_id=self._topic_id, partitions=forgotten)]
            if forgotten
            else [],
        )
        self._partitions = {*partitions}
        self._pending.clear()
        return request

    def _to_fetch(self, told: Collection[int]) -> list[share_fetch.FetchPartition]:
        return [
            share_fetch.FetchPartition(
                partition_index=partition,
                acknowledgement_batches=[
                    share_fetch.AcknowledgementBatch(
                        first_offset=first, last_offset=last, acknowledge_types=types
                    )
                    for first, last, types in acknowledgement_batches(self._pending.get(partition, {}))
                ],
            )
            for partition in told
        ]

    def fetched(self, response: share_fetch.ShareFetchResponse) -> list[Acquired]:
        """The records in an answer.

        Raises:
            KafkaError: the leader refuses the request. After an error in `NO_SESSION` the next `fetch` begins
                a new session. Or it refuses a partition, and no other has records; with records, which must
                not be lost, the error is left to the next answer.
        """
        self._went_on(response.error_code, response.error_message)
        self.has_moved = False
        found: list[Acquired] = []
        refusal: KafkaError | None = None
        for topic in response.responses:
            for answer in topic.partitions:
                self._note(answer.partition_index, answer.acknowledge_error_code)
                if answer.error_code in RETRIABLE:
                    self.has_moved = True
                elif answer.error_code:
                    refusal = KafkaError(error_of(answer.error_code), answer.error_message)
                else:
                    found += self._records(answer)
        if refusal is not None and not found:
            raise refusal
        return found

    def _records(self, answer: share_fetch.PartitionData) -> Iterator[Acquired]:
        data, partition = answer.records, answer.partition_index
        if not answer.acquired_records or not data:
            return
        self.bytes += len(data)
        missing = {
            offset: run.delivery_count
            for run in answer.acquired_records
            for offset in range(run.first_offset, run.last_offset + 1)
        }
        for at, header in iter_batches(data):
            if header.is_control:
                continue
            for record in read_records(data[at:]):
                count = missing.pop(record.offset, None)
                if count is not None:
                    yield Acquired(partition, record, count, header.timestamp_type == 1)
        for offset in missing:
            self.acknowledge(partition, offset, Acknowledgement.GAP)

    def acknowledging(self) -> share_acknowledge.ShareAcknowledgeRequest:
        """A request to acknowledge without a fetch. The answer goes to `acknowledged`."""
        return self._acknowledging(self.epoch)

    def close(self) -> share_acknowledge.ShareAcknowledgeRequest:
        """A request to acknowledge and to end the session. The answer goes to `closed`."""
        return self._acknowledging(FINAL_EPOCH)

    def _acknowledging(self, epoch: int) -> share_acknowledge.ShareAcknowledgeRequest:
        partitions = [
            share_acknowledge.AcknowledgePartition(
                partition_index=partition,
                acknowledgement_batches=[
                    share_acknowledge.AcknowledgementBatch(
                        first_offset=first, last_offset=last, acknowledge_types=types
                    )
                    for first, last, types in acknowledgement_batches(pending)
                ],
            )
            for partition, pending in sorted(self._pending.items())
            if pending
        ]
        topic = share_acknowledge.AcknowledgeTopic(topic_id=self._topic_id, partitions=partitions)
        self._pending.clear()
        return share_acknowledge.ShareAcknowledgeRequest(
            group_id=self._membership.group,
            member_id=self._membership.member_id,
            share_session_epoch=epoch,
            topics=[topic] if partitions else [],
        )

    def acknowledged(self, response: share_acknowledge.ShareAcknowledgeResponse) -> None:
        """Process the answer.

        Raises:
            KafkaError: as `fetched`.
        """
        self._went_on(response.error_code, response.error_message)
        self._note_all(response)

    def closed(self, response: share_acknowledge.ShareAcknowledgeResponse) -> None:
        """Process the answer. A session that the leader does not know has ended, too.

        Raises:
            KafkaError: the leader refuses the request.
        """
        if response.error_code and response.error_code not in NO_SESSION:
            raise KafkaError(error_of(response.error_code), response.error_message)
        self._note_all(response)

    def _went_on(self, error_code: int, message: str | None) -> None:
        if error_code:
            if error_code in NO_SESSION:
                self.epoch, self._partitions = INITIAL_EPOCH, set()
            raise KafkaError(error_of(error_code), message)
        self.epoch = next_epoch(self.epoch)

    def _note_all(self, response: share_acknowledge.ShareAcknowledgeResponse) -> None:
        for topic in response.responses:
            for answer in topic.partitions:
                self._note(answer.partition_index, answer.error_code)

    def _note(self, partition: int, code: int) -> None:
        if code:
            self.refused.append((partition, error_of(code)))


def acknowledgement_batches(
    pending: Mapping[int, Acknowledgement],
) -> Iterator[tuple[int, int, list[int]]]:
    """Runs of offsets for a request: the first, the last, and one type for all or one for each."""
    for _, run in groupby(enumerate(sorted(pending)), lambda each: each[1] - each[0]):
        offsets = [offset for _, offset in run]
        types = [int(pending[offset]) for offset in offsets]
        yield offsets[0], offsets[-1], types[:1] if len({*types}) == 1 else types
