"""DeleteShareGroupState: a share group is deleted, or forgets a topic."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.shares import NO_TOPIC_ID, ShareGroup
from interop.conformance.talk import E, Talk
from pykafka_broker.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteStateData,
)


@conversation
def what_is_deleted_begins_anew(talk: Talk) -> None:
    group = ShareGroup(talk, partitions=2).begun(0, 1, state_epoch=5)
    talk.ask(group.deleting(0))
    talk.ask(group.reading(0, 1), E.INVALID_REQUEST)
    talk.ask(group.summing_up(0, 1))
    talk.ask(group.initializing(0, state_epoch=1))
    talk.ask(group.deleting(0, 1))
    talk.ask(group.summing_up(0, 1))


@conversation
def what_was_never_begun(talk: Talk) -> None:
    talk.ask(ShareGroup(talk).deleting())


@conversation
def a_partition_that_is_not_there(talk: Talk) -> None:
    group = ShareGroup(talk).begun()
    talk.ask(group.deleting(0, 1), E.UNKNOWN_TOPIC_OR_PARTITION)
    talk.ask(group.deleting(-1), E.INVALID_REQUEST)


@conversation
def nothing_asked_nothing_answered(talk: Talk) -> None:
    group = ShareGroup(talk).begun()
    request = group.deleting()
    request.group_id = ""
    talk.ask(request)
    talk.ask(DeleteShareGroupStateRequest(group_id=group.id, topics=[]))
    empty = DeleteStateData(topic_id=NO_TOPIC_ID, partitions=[])
    talk.ask(DeleteShareGroupStateRequest(group_id=group.id, topics=[empty, *group.deleting().topics]))
    talk.ask(group.summing_up())
