"""InitializeShareGroupState: a share group begins to consume partitions, or begins anew."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.shares import ACKNOWLEDGED, NO_TOPIC_ID, ShareGroup
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeStateData,
)


@conversation
def several_partitions_begin_at_an_offset(talk: Talk) -> None:
    group = ShareGroup(talk, partitions=2)
    talk.ask(group.initializing(0, 1, start_offset=7))
    talk.ask(group.reading(0, 1))
    talk.ask(group.summing_up(0, 1))


@conversation
def a_group_that_has_no_offset_yet(talk: Talk) -> None:
    group = ShareGroup(talk)
    talk.ask(group.initializing(start_offset=-1))
    talk.ask(group.reading())
    talk.ask(group.summing_up())


@conversation
def a_group_that_begins_anew_has_no_batches_and_no_leader(talk: Talk) -> None:
    group = ShareGroup(talk).begun()
    talk.do(group.reading(leader_epoch=3), version=0)
    talk.do(group.writing((0, 4, ACKNOWLEDGED, 1), leader_epoch=3, complete=5), version=1)
    talk.ask(group.initializing(state_epoch=2, start_offset=9))
    talk.ask(group.summing_up())
    talk.ask(group.writing(state_epoch=1, leader_epoch=3), E.FENCED_STATE_EPOCH)
    talk.ask(group.reading(leader_epoch=2), E.FENCED_LEADER_EPOCH)
    talk.ask(group.reading(leader_epoch=3))


@conversation
def an_older_state_epoch_is_fenced(talk: Talk) -> None:
    group = ShareGroup(talk).begun(state_epoch=5)
    talk.ask(group.initializing(state_epoch=4), E.FENCED_STATE_EPOCH)
    talk.ask(group.initializing(state_epoch=5, start_offset=1))
    talk.ask(group.initializing(state_epoch=-1, start_offset=2))
    talk.ask(group.initializing(state_epoch=4), E.FENCED_STATE_EPOCH)
    talk.ask(group.summing_up())


@conversation
def a_partition_that_is_not_there(talk: Talk) -> None:
    group = ShareGroup(talk)
    talk.ask(group.initializing(0, 1), E.UNKNOWN_TOPIC_OR_PARTITION)
    talk.ask(group.initializing(-1), E.INVALID_REQUEST)


@conversation
def a_topic_that_is_not_there(talk: Talk) -> None:
    group = ShareGroup(talk)
    request = group.initializing()
    request.topics[0].topic_id = group.unknown_topic_id
    talk.ask(request, E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def nothing_asked_nothing_answered(talk: Talk) -> None:
    group = ShareGroup(talk)
    request = group.initializing()
    request.group_id = ""
    talk.ask(request)
    talk.ask(InitializeShareGroupStateRequest(group_id=group.id, topics=[]))
    empty = InitializeStateData(topic_id=NO_TOPIC_ID, partitions=[])
    talk.ask(InitializeShareGroupStateRequest(group_id=group.id, topics=[empty]))
    talk.ask(
        InitializeShareGroupStateRequest(group_id=group.id, topics=[empty, *group.initializing().topics])
    )
