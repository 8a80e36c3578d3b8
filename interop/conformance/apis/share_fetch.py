"""ShareFetch: which records the members of a share group get, what they say of them, and what is refused."""

from __future__ import annotations

import time
from typing import Any

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.share_consumers import (
    ACCEPT,
    BATCH_OPTIMIZED,
    FINAL,
    GAP,
    RECORD_LIMIT,
    REJECT,
    RELEASE,
    RENEW,
    Said,
    ShareMember,
    acquired,
    begun,
    configure,
)
from interop.conformance.shares import ShareGroup
from interop.conformance.talk import ANY, E, Talk, Topic
from interop.conformance.topics import NO_TOPIC, without_start
from interop.conformance.transactions import Producer
from pykafka_broker.protocol.messages.share_fetch import FetchPartition, FetchTopic

#: Locks that end while a conversation waits for that.
QUICK_LOCKS = {
    "group.share.record.lock.duration.ms": "4000",
    "group.share.min.record.lock.duration.ms": "1000",
}
LOCK_MS = 4_000
NOTHING: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}


def written(talk: Talk, topic: Topic, *sizes: int, partition: int = 0) -> None:
    """Batches of so many records each."""
    for number, size in enumerate(sizes):
        talk.produce(topic, *[b"%d of %d" % (index, number) for index in range(size)], partition=partition)


def member_of(talk: Talk, *sizes: int, **configs: str) -> ShareMember:
    """A member of a new group, with batches of so many records to be fetched, from offset 1 on."""
    group = begun(talk, 1, **configs)
    member = ShareMember(talk, group).opened()
    written(talk, group.topic, *sizes)
    return member


def another(talk: Talk, member: ShareMember, member_id: str = "ben") -> ShareMember:
    """Another member of the same group, on a connection of its own."""
    return ShareMember(talk.another(), member.group, member_id).joined()


# ---- records ----


@conversation
def records_are_acquired_and_accepted(talk: Talk) -> None:
    member = member_of(talk, 5, 3)
    member.fetch()
    member.fetch()
    member.fetch(said={0: [(1, 5, ACCEPT), (6, 8, ACCEPT)]})
    talk.ask(member.group.reading())
    member.fetch()


@conversation
def types_of_acknowledgements(talk: Talk) -> None:
    member = member_of(talk, 6)
    member.fetch()
    member.fetch(said={0: [(1, 6, ACCEPT, RELEASE, REJECT, GAP, RELEASE, ACCEPT)]})
    talk.ask(member.group.reading())
    member.fetch()
    member.fetch(said={0: [(2, 2, REJECT), (5, 5, ACCEPT)]})
    talk.ask(member.group.reading())
    talk.ask(member.group.summing_up())


@conversation
def two_members_get_different_records(talk: Talk) -> None:
    ann = member_of(talk, 4, 4)
    ben = another(talk, ann)
    ann.fetch(max_records=1)
    ben.fetch(max_records=1)
    ann.fetch()
    ben.fetch(said={0: [(5, 8, RELEASE)]}, max_records=0)
    ann.fetch(said={0: [(1, 4, ACCEPT)]})


@conversation
def limits_of_records(talk: Talk) -> None:
    member = member_of(talk, 3, 3, 3, 3)
    for max_records in (1, 4, 100):
        member.fetch(max_records=max_records)


@conversation
def sizes_of_batches(talk: Talk) -> None:
    topic = talk.topic()
    written(talk, topic, 2, 3, 1, 4)
    for batch_size in (1, 2, 5, 7):
        group = ShareGroup(talk, topic, label=f"group-{batch_size}")
        member = ShareMember(talk, group.begun()).joined()
        member.fetch(batch_size=batch_size, max_wait_ms=10_000)


@conversation("2+")
def strict_limits_of_records(talk: Talk) -> None:
    member = member_of(talk, 5, 5, 5)
    member.fetch(max_records=2, share_acquire_mode=RECORD_LIMIT)
    member.fetch(max_records=2, share_acquire_mode=RECORD_LIMIT)
    member.fetch(max_records=3, share_acquire_mode=BATCH_OPTIMIZED)
    member.fetch(max_records=4, share_acquire_mode=RECORD_LIMIT, said={0: [(1, 3, RELEASE), (4, 5, ACCEPT)]})
    member.fetch(max_records=500, share_acquire_mode=RECORD_LIMIT)
    talk.ask(member.group.reading())


