"""OffsetCommit: a group's positions are stored."""

from __future__ import annotations

from interop.conformance.conversation import LATEST, conversation
from interop.conformance.groups import (
    a_group,
    a_member,
    beating,
    committing,
    following,
    joined,
    joining,
    leaving,
    of_group,
    one,
    rebalancing,
    two_members,
)
from interop.conformance.talk import E, Talk, Topic
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.protocol.messages.offset_commit import OffsetCommitRequest
from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchRequest


def stored(group: str, topic: Topic, *partitions: int) -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=[of_group(group, {topic: list(partitions)})])


@conversation
def a_simple_consumer_commits_without_being_a_member(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    talk.ask(committing(group, topic, {0: 5, 1: 0}, metadata="note", leader_epoch=0))
    talk.ask(stored(group, topic, 0, 1))


@conversation
def metadata_may_be_missing(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.ask(committing(group, topic, {0: 5}, metadata=None))
    talk.ask(stored(group, topic, 0))


@conversation
def a_later_commit_replaces_an_earlier_one_even_with_a_smaller_offset(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.ask(committing(group, topic, {0: 50}))
    talk.ask(committing(group, topic, {0: 7}, metadata="back"))
    talk.ask(stored(group, topic, 0))


@conversation
def an_offset_is_not_compared_with_the_log(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.ask(committing(group, topic, {0: 2**62}))
    talk.ask(committing(group, topic, {0: -1}))
    talk.ask(committing(group, topic, {0: -(2**63)}))
    talk.ask(stored(group, topic, 0))


@conversation
def metadata_has_a_limit(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.ask(committing(group, topic, {0: 1}, metadata="m" * 4096))
    talk.ask(committing(group, topic, {0: 2}, metadata="m" * 4097), E.OFFSET_METADATA_TOO_LARGE)
    talk.ask(stored(group, topic, 0))


@conversation
def the_metadata_limit_counts_characters(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.ask(committing(group, topic, {0: 1}, metadata="ä" * 4096))
    talk.ask(committing(group, topic, {0: 1}, metadata="\U0001f600" * 2049), E.OFFSET_METADATA_TOO_LARGE)


@conversation("2-9")
def an_unknown_topic_or_partition_is_refused_beside_the_known_ones(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    request = committing(group, Topic(talk.name("missing"), ZERO_UUID), {0: 1, 1: 2})
    request.topics += committing(group, topic, {0: 3, 1: 4}).topics
    talk.ask(request, *[E.UNKNOWN_TOPIC_OR_PARTITION] * 3)
    talk.ask(stored(group, topic, 0, 1))


@conversation("10+")
def an_unknown_topic_id_is_refused_beside_the_known_ones(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    request = committing(group, Topic("", b"\x01" * 16), {0: 1})
    request.topics += committing(group, topic, {0: 3, 1: 4}).topics
    talk.ask(request, E.UNKNOWN_TOPIC_ID, E.UNKNOWN_TOPIC_OR_PARTITION)
    talk.ask(stored(group, topic, 0, 1))


@conversation("10+")
def a_topic_without_id_is_unknown(talk: Talk) -> None:
    group = a_group(talk)
    talk.ask(committing(group, Topic("", ZERO_UUID), {0: 1}), E.UNKNOWN_TOPIC_ID)


@conversation
def a_negative_partition_is_unknown(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.ask(committing(group, topic, {-1: 1}), E.UNKNOWN_TOPIC_OR_PARTITION)


@conversation
def a_commit_of_nothing(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.ask(OffsetCommitRequest(group_id=group, member_id="", topics=[]))
    talk.ask(committing(group, topic, {}))


@conversation
def a_partition_that_is_named_twice_gets_the_last_offset(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    request = committing(group, topic, {0: 1})
    request.topics += committing(group, topic, {0: 2}).topics
    talk.ask(request)
    talk.ask(stored(group, topic, 0))


@conversation("0+", alone=True)
def the_empty_group_id_takes_commits_of_simple_consumers(talk: Talk) -> None:
    a_group(talk)
    topic = talk.topic()
    talk.ask(committing("", topic, {0: 1}))
    talk.do(DeleteGroupsRequest(groups_names=[""]))


@conversation
def a_member_commits(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    member = a_member(talk, group)
    talk.ask(committing(group, topic, {0: 5}, member_id=member.id, generation=member.generation))
    talk.ask(stored(group, topic, 0))


@conversation
def a_member_of_another_generation_is_refused(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    member = a_member(talk, group)
    for generation in (member.generation - 1, member.generation + 1):
        talk.ask(
            committing(group, topic, {0: 5}, member_id=member.id, generation=generation),
            E.ILLEGAL_GENERATION,
        )


@conversation
def a_member_without_generation_is_refused(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    member = a_member(talk, group)
    talk.ask(committing(group, topic, {0: 5}, member_id=member.id), E.ILLEGAL_GENERATION)


@conversation
def a_stranger_may_not_commit_for_a_group_that_has_members(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    member = a_member(talk, group)
    talk.ask(
        committing(group, topic, {0: 5}, member_id="stranger", generation=member.generation),
        E.UNKNOWN_MEMBER_ID,
    )
    talk.ask(committing(group, topic, {0: 5}), E.UNKNOWN_MEMBER_ID)


@conversation
def a_generation_of_an_unknown_group(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    refused = E.ILLEGAL_GENERATION if talk.version < 9 else E.GROUP_ID_NOT_FOUND
    talk.ask(committing(group, topic, {0: 5}, member_id="m", generation=3), refused)
    talk.ask(committing(group, topic, {0: 5}, generation=0), refused)


@conversation
def an_empty_group_takes_commits_of_simple_consumers(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    member = a_member(talk, group)
    talk.do(leaving(group, one(member)))
    talk.ask(committing(group, topic, {0: 5}))
    talk.ask(
        committing(group, topic, {0: 6}, member_id=member.id, generation=member.generation),
        E.UNKNOWN_MEMBER_ID,
    )
    talk.ask(stored(group, topic, 0))


@conversation
def a_member_may_commit_while_the_group_rebalances(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    member = a_member(talk, group)
    talk.another().send(following(group), version=3)
    rebalancing(talk, member)
    talk.ask(committing(group, topic, {0: 5}, member_id=member.id, generation=member.generation))
    talk.ask(stored(group, topic, 0))


@conversation
def commits_before_the_assignment_are_refused(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    member, _ = joined(talk, group)
    talk.ask(
        committing(group, topic, {0: 5}, member_id=member.id, generation=member.generation),
        E.REBALANCE_IN_PROGRESS,
    )


@conversation("7+")
def an_instance_commits_with_its_member_id_only(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    member = a_member(talk, group, instance=f"{group}-i")

    def at(offset: int, member_id: str, instance: str | None) -> OffsetCommitRequest:
        return committing(
            *(group, topic, {0: offset}),
            member_id=member_id,
            generation=member.generation,
            instance=instance,
        )

    talk.ask(at(5, member.id, member.instance))
    talk.ask(at(6, "another", member.instance), E.FENCED_INSTANCE_ID)
    talk.ask(at(7, member.id, "unknown"), E.UNKNOWN_MEMBER_ID)
    talk.ask(stored(group, topic, 0))


@conversation(LATEST)
def a_commit_keeps_a_member_alive(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    leader, follower, other = two_members(talk, group)
    other.ask(committing(group, topic, {0: 9}, member_id=follower.id, generation=follower.generation))
    talk.ask(beating(leader))


@conversation(LATEST)
def the_group_is_looked_at_before_the_topics(talk: Talk) -> None:
    group = a_group(talk)
    a_member(talk, group)
    unknown = Topic("", b"\x02" * 16)
    talk.ask(committing(group, unknown, {0: 5}, member_id="x", generation=1), E.UNKNOWN_TOPIC_ID)


@conversation(LATEST)
def a_group_with_offsets_can_be_joined_and_still_has_them(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.ask(committing(group, topic, {0: 5}))
    given = talk.ask(joining(group), E.MEMBER_ID_REQUIRED)
    talk.ask(joining(group, given.member_id))
    talk.ask(stored(group, topic, 0))


@conversation(LATEST)
def a_commit_that_is_larger_than_a_batch_may_be(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=300)
    offsets = dict.fromkeys(range(300), 5)
    talk.ask(committing(group, topic, offsets, metadata="m" * 4096), *[E.UNKNOWN_SERVER_ERROR] * 300)
    talk.ask(committing(group, topic, offsets, metadata="m" * 1024))
