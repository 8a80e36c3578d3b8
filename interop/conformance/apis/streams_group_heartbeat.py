"""StreamsGroupHeartbeat: threads of Kafka Streams applications come, run tasks and go (KIP-1071)."""

from __future__ import annotations

from typing import Any

from interop.conformance.acl_matrix import SETTINGS, STRANGER, grant
from interop.conformance.acl_requests import ROOT
from interop.conformance.consumer_groups import joined as joined_consumer
from interop.conformance.consumer_groups import joining as joining_consumers
from interop.conformance.conversation import LATEST, conversation
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
from interop.conformance.streams import (
    DELAYED,
    LEAVE,
    LEAVE_FOR_A_WHILE,
    MISSING_INTERNAL,
    a_streams_group,
    assigns_at_once,
    beating,
    codes,
    created,
    has_tasks,
    internal,
    joined,
    joining,
    known,
    owning,
    part,
    set_configs,
    tasks,
    together,
    topology,
)
from interop.conformance.talk import E, Talk, Topic
from pykafka_broker.apis.ports.authorizer import CLUSTER_NAME
from pykafka_broker.protocol.acls import AclOperation, AclPermission, AclResourceType, PatternType
from pykafka_broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from pykafka_broker.protocol.messages.create_acls import AclCreation
from pykafka_broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchRequest
from pykafka_broker.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from pykafka_broker.protocol.messages.streams_group_heartbeat import Endpoint, KeyValue, TaskOffset
from pykafka_broker.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

TOPIC_RESOURCE, SET, SAFE_DOWNGRADE = 2, 0, 2


def fetching(group: str, topic: Topic, *partitions: int, **member: object) -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=[of_group(group, {topic: list(partitions)}, **member)])


def describing(group: str) -> StreamsGroupDescribeRequest:
    return StreamsGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)


# ---- members ----


@conversation
def the_first_member_gets_all_tasks(talk: Talk) -> None:
    topic = talk.topic(partitions=3)
    group = a_streams_group(talk, topic)
    talk.ask(joining(group, "m", topic))