@conversation("2+")
def an_acquire_mode_that_nobody_knows(talk: Talk) -> None:
    member = member_of(talk, 5)
    member.fetch()
    talk.ask(member.fetching(said={0: [(1, 5, ACCEPT)]}, share_acquire_mode=2), E.UNKNOWN_SERVER_ERROR)
    member.epoch += 1
    member.fetch()
    talk.ask(member.group.reading(), until=lambda answer: answer.results[0].partitions[0].state_batches)


@conversation
def limits_of_bytes(talk: Talk) -> None:
    group = begun(talk)
    member = ShareMember(talk, group).opened()
    for _ in range(6):
        talk.produce(group.topic, b"x" * 1_000)
    for max_bytes in (1, 2_500, 1_069, 1 << 20):
        member.fetch(max_bytes=max_bytes)


@conversation
def limits_that_make_no_sense(talk: Talk) -> None:
    member = member_of(talk, 3)
    member.fetch(max_bytes=0)
    member.fetch(max_records=0)
    member.fetch(max_records=-1)
    member.fetch(E.UNKNOWN_SERVER_ERROR, max_bytes=-1)
    member.fetch(min_bytes=-1, max_wait_ms=-1)
    member.fetch()


@conversation
def records_come_again_until_their_limit(talk: Talk) -> None:
    member = member_of(talk, 4, 2)
    for _ in range(9):
        answer = member.fetch(max_records=6)
        said = [(first, last, RELEASE) for first, last, _ in acquired(answer).get(0, ())]
        member.fetch(said={0: said}, max_records=0)
        talk.ask(member.group.reading())


@conversation(settings={"group.share.delivery.count.limit": "2"})
def the_limit_of_deliveries_of_the_broker(talk: Talk) -> None:
    member = member_of(talk, 2)
    for _ in range(3):
        answer = member.fetch()
        if answer.responses:
            member.fetch(said={0: [(1, 2, RELEASE)]}, max_records=0)
    talk.ask(member.group.reading())


@conversation
def a_group_with_a_limit_of_deliveries(talk: Talk) -> None:
    member = member_of(talk, 3, share_delivery_count_limit="3")
    for _ in range(5):
        answer = member.fetch()
        said = [(first, last, RELEASE) for first, last, _ in acquired(answer).get(0, ())]
        member.fetch(said={0: said}, max_records=0)
    talk.ask(member.group.reading())


@conversation
def records_in_flight_are_limited(talk: Talk) -> None:
    member = member_of(talk, *[30] * 8, share_partition_max_record_locks="100")
    member.fetch(max_records=1_000)
    member.fetch(max_records=1_000)
    member.fetch(max_records=1_000)
    member.fetch(max_records=1_000, said={0: [(1, 45, ACCEPT)]})
    member.fetch(max_records=1_000, said={0: [(46, 60, RELEASE)]})
    member.fetch(max_records=1_000)


@conversation(settings=QUICK_LOCKS)
def locks_that_end(talk: Talk) -> None:
    ann = member_of(talk, 3, 2)
    ben = another(talk, ann)
    ann.fetch()
    waiting = ben.send(max_wait_ms=20_000)
    waiting.is_waiting()
    waiting.answer()
    ann.fetch(E.INVALID_RECORD_STATE, said={0: [(1, 5, ACCEPT)]})
    ben.fetch(said={0: [(1, 5, ACCEPT)]})


@conversation("2+", settings=QUICK_LOCKS)
def locks_that_are_renewed(talk: Talk) -> None:
    ann = member_of(talk, 3)
    ben = another(talk, ann)
    ann.fetch()
    for _ in range(4):
        time.sleep(LOCK_MS * 0.6 / 1_000)
        ann.fetch(said={0: [(1, 3, RENEW)]}, is_renew_ack=True, **NOTHING)
    ben.fetch()
    ann.fetch(E.INVALID_REQUEST, said={0: [(1, 3, RENEW)]}, **NOTHING)
    ann.fetch(said={0: [(1, 3, ACCEPT)]})


@conversation("2+")
def renewing_is_not_fetching(talk: Talk) -> None:
    member = member_of(talk, 3, 3)
    member.fetch(max_records=1)
    for limit in NOTHING:
        said = {0: [(1, 3, RENEW)]}
        talk.ask(member.fetching(said=said, is_renew_ack=True, **{**NOTHING, limit: 1}), E.INVALID_REQUEST)
    member.fetch(said={0: [(1, 3, RENEW)]}, is_renew_ack=True, **NOTHING)
    member.fetch(is_renew_ack=True, **NOTHING)
    member.fetch(said={0: [(1, 3, ACCEPT, RENEW, RELEASE)]}, is_renew_ack=True, **NOTHING)
    member.fetch()
    talk.ask(member.group.reading())


