"""ReadShareGroupStateSummary: where is a share group?"""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.shares import ACKNOWLEDGED, NO_TOPIC_ID, ShareGroup
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)


@conversation
def epochs_start_offset_and_deliveries(talk: Talk) -> None:
    group = ShareGroup(talk, partitions=2).begun(0, state_epoch=3, start_offset=4)
    talk.ask(group.summing_up(0, 1))
    talk.do(group.reading(0, leader_epoch=6), version=0)
    talk.do(group.writing((4, 5, ACKNOWLEDGED, 1), state_epoch=3, leader_epoch=6, complete=2), version=1)
    talk.ask(group.summing_up(0, 1))
    talk.do(group.writing(state_epoch=3, leader_epoch=6, start_offset=5), version=0)
    talk.ask(group.summing_up(0))


@conversation
def a_partition_that_is_not_there(talk: Talk) -> None:
    group = ShareGroup(talk).begun()
    talk.ask(group.summing_up(0, 1), E.UNKNOWN_TOPIC_OR_PARTITION)
    talk.ask(group.summing_up(-1), E.INVALID_REQUEST)


@conversation
def nothing_asked_nothing_answered(talk: Talk) -> None:
    group = ShareGroup(talk).begun()
    request = group.summing_up()
    request.group_id = ""
    talk.ask(request)
    talk.ask(ReadShareGroupStateSummaryRequest(group_id=group.id, topics=[]))
    empty = ReadStateSummaryData(topic_id=NO_TOPIC_ID, partitions=[])
    topics = [empty, *group.summing_up().topics]
    talk.ask(ReadShareGroupStateSummaryRequest(group_id=group.id, topics=topics))