@conversation
def the_first_assignment_waits_for_more_members(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic(partitions=2)
    known(talk, topic)
    talk.ask(joining(group, "m", topic))
    talk.ask(joining(group, "n", topic))
    talk.ask(beating(group, "m", 1, **owning()), until=lambda answer: DELAYED not in codes(answer))
    talk.ask(beating(group, "n", 1, **owning()))


@conversation
def a_member_that_says_nothing_new_is_told_nothing_new(talk: Talk) -> None:
    topic = talk.topic(partitions=3)
    group = a_streams_group(talk, topic)
    epoch = joined(talk, group, "m", topic)
    talk.ask(beating(group, "m", epoch))
    talk.ask(beating(group, "m", epoch, **owning(0, 1, 2)))
    talk.ask(beating(group, "m", epoch, rack_id="r", client_tags=[KeyValue(key="zone", value="a")]))


@conversation
def two_members_share_when_the_first_has_let_go(talk: Talk) -> None:
    topic = talk.topic(partitions=4)
    group = a_streams_group(talk, topic)
    epoch = joined(talk, group, "m", topic)
    second = talk.ask(joining(group, "n", topic))
    talk.ask(beating(group, "m", epoch, **owning(0, 1, 2, 3)))
    talk.ask(beating(group, "n", second.member_epoch, **owning()))
    talk.ask(beating(group, "m", epoch, **owning(0, 1)))
    talk.ask(beating(group, "n", second.member_epoch, **owning()))


@conversation
def threads_of_one_process_share_its_tasks(talk: Talk) -> None:
    topic = talk.topic(partitions=4)
    group = a_streams_group(talk, topic)
    epoch = joined(talk, group, "a", topic, process_id="p")
    talk.ask(joining(group, "b", topic, process_id="p"))
    talk.ask(joining(group, "c", topic, process_id="q"))
    talk.ask(beating(group, "a", epoch, **owning(0, 1, 2, 3)))


@conversation
def the_tasks_of_who_leaves_are_free_at_once(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    group = a_streams_group(talk, topic)
    joined(talk, group, "m", topic)
    second = talk.ask(joining(group, "n", topic))
    talk.ask(beating(group, "m", LEAVE))
    talk.ask(beating(group, "n", second.member_epoch, **owning()))


@conversation
def a_member_leaves_and_comes_back(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    group = a_streams_group(talk, topic)
    epoch = joined(talk, group, "m", topic)
    talk.ask(beating(group, "m", LEAVE))
    talk.ask(beating(group, "m", epoch), E.UNKNOWN_MEMBER_ID)
    talk.ask(joining(group, "m", topic))


@conversation
def a_member_that_joins_again_begins_anew(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    group = a_streams_group(talk, topic)
    joined(talk, group, "m", topic)
    talk.ask(joining(group, "m", topic))


@conversation
def standbys_are_kept_elsewhere(talk: Talk) -> None:
    topic, store = talk.topic(partitions=2), talk.topic("store", partitions=2)
    group = a_streams_group(talk, topic, store, configs={"streams.num.standby.replicas": "1"})
    stateful = topology(part("0", topic, state_changelog_topics=[internal(store.name)]))
    epoch = joined(talk, group, "m", stateful)
    second = talk.ask(joining(group, "n", stateful))
    talk.ask(beating(group, "m", epoch, **owning(0, 1)))
    talk.ask(beating(group, "m", epoch, **owning(0, standby=[1])))
    talk.ask(beating(group, "n", second.member_epoch, **owning(standby=[0])))


@conversation
def a_number_of_standbys_that_changes_moves_the_group_on(talk: Talk) -> None:
    topic, store = talk.topic(), talk.topic("store")
    group = a_streams_group(talk, topic, store)
    stateful = topology(part("0", topic, state_changelog_topics=[internal(store.name)]))
    epoch = joined(talk, group, "m", stateful)
    second = talk.ask(joining(group, "n", stateful))
    set_configs(talk, group, {"streams.num.standby.replicas": "1"})
    talk.ask(
        beating(group, "n", second.member_epoch, **owning()), until=lambda answer: bool(answer.standby_tasks)
    )
    talk.ask(beating(group, "m", epoch, **owning(0)))


@conversation
def members_learn_where_the_others_can_be_asked(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    group = a_streams_group(talk, topic)
    first = talk.ask(joining(group, "m", topic, user_endpoint=Endpoint(host="here", port=65_535)))
    second = talk.ask(joining(group, "n", topic, user_endpoint=Endpoint(host="there", port=1)))
    talk.ask(beating(group, "m", first.member_epoch, **owning(0, 1)))
    talk.ask(
        beating(
            group,
            "m",
            first.member_epoch,
            endpoint_information_epoch=second.endpoint_information_epoch,
            **owning(0),
        )
    )
    talk.ask(beating(group, "n", second.member_epoch, **owning()))
    talk.ask(beating(group, "n", second.member_epoch, endpoint_information_epoch=-1))


@conversation
def a_member_stops_the_whole_application(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    group = a_streams_group(talk, topic)
    epoch = joined(talk, group, "m", topic)
    second = talk.ask(joining(group, "n", topic))
    talk.ask(beating(group, "n", second.member_epoch, shutdown_application=True))
    talk.ask(beating(group, "m", epoch))
    talk.ask(joining(group, "o", topic))
    for member in ("m", "n", "o"):
        talk.ask(beating(group, member, LEAVE))
    talk.ask(joining(group, "m", topic))


@conversation
def a_member_that_leaves_may_stop_the_others(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    group = a_streams_group(talk, topic)
    epoch = joined(talk, group, "m", topic)
    talk.ask(joining(group, "n", topic))
    talk.ask(beating(group, "n", LEAVE, shutdown_application=True))
    talk.ask(beating(group, "m", epoch))


# ---- topics ----


@conversation
def source_topics_that_are_missing_are_named(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    names = [talk.name(label) for label in ("e", "a", "d", "c", "b")]
    talk.ask(joining(group, "m", topology(part("0", topic, *names[:2]), part("1", *names[2:]))))


@conversation
def a_source_topic_comes(talk: Talk) -> None:
    group, name = a_streams_group(talk), talk.name("late")
    joining_late = joining(group, "m", topology(part("0", name)))
    first = talk.ask(joining_late)
    talk.topic(partitions=2, name=name)
    talk.ask(beating(group, "m", first.member_epoch, **owning()), until=has_tasks(2))


@conversation
def a_source_topic_grows(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    epoch = joined(talk, group, "m", topic)
    growing = CreatePartitionsTopic(name=topic.name, count=3, assignments=None)
    talk.do(CreatePartitionsRequest(topics=[growing], timeout_ms=10_000, validate_only=False))
    talk.ask(beating(group, "m", epoch, **owning(0)), until=has_tasks(3))


@conversation
def internal_topics_are_created_as_the_topology_says(talk: Talk) -> None:
    topic = talk.topic(partitions=3)
    group = a_streams_group(talk, topic)
    changelog, repartition = talk.name("changelog"), talk.name("repartition")
    first = talk.ask(
        joining(
            group,
            "m",
            topology(
                part("0", topic, repartition_sink_topics=[repartition]),
                part(
                    "1",
                    repartition_source_topics=[internal(repartition, 2, 1, {"retention.ms": "-1"})],
                    state_changelog_topics=[
                        internal(changelog, configs={"cleanup.policy": "compact", "segment.bytes": "1048576"})
                    ],
                ),
            ),
        )
    )
    created(talk, changelog, repartition)
    talk.ask(beating(group, "m", first.member_epoch, **owning()), until=has_tasks(5))
    for name in (changelog, repartition):
        talk.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False))
        keys = ["cleanup.policy", "segment.bytes", "retention.ms"]
        asked = DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=keys
        )
        talk.ask(DescribeConfigsRequest(resources=[asked]))


@conversation
def why_an_internal_topic_cannot_be_created_is_told(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    stores = [internal(talk.name("store"), 0, 9)]
    first = talk.ask(joining(group, "m", topology(part("0", topic, state_changelog_topics=stores))))
    talk.ask(
        beating(group, "m", first.member_epoch),
        until=lambda answer: "Creation failed" in answer.status[0].status_detail,
    )


@conversation
def a_config_that_a_topic_cannot_have_is_told(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    stores = [internal(talk.name("store"), configs={"retention.ms": "soon"})]
    first = talk.ask(joining(group, "m", topology(part("0", topic, state_changelog_topics=stores))))
    talk.ask(
        beating(group, "m", first.member_epoch),
        until=lambda answer: "Creation failed" in answer.status[0].status_detail,
    )


@conversation
def topics_of_the_wrong_size_are_told(talk: Talk) -> None:
    topic, other, store = talk.topic(partitions=3), talk.topic("other", partitions=2), talk.topic("store")
    group = a_streams_group(talk, topic, other, store)
    read_together = part("0", topic, other, copartition_groups=[together([0, 1])])
    talk.ask(joining(group, "m", topology(read_together)))
    group = talk.name("another")
    assigns_at_once(talk, group)
    kept = part("0", topic, state_changelog_topics=[internal(store.name)])
    talk.ask(joining(group, "m", topology(kept)))


@conversation
def topics_that_a_topology_may_not_name(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    internal_too = part(
        "0",
        "__consumer_offsets",
        topic,
        "__share_group_state",
        repartition_sink_topics=["__transaction_state"],
    )
    invalid = part("0", "a b", topic, state_changelog_topics=[internal("..")])
    for wrong in (internal_too, invalid, part("0", "", topic)):
        talk.ask(joining(group, "m", topology(wrong)), E.STREAMS_INVALID_TOPOLOGY)
    sized = part("0", topic, state_changelog_topics=[internal("x", 3)])
    talk.ask(joining(group, "m", topology(sized)), E.STREAMS_INVALID_TOPOLOGY)


@conversation
def a_topology_without_a_source_is_invalid(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    endless = part("0", repartition_source_topics=[internal("loop")], repartition_sink_topics=["loop"])
    talk.ask(joining(group, "m", topology(endless)), E.STREAMS_INVALID_TOPOLOGY)


@conversation
def the_topology_of_a_group_stays(talk: Talk) -> None:
    topic, other = talk.topic(), talk.topic("other")
    group = a_streams_group(talk, topic, other)
    talk.ask(joining(group, "m", topology(part("0", topic), epoch=3)))
    talk.ask(joining(group, "n", topology(part("0", other), epoch=3)), E.INVALID_REQUEST)
    talk.ask(joining(group, "n", topology(part("0", topic), epoch=4)), E.INVALID_REQUEST)
    talk.ask(joining(group, "n", topology(part("0", other), epoch=2)))
    talk.ask(joining(group, "o", topology(part("0", topic), epoch=3)))


# ---- what is refused ----


@conversation
def what_a_first_heartbeat_must_say(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    flaws: tuple[dict[str, Any], ...] = (
        {"rebalance_timeout_ms": -1},
        {"topology": None},
        {"active_tasks": None},
        {"standby_tasks": tasks(0)},
        {"warmup_tasks": tasks(0)},
        {"instance_id": "i"},
        {"rack_id": " "},
        {"task_offsets": [TaskOffset(subtopology_id="0", partition=0, offset=1)]},
        {"task_end_offsets": []},
        {"topology": topology(part("0", topic, source_topic_regex=["a.*"]))},
    )
    for wrong in flaws:
        talk.ask(joining(group, "m", **{"what": topic, **wrong}), E.INVALID_REQUEST)
    talk.ask(joining(group, "", topic), E.INVALID_REQUEST)
    talk.ask(joining(" ", "m", topic), E.INVALID_REQUEST)


@conversation
def what_a_later_heartbeat_may_not_say(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    group = a_streams_group(talk, topic)
    epoch = joined(talk, group, "m", topic)
    flaws: tuple[dict[str, Any], ...] = (
        {"topology": topology(part("0", topic))},
        {"active_tasks": []},
        {"active_tasks": tasks(0, number="1"), "standby_tasks": [], "warmup_tasks": []},
        {"active_tasks": tasks(0, 2), "standby_tasks": [], "warmup_tasks": []},
    )
    for wrong in flaws:
        talk.ask(beating(group, "m", epoch, **wrong), E.INVALID_REQUEST)
    talk.ask(beating(group, "m", -3), E.INVALID_REQUEST)
    talk.ask(beating(group, "m", LEAVE_FOR_A_WHILE), E.INVALID_REQUEST)


@conversation
def an_unknown_group_has_no_members(talk: Talk) -> None:
    group = a_streams_group(talk)
    talk.ask(beating(group, "m", 3), E.GROUP_ID_NOT_FOUND)
    talk.ask(beating(group, "m", LEAVE), E.GROUP_ID_NOT_FOUND)


@conversation
def a_stranger_is_unknown(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    joined(talk, group, "m", topic)
    talk.ask(beating(group, "stranger", 1), E.UNKNOWN_MEMBER_ID)
    talk.ask(beating(group, "stranger", LEAVE), E.UNKNOWN_MEMBER_ID)


@conversation
def another_epoch_is_fenced(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    epoch = joined(talk, group, "m", topic)
    talk.ask(beating(group, "m", epoch + 1), E.FENCED_MEMBER_EPOCH)
    talk.ask(beating(group, "m", epoch - 1), E.FENCED_MEMBER_EPOCH)


@conversation(LATEST, settings={"group.streams.max.size": "1"})
def a_full_group_takes_nobody(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    joined(talk, group, "m", topic)
    talk.ask(joining(group, "n", topic), E.GROUP_MAX_SIZE_REACHED)
    talk.ask(joining(group, "m", topic), E.GROUP_MAX_SIZE_REACHED)


@conversation(LATEST, settings={"group.coordinator.rebalance.protocols": "classic,consumer"})
def the_protocol_is_switched_off(talk: Talk) -> None:
    group, topic = a_group(talk), talk.topic()
    talk.ask(joining(group, "m", topic), E.UNSUPPORTED_VERSION)
    talk.ask(describing(group), E.UNSUPPORTED_VERSION)


@conversation(LATEST, settings={"group.streams.max.size": "1000"})
def the_feature_is_taken_back(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    epoch = joined(talk, group, "m", topic)
    lowering = FeatureUpdateKey(
        feature="streams.version", max_version_level=0, allow_downgrade=False, upgrade_type=SAFE_DOWNGRADE
    )
    talk.ask(UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[lowering], validate_only=False))
    talk.ask(beating(group, "m", epoch), E.UNSUPPORTED_VERSION, until=lambda answer: bool(answer.error_code))
    talk.ask(describing(group), E.UNSUPPORTED_VERSION)


# ---- groups of other kinds ----


@conversation
def a_group_of_another_kind_is_none(talk: Talk) -> None:
    topic = talk.topic()
    known(talk, topic)
    classic, consumers = a_group(talk, "classic"), a_group(talk, "consumers")
    a_member(talk, classic)
    joined_consumer(talk, consumers, "m", topic)
    for group in (classic, consumers):
        talk.ask(joining(group, "m", topic), E.GROUP_ID_NOT_FOUND)
        talk.ask(beating(group, "m", 1), E.GROUP_ID_NOT_FOUND)
        talk.ask(beating(group, "m", LEAVE), E.GROUP_ID_NOT_FOUND)


@conversation
def an_empty_classic_group_is_replaced(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    group = a_streams_group(talk, topic)
    talk.do(committing(group, topic, {0: 5}))
    talk.ask(joining(group, "m", topic))
    talk.ask(fetching(group, topic, 0, 1))
    left = talk.name("left")
    assigns_at_once(talk, left)
    talk.do(leaving(left, one(a_member(talk, left))))
    talk.ask(joining(left, "m", topic))


@conversation
def who_names_a_streams_group_as_another_kind(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    joined(talk, group, "m", topic)
    talk.ask(joining_classic(group), E.INCONSISTENT_GROUP_PROTOCOL)
    stranger = Member(group, "m", 1)
    talk.ask(syncing(stranger), E.UNKNOWN_MEMBER_ID)
    talk.ask(beating_classic(stranger), E.UNKNOWN_MEMBER_ID)
    talk.ask(leaving(group, one(stranger)), E.UNKNOWN_MEMBER_ID)
    talk.ask(joining_consumers(group, "c", topic), E.GROUP_ID_NOT_FOUND)
    talk.ask(DescribeGroupsRequest(groups=[group]), E.GROUP_ID_NOT_FOUND)
    as_consumers = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
    talk.ask(as_consumers, E.GROUP_ID_NOT_FOUND)


@conversation
def a_classic_group_takes_the_place_of_an_empty_one(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    joined(talk, group, "m", topic)
    talk.ask(beating(group, "m", LEAVE))
    member = a_member(talk, group)
    talk.ask(beating_classic(member))
    talk.ask(joining(group, "m", topic), E.GROUP_ID_NOT_FOUND)


@conversation("0+", alone=True)
def groups_are_listed_with_their_state(talk: Talk) -> None:
    topic = talk.topic()
    stable = a_streams_group(talk, topic)
    joined(talk, stable, "m", topic)
    waiting = talk.name("waiting")
    talk.do(joining(waiting, "m", topology(part("0", talk.name("missing")))))
    for states in ([], ["Stable"], ["NotReady"], ["not_ready"], ["Empty"]):
        talk.ask(ListGroupsRequest(types_filter=["Streams"], states_filter=states))
    talk.ask(beating(stable, "m", LEAVE))
    talk.ask(ListGroupsRequest(types_filter=["streams"], states_filter=["Empty", "notready"]))
    talk.ask(beating(waiting, "m", LEAVE))


# ---- offsets and deletion ----


@conversation
def offsets_are_committed_and_fetched_with_the_epoch_of_the_member(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    epoch = joined(talk, group, "m", topic)
    talk.ask(committing(group, topic, {0: 5}, member_id="m", generation=epoch))
    talk.ask(committing(group, topic, {0: 6}, member_id="m", generation=epoch + 1), E.STALE_MEMBER_EPOCH)
    talk.ask(committing(group, topic, {0: 6}, member_id="m", generation=epoch - 1), E.STALE_MEMBER_EPOCH)
    talk.ask(committing(group, topic, {0: 7}, member_id="x", generation=epoch), E.UNKNOWN_MEMBER_ID)
    talk.ask(committing(group, topic, {0: 8}), E.UNKNOWN_MEMBER_ID)
    talk.ask(fetching(group, topic, 0))
    talk.ask(fetching(group, topic, 0, member_id="m", member_epoch=epoch))
    talk.ask(fetching(group, topic, 0, member_id="m", member_epoch=epoch + 1), E.STALE_MEMBER_EPOCH)
    talk.ask(fetching(group, topic, 0, member_id="x", member_epoch=epoch), E.UNKNOWN_MEMBER_ID)


@conversation
def an_older_epoch_counts_for_tasks_that_a_member_has_kept(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    group = a_streams_group(talk, topic)
    epoch = joined(talk, group, "m", topic)
    talk.ask(joining(group, "n", topic))
    talk.ask(beating(group, "m", epoch, **owning(0, 1)))
    talk.ask(committing(group, topic, {1: 4}, member_id="m", generation=epoch))
    talk.ask(beating(group, "m", epoch, **owning(0)))
    talk.ask(committing(group, topic, {0: 5}, member_id="m", generation=epoch))
    talk.ask(committing(group, topic, {1: 6}, member_id="m", generation=epoch), E.STALE_MEMBER_EPOCH)


@conversation
def offsets_of_what_is_read_are_not_deleted(talk: Talk) -> None:
    topic, other = talk.topic(), talk.topic("other")
    group = a_streams_group(talk, topic, other)
    epoch = joined(talk, group, "m", topic)
    for each in (topic, other):
        talk.do(committing(group, each, {0: 5}, member_id="m", generation=epoch))
    deleting = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=each.name, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
            )
            for each in (topic, other)
        ],
    )
    talk.ask(deleting, E.GROUP_SUBSCRIBED_TO_TOPIC)
    talk.ask(beating(group, "m", LEAVE))
    talk.ask(deleting)


@conversation
def a_group_that_has_members_is_not_deleted(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    joined(talk, group, "m", topic)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), E.NON_EMPTY_GROUP)
    talk.do(beating(group, "m", LEAVE))
    talk.ask(DeleteGroupsRequest(groups_names=[group]))
    talk.ask(beating(group, "m", LEAVE), E.GROUP_ID_NOT_FOUND)


# ---- settings of a group ----


@conversation
def settings_that_a_group_may_have(talk: Talk) -> None:
    group = a_group(talk)
    for key, value, *errors in (
        ("streams.heartbeat.interval.ms", "6000"),
        ("streams.heartbeat.interval.ms", "4999", E.INVALID_CONFIG),
        ("streams.heartbeat.interval.ms", "15001", E.INVALID_CONFIG),
        ("streams.session.timeout.ms", "44999", E.INVALID_CONFIG),
        ("streams.session.timeout.ms", "60001", E.INVALID_CONFIG),
        ("streams.num.standby.replicas", "2"),
        ("streams.num.standby.replicas", "3", E.INVALID_CONFIG),
        ("streams.num.standby.replicas", "-1", E.INVALID_CONFIG),
        ("streams.initial.rebalance.delay.ms", "0"),
        ("streams.initial.rebalance.delay.ms", "-1", E.INVALID_CONFIG),
        ("streams.assignment.interval.ms", "15001", E.INVALID_CONFIG),
        ("streams.assignment.interval.ms", "soon", E.INVALID_CONFIG),
    ):
        altered = AlterableConfig(name=key, config_operation=SET, value=value)
        resource = AlterConfigsResource(resource_type=32, resource_name=group, configs=[altered])
        talk.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), *errors)
    asked = DescribeConfigsResource(resource_type=32, resource_name=group, configuration_keys=None)
    talk.ask(DescribeConfigsRequest(resources=[asked]))


@conversation
def the_interval_of_a_group_is_told_to_its_members(talk: Talk) -> None:
    topic = talk.topic()
    group = a_streams_group(talk, topic, configs={"streams.heartbeat.interval.ms": "7000"})
    talk.ask(joining(group, "m", topic), until=lambda answer: answer.heartbeat_interval_ms == 7_000)


# ---- what a member may do ----


@conversation(LATEST, settings=SETTINGS)
def internal_topics_need_the_right_to_create_them(talk: Talk) -> None:
    """The user may do everything but create topics, and then one of the two that are missing."""
    talk.log_in(ROOT)
    topic = talk.topic()
    group = a_streams_group(talk, topic)
    first, second = f"{group}-first", f"{group}-second"
    user = talk.another()
    user.log_in(STRANGER)
    allowed = [
        (AclResourceType.GROUP, group, AclOperation.READ),
        (AclResourceType.TOPIC, topic.name, AclOperation.DESCRIBE),
        (AclResourceType.TOPIC, first, AclOperation.DESCRIBE),
        (AclResourceType.TOPIC, second, AclOperation.DESCRIBE),
    ]
    counting = topology(
        part("0", topic, state_changelog_topics=[internal(second), internal(first)]),
    )
    user.ask(joining(group, "m", counting), E.GROUP_AUTHORIZATION_FAILED)
    grant(talk, [_acl(*each) for each in allowed[:3]])
    user.ask(joining(group, "m", counting), E.TOPIC_AUTHORIZATION_FAILED)
    grant(talk, [_acl(*allowed[3])])
    answer = user.ask(joining(group, "m", counting), until=lambda answer: not answer.error_code)
    grant(talk, [_acl(AclResourceType.TOPIC, first, AclOperation.CREATE)])
    epoch = answer.member_epoch
    user.ask(
        beating(group, "m", epoch),
        until=lambda answer: first not in answer.status[0].status_detail.partition("Unauthorized")[2],
    )
    grant(talk, [_acl(AclResourceType.CLUSTER, CLUSTER_NAME, AclOperation.CREATE)])
    user.ask(
        beating(group, "m", epoch),
        until=lambda answer: MISSING_INTERNAL not in codes(answer),
    )
    talk.created.extend([first, second])
    user.close()


def _acl(resource_type: AclResourceType, name: str, operation: AclOperation) -> AclCreation:
    return AclCreation(
        resource_type=resource_type,
        resource_name=name,
        resource_pattern_type=PatternType.LITERAL,
        principal=f"User:{STRANGER}",
        host="*",
        operation=operation,
        permission_type=AclPermission.ALLOW,
    )