@conversation("2+")
def a_group_that_forbids_renewals(talk: Talk) -> None:
    member = member_of(talk, 3, share_renew_acknowledge_enable="false")
    member.fetch()
    member.fetch(ANY, said={0: [(1, 3, RENEW)]}, is_renew_ack=True, **NOTHING)
    member.fetch(said={0: [(1, 3, ACCEPT)]})


# ---- where a group begins ----


@conversation
def groups_without_a_start_offset(talk: Talk) -> None:
    topic = talk.topic()
    written(talk, topic, 3, 2)
    for reset, min_bytes in (
        ("latest", 1 << 20),
        ("earliest", 1),
        ("by_duration:P1D", 1 << 20),
        ("by_duration:P20000D", 1),
    ):
        group = ShareGroup(talk, topic, label=f"group-{reset.split(':')[-1]}")
        configure(talk, group, share_auto_offset_reset=reset)
        group.begun(start_offset=-1)
        member = ShareMember(talk, group).joined()
        member.fetch(ANY, max_wait_ms=5_000, min_bytes=min_bytes)
        member.fetch(ANY)


@conversation
def a_start_offset_in_the_middle(talk: Talk) -> None:
    topic = talk.topic()
    written(talk, topic, 5, 5)
    group = ShareGroup(talk, topic).begun(start_offset=3)
    member = ShareMember(talk, group).joined()
    member.fetch(max_wait_ms=10_000)
    member.fetch(said={0: [(3, 9, ACCEPT)]})
    talk.ask(group.reading())


@conversation
def a_state_that_was_written_before(talk: Talk) -> None:
    topic = talk.topic()
    written(talk, topic, *[5] * 5)
    group = ShareGroup(talk, topic).begun()
    batches = (2, 3, 2, 1), (6, 8, 0, 2), (9, 9, 4, 5), (15, 16, 0, 1)
    talk.do(group.writing(*batches, complete=3), version=1)
    member = ShareMember(talk, group).joined()
    member.fetch(max_wait_ms=10_000, max_records=4)
    for _ in range(6):
        member.fetch(max_records=4)
    talk.ask(group.reading())


@conversation
def share_partitions_without_state(talk: Talk) -> None:
    group = ShareGroup(talk)
    member = ShareMember(talk, group).joined()
    member.fetch(E.UNKNOWN_SERVER_ERROR, max_wait_ms=5_000)
    member.fetch(E.UNKNOWN_SERVER_ERROR, max_wait_ms=5_000)


# ---- what becomes of the log ----


@conversation
def records_that_are_deleted_before_they_are_fetched(talk: Talk) -> None:
    member = member_of(talk, 5, 5)
    without_start(talk, member.group.topic, 4)
    member.fetch()
    member.fetch()
    member.fetch(said={0: [(4, 10, ACCEPT)]})
    talk.ask(member.group.reading())


@conversation
def records_that_are_deleted_while_they_are_acquired(talk: Talk) -> None:
    member = member_of(talk, 5, 5)
    member.fetch()
    without_start(talk, member.group.topic, 8)
    member.fetch()
    member.fetch(said={0: [(1, 3, ACCEPT), (4, 6, RELEASE), (7, 10, RELEASE)]})
    member.fetch()
    member.fetch()
    written(talk, member.group.topic, 2)
    member.fetch()
    talk.ask(member.group.reading())


@conversation
def aborted_and_open_transactions(talk: Talk) -> None:
    group = begun(talk, share_isolation_level="read_committed")
    member = ShareMember(talk, group).opened()
    producer = Producer(talk)
    written(talk, group.topic, 2)
    producer.writes(group.topic, b"a", b"b")
    written(talk, group.topic, 1)
    member.fetch()
    member.fetch()
    producer.ends(commit=False)
    written(talk, group.topic, 1)
    member.fetch()
    producer.writes(group.topic, b"c", b"d")
    producer.ends(commit=True)
    written(talk, group.topic, 1)
    member.fetch(said={0: [(1, 2, ACCEPT)]})
    talk.ask(group.reading())


@conversation
def aborted_records_for_those_who_read_uncommitted(talk: Talk) -> None:
    group = begun(talk)
    member = ShareMember(talk, group).opened()
    producer = Producer(talk)
    producer.writes(group.topic, b"a", b"b")
    member.fetch()
    producer.ends(commit=False)
    written(talk, group.topic, 1)
    member.fetch()


# ---- waiting ----


@conversation
def waiting_for_a_record(talk: Talk) -> None:
    member = member_of(talk)
    writer = talk.another()
    waiting = member.send(max_wait_ms=30_000)
    waiting.is_waiting()
    written(writer, member.group.topic, 2)
    waiting.answer()


