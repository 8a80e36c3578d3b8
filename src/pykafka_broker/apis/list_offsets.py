"""ListOffsets (API key 2): the offset of a timestamp, or one of the special positions of a partition.

v1 one offset per partition, v2 isolation level, v4 leader epochs, v6 flexible, v7 max timestamp (-3), v8
earliest local (-4), v9 last tiered (-5), v10 a timeout for remote storage, v11 earliest pending upload (-6).

"Latest" is the high watermark, or the last stable offset for read_committed; for replicas the log end. A
timestamp finds the first *record* at or after it below that bound; if there is none, offset and timestamp are
-1, without an error. Before the high watermark of a new leader has reached the start of its epoch, consumers
get OFFSET_NOT_AVAILABLE instead of the end, or of "no such record" (KIP-207). Without tiered storage -4
equals the log start, and -5 and -6 answer -1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pykafka_broker.apis.api import handles
from pykafka_broker.apis.denials import denied_topics
from pykafka_broker.apis.fetching.followed import DEBUGGING_REPLICA_ID, followed
from pykafka_broker.apis.needs import on_topics
from pykafka_broker.apis.ports.authorizer import AclOperation
from pykafka_broker.log.disk.files import directory_name
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.replication.core.access import (
    CONSUMER_REPLICA_ID,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    check_leader_epoch,
    limit_of_offsets,
)
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext
    from pykafka_broker.apis.ports.partitions import HeldPartition
    from pykafka_broker.log.partition.partition_log import PartitionLog
    from pykafka_broker.log.partition.read_plan import FoundOffset

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = (
    -1,
    -2,
    -3,
    -4,
    -5,
    -6,
)
#: The first version that knows each special timestamp.
FIRST_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


#: The searches of one job in a thread: handing over a job takes several times as long as a search in the page
#: cache. More searches would hold up the event loop, which shares the interpreter with the thread.
SEARCHES_AT_ONCE = 16

#: The first version with OFFSET_NOT_AVAILABLE.
OFFSET_NOT_AVAILABLE_VERSION = 5

Asked = dict[PartitionKey, ListOffsetsPartition]
Answers = dict[PartitionKey, ListOffsetsPartitionResponse]


class _Search(NamedTuple):
    """A look-up in a log."""

    place: PartitionKey
    asked: ListOffsetsPartition
    log: PartitionLog
    #: Offsets from here on do not count.
    bound: int
    #: The error if nothing is found below `bound` and the log's end is not available; else None.
    not_available: KafkaError | None
    run: Callable[[], FoundOffset | None]


def failed(request: ListOffsetsRequest, error: KafkaError) -> ListOffsetsResponse:
    """The answer to a request that failed as a whole."""
    return ListOffsetsResponse(topics=[_refused(topic, error) for topic in request.topics])


@handles(
    ListOffsetsRequest,
    versions="1-11",
    needs=[on_topics(AclOperation.DESCRIBE).asked_by_handler()],
    error_response=failed,
)
def list_offsets(request: ListOffsetsRequest, ctx: RequestContext) -> Any:
    """Answer from memory if possible; a worker thread searches logs. Topics that the client may not describe
    come last.
    """
    refused: list[ListOffsetsTopicResponse] = []
    hidden = denied_topics(ctx, AclOperation.DESCRIBE, (topic.name for topic in request.topics))
    if hidden:
        error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        refused = [_refused(topic, error) for topic in request.topics if topic.name in hidden]
        request.topics = [topic for topic in request.topics if topic.name not in hidden]
    searched = any(
        partition.timestamp >= 0 or partition.timestamp == MAX_TIMESTAMP
        for topic in request.topics
        for partition in topic.partitions
    )
    return _search(request, ctx, refused) if searched else _known(request, ctx, refused)


def _refused(topic: ListOffsetsTopic, error: KafkaError) -> ListOffsetsTopicResponse:
    return ListOffsetsTopicResponse(
        name=topic.name, partitions=[_failed(asked, error) for asked in topic.partitions]
    )


def _known(
    request: ListOffsetsRequest, ctx: RequestContext, refused: list[ListOffsetsTopicResponse]
) -> ListOffsetsResponse:
    asked_of, duplicates = _asked(request)
    answers: Answers = {}
    for place, asked in asked_of.items():
        try:
            partition = _checked(place, asked, duplicates, request, ctx)
            answers[place] = _special(partition, asked, request, ctx)
        except KafkaError as error:
            answers[place] = _failed(asked, error)
    return _response(answers, refused)


async def _search(
    request: ListOffsetsRequest, ctx: RequestContext, refused: list[ListOffsetsTopicResponse]
) -> ListOffsetsResponse:
    asked_of, duplicates = _asked(request)
    answers: Answers = {}
    by_disk: dict[str, list[_Search]] = {}
    for place, asked in asked_of.items():
        try:
            partition = _checked(place, asked, duplicates, request, ctx)
            if asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP:
                disk = directory_name(partition.log.directory)
                by_disk.setdefault(disk, []).append(_by_time(place, partition, asked, request, ctx))
            else:
                answers[place] = _special(partition, asked, request, ctx)
        except KafkaError as error:
            answers[place] = _failed(asked, error)
    for searches in by_disk.values():
        for first in range(0, len(searches), SEARCHES_AT_ONCE):
            together = searches[first : first + SEARCHES_AT_ONCE]
            outcomes = await ctx.node.cold_reads.run(together[0].log, partial(_carried_out, together))
            for search, outcome in zip(together, outcomes, strict=True):
                answers[search.place] = _found(search, outcome)
    return _response({place: answers[place] for place in asked_of}, refused)


def _asked(request: ListOffsetsRequest) -> tuple[Asked, set[PartitionKey]]:
    """The request for each partition, and the partitions that are named more than once."""
    asked_of: Asked = {}
    duplicates: set[PartitionKey] = set()
    for topic in request.topics:
        for partition in topic.partitions:
            place = (topic.name, partition.partition_index)
            if place in asked_of:
                duplicates.add(place)
            asked_of[place] = partition
    return asked_of, duplicates


def _response(answers: Answers, refused: list[ListOffsetsTopicResponse]) -> ListOffsetsResponse:
    """Every partition once, without empty topics; then the refused topics."""
    topics: dict[str, ListOffsetsTopicResponse] = {}
    for (topic, _), answer in answers.items():
        topics.setdefault(topic, ListOffsetsTopicResponse(name=topic, partitions=[])).partitions.append(
            answer
        )
    return ListOffsetsResponse(topics=[*topics.values(), *refused])


def _checked(
    place: PartitionKey,
    asked: ListOffsetsPartition,
    duplicates: set[PartitionKey],
    request: ListOffsetsRequest,
    ctx: RequestContext,
) -> HeldPartition:
    """The partition, led here, or followed for a debugging replica id.

    Raises:
        KafkaError: INVALID_REQUEST for a partition named twice, UNSUPPORTED_VERSION for a special timestamp
        of a newer version, or the reason why this node does not serve the partition.
    """
    topic, index = place
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if place in duplicates:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if asked.timestamp < 0 and ctx.version < FIRST_VERSION.get(asked.timestamp, ctx.version + 1):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    partition = ctx.node.partitions.led(topic, index)
    if partition is None:
        return followed(
            ctx.node.partitions,
            topic,
            index,
            asked.current_leader_epoch,
            from_any_replica=request.replica_id == DEBUGGING_REPLICA_ID,
        )
    check_leader_epoch(partition.leader_epoch, asked.current_leader_epoch)
    return partition


def _end_not_available(
    partition: HeldPartition, request: ListOffsetsRequest, ctx: RequestContext
) -> KafkaError | None:
    """The error for a consumer while the end of the log is not available (KIP-207)."""
    if partition.is_end_known or request.replica_id != CONSUMER_REPLICA_ID:
        return None
    if ctx.version < OFFSET_NOT_AVAILABLE_VERSION:
        return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
    return KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)


def _end(log: PartitionLog, request: ListOffsetsRequest) -> int:
    """The end of the log for this client."""
    return log.state.limit_offset(limit_of_offsets(request.replica_id, request.isolation_level))


def _special(
    partition: HeldPartition, asked: ListOffsetsPartition, request: ListOffsetsRequest, ctx: RequestContext
) -> ListOffsetsPartitionResponse:
    """The offset of a special timestamp.

    Raises:
        KafkaError: the end of the log is not available yet.
    """
    log = partition.log
    if asked.timestamp == LATEST:
        error = _end_not_available(partition, request, ctx)
        if error is not None:
            raise error
        offset = _end(log, request)
        epoch = partition.leader_epoch
    elif asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
        offset = log.state.log_start_offset
        found = log.reader.epoch_for_offset(offset)
        epoch = -1 if found is None else found
    else:
        offset = epoch = -1
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index, error_code=0, timestamp=-1, offset=offset, leader_epoch=epoch
    )


def _by_time(
    place: PartitionKey,
    partition: HeldPartition,
    asked: ListOffsetsPartition,
    request: ListOffsetsRequest,
    ctx: RequestContext,
) -> _Search:
    log = partition.log
    if asked.timestamp == MAX_TIMESTAMP:
        search = log.reader.search_max_timestamp()
    else:
        search = log.reader.search_timestamp(asked.timestamp)
    not_available = _end_not_available(partition, request, ctx)
    return _Search(place, asked, log, _end(log, request), not_available, search)


def _carried_out(searches: list[_Search]) -> list[FoundOffset | KafkaError | None]:
    """The results of the searches; runs in a worker thread."""
    outcomes: list[FoundOffset | KafkaError | None] = []
    for search in searches:
        try:
            outcomes.append(search.run())
        except KafkaError as error:
            outcomes.append(error)
    return outcomes


def _found(search: _Search, outcome: FoundOffset | KafkaError | None) -> ListOffsetsPartitionResponse:
    if isinstance(outcome, KafkaError):
        return _failed(search.asked, outcome)
    if outcome is None or outcome.offset >= search.bound:
        if search.not_available is not None:
            return _failed(search.asked, search.not_available)
        return ListOffsetsPartitionResponse(
            partition_index=search.asked.partition_index,
            error_code=0,
            timestamp=-1,
            offset=-1,
            leader_epoch=-1,
        )
    return ListOffsetsPartitionResponse(
        partition_index=search.asked.partition_index,
        error_code=0,
        timestamp=outcome.timestamp,
        offset=outcome.offset,
        leader_epoch=outcome.leader_epoch,
    )


def _failed(asked: ListOffsetsPartition, error: KafkaError) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index, error_code=int(error.code), timestamp=-1, offset=-1
    )
