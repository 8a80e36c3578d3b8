"""WriteShareGroupState: the leaders of partitions store what has changed."""

from __future__ import annotations

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.shares import ACKNOWLEDGED, ARCHIVED, AVAILABLE, NO_TOPIC_ID, ShareGroup
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteStateData,
)


@conversation
def batches_are_laid_over_each_other(talk: Talk) -> None:
    group = ShareGroup(talk).begun()
    talk.ask(group.writing((0, 9, AVAILABLE, 1), complete=0))
    talk.ask(group.writing((2, 3, ACKNOWLEDGED, 2), (9, 12, ARCHIVED, 5), complete=6))
    talk.ask(group.reading())
    talk.ask(group.writing((2, 12, AVAILABLE, 1), complete=6))
    talk.ask(group.reading())
    talk.ask(group.writing(start_offset=3, complete=5))
    talk.ask(group.reading())
    talk.ask(group.summing_up())


@conversation
def batches_of_one_request_that_overlap(talk: Talk) -> None:
    group = ShareGroup(talk).begun()
    batches = (5, 9, AVAILABLE, 1), (0, 6, ACKNOWLEDGED, 1), (3, 3, AVAILABLE, 2), (6, 9, AVAILABLE, 1)
    talk.ask(group.writing(*batches, start_offset=2))
    talk.ask(group.reading())


@conversation(LATEST, settings={"share.coordinator.snapshot.update.records.per.snapshot": "2"})
def snapshots_among_the_updates(talk: Talk) -> None:
    group = ShareGroup(talk).begun()
    for offset in range(8):
        talk.ask(group.writing((offset, offset, ACKNOWLEDGED, 1), start_offset=offset // 2, complete=1))
        talk.ask(group.reading())
    talk.ask(group.reading(leader_epoch=2))
    talk.ask(group.summing_up())


@conversation
def epochs_of_writers(talk: Talk) -> None:
    group = ShareGroup(talk).begun(state_epoch=2)
    talk.do(group.reading(leader_epoch=2), version=0)
    talk.ask(group.writing(state_epoch=2, leader_epoch=1), E.FENCED_LEADER_EPOCH)
    talk.ask(group.writing(state_epoch=1, leader_epoch=2), E.FENCED_STATE_EPOCH)
    talk.ask(group.writing(state_epoch=1, leader_epoch=1), E.FENCED_LEADER_EPOCH)
    talk.ask(group.writing(state_epoch=-1, leader_epoch=-1, start_offset=1))
    talk.ask(group.writing(state_epoch=9, leader_epoch=9, start_offset=2))
    talk.ask(group.summing_up())


@conversation
def what_was_never_begun(talk: Talk) -> None:
    group = ShareGroup(talk)
    talk.ask(group.writing(), E.INVALID_REQUEST)
    talk.ask(group.writing(partition=1), E.INVALID_REQUEST)
    talk.ask(group.writing(partition=-1), E.INVALID_REQUEST)


@conversation
def nothing_asked_nothing_answered(talk: Talk) -> None:
    group = ShareGroup(talk).begun()
    request = group.writing()
    request.group_id = ""
    talk.ask(request)
    talk.ask(WriteShareGroupStateRequest(group_id=group.id, topics=[]))
    empty = WriteStateData(topic_id=NO_TOPIC_ID, partitions=[])
    talk.ask(WriteShareGroupStateRequest(group_id=group.id, topics=[empty, *group.writing().topics]))