@conversation
def waiting_for_bytes(talk: Talk) -> None:
    member = member_of(talk)
    writer = talk.another()
    waiting = member.send(max_wait_ms=30_000, min_bytes=300)
    writer.produce(member.group.topic, b"x" * 100)
    waiting.is_waiting()
    writer.produce(member.group.topic, b"x" * 100)
    waiting.answer()


@conversation
def waiting_in_vain(talk: Talk) -> None:
    member = member_of(talk)
    member.fetch(max_wait_ms=300)
    member.fetch(max_wait_ms=300, min_bytes=0)


@conversation
def what_another_gives_back(talk: Talk) -> None:
    ann = member_of(talk, 3)
    ben = another(talk, ann)
    ann.fetch()
    ben.fetch()
    ann.fetch(said={0: [(2, 2, RELEASE)]}, max_records=0)
    ben.fetch()


@conversation
def a_connection_that_is_lost_gives_records_back(talk: Talk) -> None:
    ben = member_of(talk, 3)
    ann = another(talk, ben, "ann-2")
    ann.fetch()
    ben.fetch()
    ann.talk.close()
    ben.gets()


# ---- several partitions ----


@conversation
def several_partitions(talk: Talk) -> None:
    group = begun(talk, partitions=3)
    member = ShareMember(talk, group).opened(0, 1, 2)
    for index in range(3):
        written(talk, group.topic, 3, 3, partition=index)
    member.fetch()
    member.fetch(said={0: [(1, 3, ACCEPT)], 2: [(4, 6, RELEASE)]}, max_records=0)
    member.fetch(forget=[1])
    written(talk, group.topic, 1, partition=1)
    written(talk, group.topic, 1, partition=2)
    member.fetch()
    talk.ask(member.fetching(1))


