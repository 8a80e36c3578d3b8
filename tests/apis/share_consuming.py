"""Short words for what members of share groups ask, and for what they are told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import share_acknowledge as acknowledging
from pykafka_broker.protocol.messages import share_fetch as fetching
from pykafka_broker.protocol.records.batch import iter_batches, read_records
from pykafka_broker.share.core.events import AcknowledgeType
from pykafka_broker.share.core.state import Phase
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.user import User
from tests.apis.sharing import GROUP, Sharing

GAP, ACCEPT, RELEASE, REJECT, RENEW = (int(each) for each in AcknowledgeType)
BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
FINAL = -1
LOCK_MS = 30_000
GROUP_RESOURCE = 32

LIMITS: dict[str, Any] = {
    "max_wait_ms": 0,
    "min_bytes": 1,
    "max_bytes": 1 << 20,
    "max_records": 500,
    "batch_size": 500,
}

#: First offset, last offset, types.
Said = tuple[int, ...]


class Member:
    """A member of a share group that keeps its session going."""

    def __init__(
        self,
        user: User,
        topic_id: bytes,
        member_id: str = "ann",
        *,
        group: str | None = GROUP,
        version: int = 2,
    ) -> None:
        self.user = user
        self.topic_id = topic_id
        self.member_id = member_id
        self.group = group
        self.version = version
        self.epoch = 0

    def request(
        self,
        *partitions: int,
        epoch: int | None = None,
        said: Mapping[int, Iterable[Said]] = {},
        forget: Iterable[int] = (),
        topic_id: bytes | None = None,
        **limits: Any,
    ) -> fetching.ShareFetchRequest:
        """A ShareFetch of these partitions, with the next epoch unless another is given."""
        asked = [
            fetching.FetchPartition(
                partition_index=index, acknowledgement_batches=batches(fetching, said.get(index, ()))
            )
            for index in dict.fromkeys((*partitions, *said))
        ]
        forgotten = (
            [fetching.ForgottenTopic(topic_id=self.topic_id, partitions=list(forget))] if forget else []
        )
        return fetching.ShareFetchRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self.epoch if epoch is None else epoch,
            topics=[fetching.FetchTopic(topic_id=topic_id or self.topic_id, partitions=asked)]
            if asked
            else [],
            forgotten_topics_data=forgotten,
            **(LIMITS | limits),
        )

    async def fetch(self, *partitions: int, **details: Any) -> fetching.ShareFetchResponse:
        """Fetch, and go on to the next epoch."""
        answer: fetching.ShareFetchResponse = await self.user.send(
            self.request(*partitions, **details), self.version
        )
        if not answer.error_code:
            self.epoch += 1
        return answer

    async def try_to_fetch(self, *partitions: int, **details: Any) -> ErrorCode:
        """The error of a whole fetch."""
        return ErrorCode((await self.fetch(*partitions, **details)).error_code)

    async def opened(self, home: Home, *partitions: int) -> None:
        """Begin a session of these partitions, and wait until their states are loaded."""
        await self.fetch(*partitions)
        for index in partitions:
            await until(partial(self._is_loaded, home, index))

    def _is_loaded(self, home: Home, index: int) -> bool:
        shares: Any = home.broker.node.broker.ports.share_partitions
        found = shares.find(self.group, self.topic_id, index)
        return found is not None and found.state.phase is Phase.ACTIVE

    async def acknowledge(
        self, *said: Said, partition: int = 0, epoch: int | None = None, **details: Any
    ) -> acknowledging.ShareAcknowledgeResponse:
        """Acknowledge in one partition, and go on to the next epoch."""
        asked = acknowledging.AcknowledgePartition(
            partition_index=partition, acknowledgement_batches=batches(acknowledging, said)
        )
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self.epoch if epoch is None else epoch,
            topics=[acknowledging.AcknowledgeTopic(topic_id=self.topic_id, partitions=[asked])],
            **details,
        )
        answer: acknowledging.ShareAcknowledgeResponse = await self.user.send(request, self.version)
        if not answer.error_code:
            self.epoch += 1
        return answer


def batches(messages: Any, said: Iterable[Said]) -> list[Any]:
    return [
        messages.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
        for first, last, *types in said
    ]


def partitions_of(answer: Any) -> list[Any]:
    return [partition for topic in answer.responses for partition in topic.partitions]


def errors_of(answer: Any) -> dict[int, ErrorCode]:
    """By partition."""
    assert answer.error_code == 0
    return {each.partition_index: ErrorCode(each.error_code) for each in partitions_of(answer)}


def acknowledged(answer: fetching.ShareFetchResponse) -> dict[int, ErrorCode]:
    """What became of the acknowledgements that came with a fetch."""
    assert answer.error_code == 0
    return {each.partition_index: ErrorCode(each.acknowledge_error_code) for each in partitions_of(answer)}


def acquired(answer: fetching.ShareFetchResponse, partition: int = 0) -> list[tuple[int, int, int]]:
    """First offset, last offset and delivery count of what was acquired in one partition."""
    assert answer.error_code == 0
    for each in partitions_of(answer):
        if each.partition_index == partition:
            assert each.error_code == 0
            return [
                (records.first_offset, records.last_offset, records.delivery_count)
                for records in each.acquired_records
            ]
    return []


def values(answer: fetching.ShareFetchResponse, partition: int = 0) -> list[bytes | None]:
    """The values of the acquired records of one partition, as a client picks them from the batches."""
    offsets = {offset for first, last, _ in acquired(answer, partition) for offset in range(first, last + 1)}
    found = []
    for each in partitions_of(answer):
        if each.partition_index == partition:
            data = bytes(each.records)
            for position, header in iter_batches(data):
                if not header.is_control:
                    found += [
                        record.value
                        for record in read_records(data[position : position + header.size_in_bytes])
                        if record.offset in offsets
                    ]
    return found


async def shared(user: User, *partitions: int, group: str = GROUP, start_offset: int = 0) -> bytes:
    """A topic with two partitions, of which the group begins in these; its id."""
    sharing = await Sharing.of(user)
    await sharing.initialize(*partitions or (0,), group=group, start_offset=start_offset)
    return sharing.topic_id
