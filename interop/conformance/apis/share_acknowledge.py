"""ShareAcknowledge: what members say of records without fetching more."""

from __future__ import annotations

import time

from interop.conformance.apis.share_fetch import (
    LOCK_MS,
    MALFORMED,
    QUICK_LOCKS,
    another,
    member_of,
)
from interop.conformance.conversation import conversation
from interop.conformance.share_consumers import (
    ACCEPT,
    FINAL,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    ShareMember,
    begun,
)
from interop.conformance.talk import ANY, E, Talk
from interop.conformance.topics import NO_TOPIC
from pykafka_broker.protocol.messages.share_acknowledge import AcknowledgeTopic, ShareAcknowledgeRequest


@conversation
def all_types(talk: Talk) -> None:
    member = member_of(talk, 6, 2)
    member.fetch()
    member.acknowledge((1, 6, ACCEPT, RELEASE, REJECT, GAP, RELEASE, ACCEPT), (7, 8, ACCEPT))
    talk.ask(member.group.reading())
    member.fetch()
    member.acknowledge((2, 2, ACCEPT))
    member.acknowledge((5, 5, REJECT))
    talk.ask(member.group.reading())
    talk.ask(member.group.summing_up())


@conversation
def acknowledgements_that_make_no_sense(talk: Talk) -> None:
    member = member_of(talk, 5)
    member.fetch()
    for said in MALFORMED.values():
        member.acknowledge(*said, expected=[ANY])
    talk.ask(member.group.reading())
    member.acknowledge((1, 5, ACCEPT))
    member.acknowledge((1, 5, ACCEPT))


@conversation
def acknowledgements_of_others(talk: Talk) -> None:
    ann = member_of(talk, 5, 5)
    ben = another(talk, ann)
    ann.fetch(max_records=1)
    ben.acknowledge((1, 5, ACCEPT), expected=[E.INVALID_RECORD_STATE])
    ann.acknowledge((2, 2, ACCEPT))
    ben.acknowledge((1, 1, ACCEPT), expected=[E.INVALID_RECORD_STATE])
    ann.acknowledge((1, 5, ACCEPT), expected=[E.INVALID_RECORD_STATE])
    ann.acknowledge((6, 10, ACCEPT), expected=[ANY])


@conversation
def a_part_of_what_was_acquired(talk: Talk) -> None:
    member = member_of(talk, 4, 4)
    member.fetch()
    member.acknowledge((3, 6, ACCEPT))
    talk.ask(member.group.reading())
    member.acknowledge((1, 2, RELEASE), (7, 8, REJECT))
    talk.ask(member.group.reading())
    member.fetch()


@conversation
def places_where_nothing_was_fetched(talk: Talk) -> None:
    group = begun(talk, partitions=2)
    member = ShareMember(talk, group).opened(0)
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    member.acknowledge((0, 0, ACCEPT), partition=1, expected=[unknown])
    member.acknowledge((0, 0, ACCEPT), partition=9, expected=[unknown])
    member.acknowledge((0, 0, ACCEPT), partition=-1, expected=[unknown])
    missing = AcknowledgeTopic(
        topic_id=NO_TOPIC, partitions=member.acknowledging((0, 0, 1)).topics[0].partitions
    )
    member.acknowledge(topics=[missing], expected=[E.UNKNOWN_TOPIC_ID])


@conversation
def nothing_is_said(talk: Talk) -> None:
    member = member_of(talk, 2)
    member.fetch()
    member.acknowledge()
    member.acknowledge(topics=[])
    member.acknowledge((1, 2, ACCEPT))


@conversation
def epochs_of_sessions(talk: Talk) -> None:
    member = member_of(talk, 2)
    member.fetch()
    for epoch in (0, member.epoch + 1, member.epoch - 1, -2):
        talk.ask(member.acknowledging((1, 2, ACCEPT), epoch=epoch), E.INVALID_SHARE_SESSION_EPOCH)
    stranger = ShareMember(talk, member.group, "ben")
    for epoch in (1, FINAL):
        talk.ask(stranger.acknowledging((1, 2, ACCEPT), epoch=epoch), E.SHARE_SESSION_NOT_FOUND)
    member.acknowledge((1, 2, ACCEPT))
    member.fetch()


@conversation
def the_last_request_of_a_session(talk: Talk) -> None:
    ann = member_of(talk, 3, 3)
    ben = another(talk, ann)
    ann.fetch()
    talk.ask(ann.acknowledging((1, 3, ACCEPT), epoch=FINAL))
    talk.ask(ann.acknowledging((4, 6, ACCEPT), epoch=FINAL), E.SHARE_SESSION_NOT_FOUND)
    ben.gets()


@conversation
def members_without_a_proper_name(talk: Talk) -> None:
    member = member_of(talk)
    for name in ("", "m" * 37, None):
        talk.ask(member.acknowledging(member_id=name), E.INVALID_REQUEST)
    talk.ask(
        ShareAcknowledgeRequest(group_id=None, member_id="m", share_session_epoch=1, topics=[]),
        E.INVALID_REQUEST,
    )


@conversation("2+", settings=QUICK_LOCKS)
def locks_that_are_renewed(talk: Talk) -> None:
    member = member_of(talk, 3)
    member.fetch()
    for _ in range(4):
        time.sleep(LOCK_MS * 0.6 / 1_000)
        member.acknowledge((1, 3, RENEW), is_renew_ack=True)
    member.acknowledge((1, 3, RENEW), expected=[E.INVALID_REQUEST])
    member.acknowledge((1, 3, ACCEPT, RENEW, RELEASE), is_renew_ack=True)
    member.acknowledge((2, 2, ACCEPT))
    talk.ask(member.group.reading())


@conversation(settings=QUICK_LOCKS)
def records_whose_lock_has_ended(talk: Talk) -> None:
    member = member_of(talk, 3)
    member.fetch()
    time.sleep(1.5 * LOCK_MS / 1_000)
    member.acknowledge((1, 3, ACCEPT), expected=[E.INVALID_RECORD_STATE])
    member.fetch()


@conversation
def a_group_that_is_reset_while_it_consumes(talk: Talk) -> None:
    member = member_of(talk, 3, 3)
    member.fetch()
    talk.do(member.group.initializing(state_epoch=2, start_offset=4), version=0)
    member.acknowledge((1, 3, ACCEPT), expected=[E.NOT_LEADER_OR_FOLLOWER])
    member.acknowledge((4, 6, ACCEPT), expected=[ANY])
    member.fetch(max_wait_ms=10_000)
    talk.ask(member.group.reading())