@conversation
def partitions_that_are_not_there(talk: Talk) -> None:
    member = member_of(talk, 2)
    talk.ask(member.fetching(7, -1), ANY)
    member.epoch += 1
    member.fetch(ANY)
    stranger = ShareMember(talk, member.group, "ben")
    talk.ask(stranger.fetching(3), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation(LATEST)
def a_topic_id_that_nobody_knows(talk: Talk) -> None:
    member = member_of(talk, 2)
    missing = Topic("missing", NO_TOPIC)
    talk.ask(member.fetching(0, topic=missing), E.UNKNOWN_SERVER_ERROR)
    member.epoch += 1
    talk.ask(member.fetching(0, topic=missing, said={0: [(0, 0, ACCEPT)]}), E.UNKNOWN_SERVER_ERROR)
    stranger = ShareMember(talk, member.group, "ben")
    talk.ask(stranger.fetching(0, topic=missing), E.UNKNOWN_SERVER_ERROR)


# ---- acknowledgements ----

MALFORMED: dict[str, list[Said]] = {
    "ends before it begins": [(3, 2, ACCEPT)],
    "overlaps": [(1, 3, ACCEPT), (2, 5, ACCEPT)],
    "touches": [(1, 3, ACCEPT), (3, 5, ACCEPT)],
    "out of order": [(4, 5, ACCEPT), (1, 3, ACCEPT)],
    "no type": [(1, 3)],
    "too few types": [(1, 3, ACCEPT, ACCEPT)],
    "too many types": [(1, 1, ACCEPT, ACCEPT)],
    "an unknown type": [(1, 1, 5)],
    "a negative type": [(1, 1, -1)],
    "renewal": [(1, 1, RENEW)],
    "renewal of some": [(1, 2, ACCEPT, RENEW)],
    "a negative offset": [(-2, 1, ACCEPT)],
    "past the end": [(1, 100, ACCEPT)],
    "all past the end": [(50, 100, ACCEPT)],
    "one good and one bad": [(1, 1, ACCEPT), (100, 100, ACCEPT)],
    "accepted twice": [(2, 2, ACCEPT), (2, 2, ACCEPT)],
}


@conversation
def acknowledgements_that_make_no_sense(talk: Talk) -> None:
    member = member_of(talk, 5)
    member.fetch()
    for said in MALFORMED.values():
        member.fetch(ANY, said={0: said}, max_records=0)
    talk.ask(member.group.reading())
    member.fetch(said={0: [(1, 5, ACCEPT)]})


@conversation
def acknowledgements_of_others(talk: Talk) -> None:
    ann = member_of(talk, 5, 5)
    ben = another(talk, ann)
    ann.fetch(max_records=1)
    ben.fetch(ANY, said={0: [(1, 5, ACCEPT)]}, max_records=0)
    ann.fetch(said={0: [(2, 2, ACCEPT)]}, max_records=0)
    ben.fetch(ANY, said={0: [(1, 1, ACCEPT)]}, max_records=0)
    ann.fetch(ANY, said={0: [(1, 5, ACCEPT)]}, max_records=0)
    ann.fetch(ANY, said={0: [(6, 10, ACCEPT)]}, max_records=0)


@conversation
def acknowledgements_where_nothing_was_fetched(talk: Talk) -> None:
    group = begun(talk, partitions=2)
    member = ShareMember(talk, group).opened(0)
    member.fetch(ANY, said={1: [(0, 0, ACCEPT)], 7: [(0, 0, ACCEPT)]}, max_records=0)
    member.fetch(ANY, said={0: [], 1: [(0, 0, ACCEPT)]}, max_records=0)
    member.fetch(ANY, said={0: [], 1: []}, max_records=0)


# ---- sessions ----


@conversation
def epochs_of_sessions(talk: Talk) -> None:
    member = member_of(talk, 2)
    for epoch in (member.epoch + 1, member.epoch - 1, -2):
        talk.ask(member.fetching(epoch=epoch), E.INVALID_SHARE_SESSION_EPOCH)
    stranger = ShareMember(talk, member.group, "ben")
    for epoch in (1, FINAL, 5):
        talk.ask(stranger.fetching(epoch=epoch), E.SHARE_SESSION_NOT_FOUND)
    member.fetch()
    talk.ask(member.fetching(0, epoch=0))
    member.epoch = 1
    member.fetch(said={0: [(1, 2, ACCEPT)]})


@conversation
def a_first_fetch_that_acknowledges(talk: Talk) -> None:
    member = member_of(talk, 2)
    member.fetch()
    talk.ask(member.fetching(epoch=0, said={0: [(1, 2, ACCEPT)]}), E.INVALID_REQUEST)
    member.fetch(said={0: [(1, 2, ACCEPT)]})


@conversation
def a_partition_that_is_named_twice(talk: Talk) -> None:
    member = member_of(talk, 2)
    twice = FetchTopic(
        topic_id=member.group.topic.id,
        partitions=[FetchPartition(partition_index=0, acknowledgement_batches=[]) for _ in range(2)],
    )
    talk.ask(member.fetching(epoch=0, topics=[twice]), E.UNKNOWN_SERVER_ERROR)
    talk.ask(member.fetching(), E.SHARE_SESSION_NOT_FOUND)
    member.joined()
    talk.ask(member.fetching(topics=[twice]))


@conversation
def the_last_fetch_of_a_session(talk: Talk) -> None:
    ann = member_of(talk, 3, 3)
    ben = another(talk, ann)
    ann.fetch()
    talk.ask(ann.fetching(epoch=FINAL, said={0: [(1, 3, ACCEPT)]}))
    talk.ask(ann.fetching(epoch=FINAL), E.SHARE_SESSION_NOT_FOUND)
    ben.gets()


@conversation(LATEST, settings={"group.share.max.share.sessions": "1", "group.share.max.size": "1"})
def more_sessions_than_there_may_be(talk: Talk) -> None:
    member = member_of(talk, 2)
    late = ShareMember(talk.another(), member.group, "ben")
    late.talk.ask(late.fetching(0, max_wait_ms=200), E.SHARE_SESSION_LIMIT_REACHED)
    talk.ask(member.fetching(epoch=FINAL))
    late.talk.ask(late.fetching(0))


# ---- who asks ----


@conversation
def members_without_a_proper_name(talk: Talk) -> None:
    group = begun(talk)
    for name in ("", "m" * 37, None):
        talk.ask(ShareMember(talk, group).fetching(0, member_id=name), E.INVALID_REQUEST)
    talk.ask(ShareMember(talk, group).fetching(0, group_id=None), E.INVALID_REQUEST)
    talk.ask(ShareMember(talk, group, "m" * 36).fetching(0))


@conversation
def a_group_without_a_name(talk: Talk) -> None:
    group = begun(talk)
    member = ShareMember(talk, group)
    talk.ask(member.fetching(0, group_id="", max_wait_ms=500), ANY)


@conversation
def a_group_that_is_reset_while_it_consumes(talk: Talk) -> None:
    member = member_of(talk, 3, 3)
    member.fetch()
    talk.do(member.group.initializing(state_epoch=2, start_offset=4), version=0)
    member.fetch(ANY, said={0: [(1, 3, ACCEPT)]}, max_records=0)
    member.fetch(max_wait_ms=10_000)
    member.fetch(said={0: [(4, 6, ACCEPT)]})
    talk.ask(member.group.reading())
