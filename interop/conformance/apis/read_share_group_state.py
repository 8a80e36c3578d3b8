"""ReadShareGroupState: the leader of a partition takes up what leaders before it have stored."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.shares import ACKNOWLEDGED, AVAILABLE, NO_TOPIC_ID, ShareGroup
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.read_share_group_state import ReadShareGroupStateRequest, ReadStateData


@conversation
def what_was_begun_and_what_was_not(talk: Talk) -> None:
    group = ShareGroup(talk, partitions=2).begun(0)
    talk.ask(group.reading(0, 1), E.INVALID_REQUEST)


@conversation
def a_new_leader_fences_older_ones(talk: Talk) -> None:
    group = ShareGroup(talk).begun()
    talk.ask(group.reading(leader_epoch=0))
    talk.do(group.writing((0, 4, ACKNOWLEDGED, 1), (5, 5, AVAILABLE, 2), complete=5), version=1)
    talk.ask(group.reading(leader_epoch=4))
    talk.ask(group.summing_up())
    talk.ask(group.reading(leader_epoch=3), E.FENCED_LEADER_EPOCH)
    talk.ask(group.writing(leader_epoch=3), E.FENCED_LEADER_EPOCH)
    talk.ask(group.reading(leader_epoch=-1))
    talk.ask(group.reading(leader_epoch=4))


@conversation
def a_partition_that_is_not_there(talk: Talk) -> None:
    group = ShareGroup(talk).begun()
    talk.ask(group.reading(0, 1), E.INVALID_REQUEST)
    talk.ask(group.reading(-1), E.INVALID_REQUEST)


@conversation
def a_partition_that_is_named_twice(talk: Talk) -> None:
    group = ShareGroup(talk).begun()
    talk.ask(group.reading(0, 0))


@conversation
def nothing_asked_nothing_answered(talk: Talk) -> None:
    group = ShareGroup(talk).begun()
    request = group.reading()
    request.group_id = ""
    talk.ask(request)
    talk.ask(ReadShareGroupStateRequest(group_id=group.id, topics=[]))
    empty = ReadStateData(topic_id=NO_TOPIC_ID, partitions=[])
    talk.ask(ReadShareGroupStateRequest(group_id=group.id, topics=[empty, *group.reading().topics]))
