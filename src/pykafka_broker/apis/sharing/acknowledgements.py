"""What a request says of acquired records, partition by partition: checked as Apache Kafka's KafkaApis does,
then taken by the share partitions.
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
#: Nobody has fetched from there since this node leads.
_NOT_OPEN = Result(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message)

#: The outcome of one partition, which may have to be written first.
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
    """Whether a request acknowledges anything."""
    return any(partition.acknowledgement_batches for topic in topics for partition in topic.partitions)


class Said:
    """What became of what a request says; some of it has yet to be written."""

    __slots__ = ("_outcomes", "_pending")

    def __init__(self, outcomes: dict[Place, Result], pending: dict[Place, Answer]) -> None:
        self._outcomes = outcomes
        self._pending = pending

    async def outcomes(self) -> dict[Place, Result]:
        """The outcome of each partition, once all is written."""
        for place, answer in self._pending.items():
            try:
                self._outcomes[place] = await answer
            except KafkaError as error:  # the node stops
                self._outcomes[place] = Result(error.code, error.message)
        return self._outcomes


def acknowledge(
    topics: Iterable[SaidTopic], member: Member, ctx: RequestContext, denied: Set[str], *, is_renewing: bool
) -> Said:
    """Take all that the request says; nothing is waited for.

    `denied` are the topics that the client may not read. Of a partition that is named twice, the later is
    meant. One without batches is answered, with no error, where something is said of others.
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
    """Why nothing that is said of a partition is taken; None if it may be."""
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
    """Batches come in order, though one may begin where the one before ends; each has one type, or one for
    each offset; a lock is renewed only where the request says that it renews.
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
