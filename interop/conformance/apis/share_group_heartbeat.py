"""ShareGroupHeartbeat: members of share groups come, get partitions and go (KIP-932)."""

from __future__ import annotations

from interop.conformance.apis.offset_delete import forgetting
from interop.conformance.consumer_groups import joined as joined_consumer_group
from interop.conformance.consumer_groups import joining as joining_consumers
from interop.conformance.conversation import conversation
from interop.conformance.groups import (
    Member,
    a_group,
    a_member,
    committing,
    leaving,
    of_group,
    one,
    syncing,
)
from interop.conformance.groups import beating as beating_classic
from interop.conformance.groups import joining as joining_classic
from interop.conformance.share_groups import LEAVE, a_share_group, beating, joined, joining, owning
from interop.conformance.talk import ANY, E, Talk
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchRequest
from pykafka_broker.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


@conversation
def the_first_member_gets_everything_once_there_are_states(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic(partitions=3)
    joined(talk, group, "probe", topic, partitions=3)
    talk.do(beating(group, "probe", LEAVE), version=1)
    talk.ask(joining(group, "m", topic), until=lambda answer: len(owning(answer)) == 3)


@conversation
def a_member_that_says_nothing_new_is_told_nothing_new(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic(partitions=3)
    epoch = joined(talk, group, "m", topic, partitions=3)
    talk.ask(beating(group, "m", epoch))
    talk.ask(beating(group, "m", epoch))


@conversation
def a_member_that_tells_its_topics_is_told_its_assignment(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic(partitions=3)
    epoch = joined(talk, group, "m", topic, partitions=3)
    talk.ask(beating(group, "m", epoch, names=[topic.name]))
    talk.ask(beating(group, "m", epoch, rack_id="r"))


@conversation
def a_topic_that_does_not_exist_has_nothing_to_assign(talk: Talk) -> None:
    group = a_share_group(talk)
    talk.ask(joining(group, "m", names=[talk.name("missing")]))


@conversation
def more_members_than_partitions_read_the_same_ones(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic(partitions=1)
    joined(talk, group, "m", topic)
    for member in ("n", "o"):
        talk.ask(joining(group, member, topic), until=lambda answer: len(owning(answer)) == 1)


@conversation
def a_member_id_that_is_none(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic()
    talk.ask(joining(group, "", topic), E.INVALID_REQUEST)
    talk.ask(joining(group, "m" * 37, topic), E.INVALID_REQUEST)
    talk.ask(joining(group, "\U0001f600" * 18 + "m", topic), E.INVALID_REQUEST)
    talk.ask(joining("", "m" * 37, topic), E.INVALID_REQUEST)
    talk.ask(joining(group, "m" * 36, topic))
    talk.ask(joining(group, "\U0001f600" * 18, topic))


@conversation
def what_a_heartbeat_must_say(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic()
    talk.ask(joining(group, " ", topic), E.INVALID_REQUEST)
    talk.ask(joining("", "m", topic), E.INVALID_REQUEST)
    talk.ask(joining(" ", " ", topic), E.INVALID_REQUEST)
    talk.ask(joining(group, "m", topic, rack_id=""), E.INVALID_REQUEST)
    talk.ask(joining(group, "m", topic, rack_id=" "), E.INVALID_REQUEST)
    talk.ask(joining(group, "m", names=None), E.INVALID_REQUEST)
    talk.ask(joining(group, "m", names=[]), E.INVALID_REQUEST)
    talk.ask(beating(group, "m", -2), E.INVALID_REQUEST)
    talk.ask(beating(group, "m", -2, names=[]), E.INVALID_REQUEST)


@conversation
def an_unknown_group_has_no_members(talk: Talk) -> None:
    group = a_share_group(talk)
    talk.ask(beating(group, "m", 3), E.GROUP_ID_NOT_FOUND)
    talk.ask(beating(group, "m", LEAVE), E.GROUP_ID_NOT_FOUND)


@conversation
def a_stranger_is_unknown(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic()
    joined(talk, group, "m", topic)
    talk.ask(beating(group, "stranger", 1), E.UNKNOWN_MEMBER_ID)
    talk.ask(beating(group, "stranger", LEAVE), E.UNKNOWN_MEMBER_ID)


@conversation
def another_epoch_is_fenced(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic()
    epoch = joined(talk, group, "m", topic)
    talk.ask(beating(group, "m", epoch + 1), E.FENCED_MEMBER_EPOCH)
    talk.ask(beating(group, "m", 1), E.FENCED_MEMBER_EPOCH)


@conversation
def a_member_leaves(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic()
    epoch = joined(talk, group, "m", topic)
    talk.ask(beating(group, "m", LEAVE))
    talk.ask(beating(group, "m", epoch), E.UNKNOWN_MEMBER_ID)


@conversation
def a_member_that_joins_again_keeps_what_it_has(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic(partitions=2)
    joined(talk, group, "m", topic, partitions=2)
    talk.ask(joining(group, "m", topic))


@conversation
def a_member_subscribes_to_another_topic(talk: Talk) -> None:
    group, first, second = a_share_group(talk), talk.topic(), talk.topic("second")
    joined(talk, group, "probe", second)
    epoch = joined(talk, group, "m", first)
    talk.do(beating(group, "probe", LEAVE), version=1)
    talk.ask(
        beating(group, "m", epoch, names=[second.name]),
        until=lambda answer: owning(answer) == [(second.id, 0)],
    )


@conversation
def a_group_of_another_kind_is_not_found(talk: Talk) -> None:
    a_share_group(talk)
    topic = talk.topic()
    classic, simple, consumers = a_group(talk, "classic"), a_group(talk, "simple"), a_group(talk, "consumer")
    a_member(talk, classic)
    talk.do(committing(simple, topic, {0: 5}))
    joined_consumer_group(talk, consumers, "m", topic)
    for group in (classic, simple, consumers):
        talk.ask(joining(group, "n", topic), E.GROUP_ID_NOT_FOUND)
        talk.ask(beating(group, "n", 1), E.GROUP_ID_NOT_FOUND)
        talk.ask(beating(group, "n", LEAVE), E.GROUP_ID_NOT_FOUND)


@conversation
def an_empty_group_is_deleted_with_its_states(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic(partitions=2)
    joined(talk, group, "m", topic, partitions=2)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), E.NON_EMPTY_GROUP)
    talk.do(beating(group, "m", LEAVE), version=1)
    talk.ask(DeleteGroupsRequest(groups_names=[group]))
    talk.ask(beating(group, "m", 1), E.GROUP_ID_NOT_FOUND)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), E.GROUP_ID_NOT_FOUND)


@conversation
def what_groups_of_other_kinds_are_asked(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic()
    joined(talk, group, "m", topic)
    member = Member(group, "m", 1)
    talk.ask(joining_classic(group), E.INCONSISTENT_GROUP_PROTOCOL)
    talk.ask(syncing(member, {"m": b"mine"}), E.UNKNOWN_MEMBER_ID)
    talk.ask(beating_classic(member), E.UNKNOWN_MEMBER_ID)
    talk.ask(leaving(group, one(member)), E.UNKNOWN_MEMBER_ID)
    talk.ask(joining_consumers(group, "m", topic), E.GROUP_ID_NOT_FOUND)
    talk.ask(committing(group, topic, {0: 5}), E.GROUP_ID_NOT_FOUND)
    talk.ask(OffsetFetchRequest(groups=[of_group(group, {topic: [0]})]))
    talk.ask(forgetting(group, topic, 0), E.GROUP_ID_NOT_FOUND)
    talk.ask(DescribeGroupsRequest(groups=[group]), E.GROUP_ID_NOT_FOUND)


@conversation(alone=True)
def without_the_feature_there_are_no_share_groups(talk: Talk) -> None:
    group, topic = a_share_group(talk), talk.topic()
    _level(talk, 0)
    talk.ask(joining(group, "", topic), E.UNSUPPORTED_VERSION)
    # Coordinators are found all the same.
    key = f"{group}:{'A' * 22}:0"
    talk.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), version=6)
    _level(talk, 1)
    talk.ask(joining(group, "m", topic), ANY, until=lambda answer: not answer.error_code)


def _level(talk: Talk, level: int) -> None:
    """Set share.version, and wait until the broker goes by it."""
    update = FeatureUpdateKey(
        feature="share.version", max_version_level=level, upgrade_type=1 if level else 2
    )
    talk.do(UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update]))
