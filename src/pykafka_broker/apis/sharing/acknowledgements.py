"""The acknowledgements in a request, by partition: checked as by Apache Kafka's KafkaApis, then passed to the
share partitions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence, Set
from typing import TYPE_CHECKING, Protocol, Union

from pykafka_broker.apis.sharing.sessions import Member, Place
from pykafka_broker.machine.shard import Prompt
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.share.core.events import OK, AcknowledgementBatch, AcknowledgeType, Result

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

#: The first version of both APIs that knows RENEW (KIP-1222).
RENEW_VERSION = 2

_MALFORMED = Result(ErrorCode.INVALID_REQUEST)
_UNKNOWN_ID = Result(ErrorCode.UNKNOWN_TOPIC_ID)
_DENIED = Result(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
_UNKNOWN = Result(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
#: The group has not fetched from the partition since this node leads it.
_NOT_OPEN = Result(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message)

#: The outcome of one partition; an awaitable if the share partition first writes the acknowledgements.
Answer = Union[Prompt[Result], Awaitable[Result]]


class SaidBatch(Protocol):
    """AcknowledgementBatch of either message."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class SaidPartition(Protocol):
    """A partition of either message."""

    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[SaidBatch]: ...


class SaidTopic(Protocol):
    """A topic of either message."""

    topic_id: bytes

    @property
    def partitions(self) -> Sequence[SaidPartition]: ...


def is_anything_said(topics: Iterable[SaidTopic]) -> bool:
    """Whether a request has any acknowledgements."""
    return any(partition.acknowledgement_batches for topic in topics for partition in topic.partitions)


class Said:
    """The outcomes of a request's acknowledgements; some may have to be written first."""

    __slots__ = ("_outcomes", "_pending")

    def __init__(self, outcomes: dict[Place, Result], pending: dict[Place, Answer]) -> None:
        self._outcomes = outcomes
        self._pending = pending

    async def outcomes(self) -> dict[Place, Result]:
        """The outcome of each partition, once all are written."""
        for place, answer in self._pending.items():
            try:
                self._outcomes[place] = await answer
            except KafkaError as error:  # the node is stopping
                self._outcomes[place] = Result(error.code, error.message)
        return self._outcomes


def acknowledge(
    topics: Iterable[SaidTopic], member: Member, ctx: RequestContext, denied: Set[str], *, is_renewing: bool
) -> Said:
    """Apply all acknowledgements of the request, without waiting.

    `denied` are the topics that the client may not read. Of a partition that is named twice, the last entry
    counts. If the batches of at least one partition pass the checks, the partitions without batches are
    answered with NONE; otherwise they are left out.
    """
    outcomes: dict[Place, Result] = {}
    silent: list[Place] = []
    said: dict[Place, Answer] = {}
    largest_type = AcknowledgeType.RENEW if ctx.version >= RENEW_VERSION else AcknowledgeType.REJECT
    for place, batches in _by_place(topics).items():
        refusal = _refusal(place, batches, ctx, denied, largest_type, is_renewing=is_renewing)
        if refusal is not None:
            outcomes[place] = refusal
        elif not batches:
            silent.append(place)
        else:
            share_partition = ctx.node.share_partitions.find(member.group_id, *place)
            said[place] = (
                Prompt(_NOT_OPEN)
                if share_partition is None
                else share_partition.acknowledge(member.member_id, batches)
            )
    if said:
        outcomes.update(dict.fromkeys(silent, OK))
    return Said(outcomes, said)


def _by_place(topics: Iterable[SaidTopic]) -> dict[Place, tuple[AcknowledgementBatch, ...]]:
    return {
        (topic.topic_id, partition.partition_index): tuple(
            AcknowledgementBatch(batch.first_offset, batch.last_offset, tuple(batch.acknowledge_types))
            for batch in partition.acknowledgement_batches
        )
        for topic in topics
        for partition in topic.partitions
    }


def _refusal(
    place: Place,
    batches: tuple[AcknowledgementBatch, ...],
    ctx: RequestContext,
    denied: Set[str],
    largest_type: int,
    *,
    is_renewing: bool,
) -> Result | None:
    """The error that refuses all acknowledgements of a partition; None without one."""
    topic_id, index = place
    topic = ctx.node.metadata.image.topic_by_id(topic_id)
    if topic is None:
        return _UNKNOWN_ID
    if not _is_well_formed(batches, largest_type, is_renewing=is_renewing):
        return _MALFORMED
    if topic.name in denied:
        return _DENIED
    return None if index in topic.partitions else _UNKNOWN


def _is_well_formed(
    batches: tuple[AcknowledgementBatch, ...], largest_type: int, *, is_renewing: bool
) -> bool:
    """Whether the batches are in order, and their types are known and allowed.

    A batch may begin at the last offset of the previous one. It has one type, or one for each offset. RENEW
    is allowed if the request says that it renews locks.
    """
    end = -1
    for first_offset, last_offset, types in batches:
        if not end <= first_offset <= last_offset or not types:
            return False
        if len(types) not in (1, last_offset - first_offset + 1):
            return False
        if not 0 <= min(types) <= max(types) <= largest_type:
            return False
        if AcknowledgeType.RENEW in types and not is_renewing:
            return False
        end = last_offset
    return True
