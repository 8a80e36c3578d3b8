"""What clients are told of topics, groups and ids on which they may not do what they ask for."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from pykafka_broker.apis.metadata import metadata
from pykafka_broker.apis.ports.authorizer import ALLOW_ALL, AclOperation, AclResourceType, Requester
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import create_partitions as growing
from pykafka_broker.protocol.messages import create_topics as creating
from pykafka_broker.protocol.messages import delete_records as deleting
from pykafka_broker.protocol.messages import delete_topics as removing
from pykafka_broker.protocol.messages import describe_producers as producers
from pykafka_broker.protocol.messages import incremental_alter_configs as incremental
from pykafka_broker.protocol.messages import offset_delete as forgetting
from pykafka_broker.protocol.messages import offset_for_leader_epoch as epochs
from pykafka_broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from pykafka_broker.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from pykafka_broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from pykafka_broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest
from pykafka_broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from pykafka_broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from pykafka_broker.protocol.messages.fetch import ReplicaState
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.protocol.messages.list_transactions import ListTransactionsRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka_broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from pykafka_broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from pykafka_broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from pykafka_broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis import share_members
from tests.apis.asking import (
    batch,
    committing_of,
    coordinated,
    every,
    fetching_of,
    offsets_at,
    offsets_of,
    only_member,
    partitions_of,
    producing_to,
    wanting,
)
from tests.apis.transacting import ID, Producer, described
from tests.support.controllers import controller_address

READ, WRITE, DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE
CREATE, ALTER, DESCRIBE = AclOperation.CREATE, AclOperation.ALTER, AclOperation.DESCRIBE
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
CLUSTER_ACTION = AclOperation.CLUSTER_ACTION
TOPIC, GROUP, CLUSTER = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER
TRANSACTIONAL_ID = AclResourceType.TRANSACTIONAL_ID
TOPIC_DENIED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
GROUP_DENIED = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
CLUSTER_DENIED = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
ID_DENIED = int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

Denied = tuple[AclOperation, AclResourceType, str]
ON_CLUSTER = "kafka-cluster"


class AllButThese:
    """Denies what it lists; `attempts` are the denied operations that clients have asked for."""

    def __init__(self, *denied: Denied) -> None:
        self._denied = denied
        self.attempts: list[Denied] = []

    def allows(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str,
        *,
        is_attempt: bool = True,
    ) -> bool:
        return bool(self.filter(requester, operation, resource_type, [name], is_attempt=is_attempt))

    def allows_somewhere(
        self, requester: Requester, operation: AclOperation, resource_type: AclResourceType
    ) -> bool:
        return self.allows(requester, operation, resource_type, "somewhere", is_attempt=False)

    def filter(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: AclResourceType,
        names: Collection[str],
        *,
        is_attempt: bool = True,
    ) -> Collection[str]:
        denied = [name for name in names if (operation, resource_type, name) in self._denied]
        if is_attempt:
            self.attempts += [(operation, resource_type, name) for name in denied]
        return [name for name in names if name not in denied]

    def operations(self, requester: Requester, resource_type: AclResourceType, name: str) -> int:
        allowed = ALLOW_ALL.operations(requester, resource_type, name)
        for operation, kind, denied in self._denied:
            if (kind, denied) == (resource_type, name):
                allowed &= ~(1 << operation)
        return allowed


async def under(home: Home, *denied: Denied) -> tuple[User, AllButThese]:
    """A client of the running broker that may do all but this."""
    authorizer = AllButThese(*denied)
    ports = home.broker.node._shared.ports.broker
    ports.give(ports()._replace(authorizer=authorizer))
    return await User.connect(home.broker.bootstrap_servers), authorizer


async def at(listener: str, home: Home, *denied: Denied) -> User:
    """A client of one of the listeners that may do all but this."""
    if listener == "brokers":
        return (await under(home, *denied))[0]
    ports = home.broker.node._shared.ports.controller
    ports.give(ports()._replace(authorizer=AllButThese(*denied)))
    return await User.connect(controller_address(home.broker))


# -- groups -------------------------------------------------------------------------------------------------


async def test_groups_that_one_may_not_describe_are_not_listed(home: Home, user: User) -> None:
    for group in ("g", "hidden"):
        await only_member(user, group)
    hides = (DESCRIBE, GROUP, "hidden")

    client, authorizer = await under(home, hides, (DESCRIBE, CLUSTER, ON_CLUSTER))
    assert [group.group_id for group in (await client.send(ListGroupsRequest(), 5)).groups] == ["g"]
    # Nothing was asked for that is denied.
    assert authorizer.attempts == []

    client, _ = await under(home, hides)
    assert len((await client.send(ListGroupsRequest(), 5)).groups) == 2


@pytest.mark.parametrize("group", ["hidden", "missing"])
async def test_a_group_that_one_may_not_describe_looks_like_one_that_is_missing(
    home: Home, user: User, group: str
) -> None:
    for each in ("g", "hidden"):
        await only_member(user, each)
    client, authorizer = await under(home, (DESCRIBE, GROUP, group))
    request = DescribeGroupsRequest(groups=["g", group], include_authorized_operations=True)
    first, second = (await client.send(request, 6)).groups

    assert (first.group_id, first.error_code, first.members) == (group, GROUP_DENIED, [])
    assert (second.group_id, second.error_code) == ("g", 0)
    assert authorizer.attempts == [(DESCRIBE, GROUP, group)]


async def test_a_consumer_group_is_described_to_those_who_may_describe_it_and_its_topics(
    home: Home, user: User
) -> None:
    await user.create_topic("t")
    await coordinated(user)
    joined = await user.send(
        ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        ),
        1,
    )
    assert joined.assignment.topic_partitions

    async def told(*denied: Denied) -> tuple[int, str | None, int]:
        client, _ = await under(home, *denied)
        [group] = (
            await client.send(
                ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False), 1
            )
        ).groups
        return group.error_code, group.error_message, len(group.members)

    assert await told() == (0, None, 1)
    assert await told((DESCRIBE, GROUP, "g")) == (GROUP_DENIED, None, 0)
    text = "The group has described topic(s) that the client is not authorized to describe."
    assert await told((DESCRIBE, TOPIC, "t")) == (TOPIC_DENIED, text, 0)


async def test_a_share_group_is_joined_by_those_who_may_read_it_and_describe_its_topics(
    home: Home, user: User
) -> None:
    await user.create_topic("t")
    await coordinated(user)

    async def told(*denied: Denied, member_id: str = "m") -> ShareGroupHeartbeatResponse:
        client, _ = await under(home, *denied)
        return await share_members.beat(client, member_id)

    def refused(error_code: int) -> ShareGroupHeartbeatResponse:
        return ShareGroupHeartbeatResponse(error_code=error_code, member_epoch=0, heartbeat_interval_ms=0)

    assert await told((READ, GROUP, "g"), member_id="") == refused(GROUP_DENIED)
    assert await told((DESCRIBE, TOPIC, "t"), member_id="") == refused(int(ErrorCode.INVALID_REQUEST))
    assert await told((DESCRIBE, TOPIC, "t")) == refused(TOPIC_DENIED)
    assert (await told((WRITE, GROUP, "g"))).error_code == 0


async def test_a_share_group_is_described_to_those_who_may_describe_it_and_its_topics(
    home: Home, user: User
) -> None:
    await share_members.sharing(home, user)

    async def told(*denied: Denied) -> list[tuple[str, int, str | None, int]]:
        client, _ = await under(home, *denied)
        request = ShareGroupDescribeRequest(group_ids=["none", "g"], include_authorized_operations=True)
        groups = (await client.send(request, 1)).groups
        return [(each.group_id, each.error_code, each.error_message, len(each.members)) for each in groups]

    none = ("none", int(ErrorCode.GROUP_ID_NOT_FOUND), "Group none not found.", 0)
    assert await told() == [none, ("g", 0, None, 1)]
    # Those that one may not see stand in front.
    assert await told((DESCRIBE, GROUP, "g")) == [("g", GROUP_DENIED, None, 0), none]
    text = "The group has described topic(s) that the client is not authorized to describe."
    assert await told((DESCRIBE, TOPIC, "t")) == [none, ("g", TOPIC_DENIED, text, 0)]


async def test_share_offsets_are_shown_of_topics_that_one_may_describe(home: Home, user: User) -> None:
    await share_members.emptied(home, user)
    await user.create_topic("u")

    async def told(
        *denied: Denied, topics: dict[str, list[int]] | None
    ) -> tuple[int, dict[tuple[str, int], tuple[int, int, int]]]:
        client, _ = await under(home, *denied)
        group = await share_members.described(client, topics)
        return group.error_code, share_members.offsets_in(group)

    named = {"t": [0], "u": [0]}
    assert await told((DESCRIBE, GROUP, "g"), topics=named) == (GROUP_DENIED, {})
    assert await told((DESCRIBE, TOPIC, "t"), topics=named) == (
        0,
        {("u", 0): (-1, -1, 0), ("t", 0): (-1, -1, TOPIC_DENIED)},
    )
    # Where none is named those that one may not see are left out.
    assert await told((DESCRIBE, TOPIC, "t"), topics=None) == (0, {})
    assert len((await told(topics=None))[1]) == 2


async def test_share_offsets_are_altered_of_topics_that_one_may_read(home: Home, user: User) -> None:
    await share_members.emptied(home, user)
    await user.create_topic("u")
    offsets = {"t": {0: 5}, "u": {0: 6}, "v": {0: 7}}

    client, _ = await under(home, (READ, GROUP, "g"))
    assert (await share_members.altered(client, offsets)).error_code == GROUP_DENIED
    client, _ = await under(home, (READ, TOPIC, "u"), (READ, TOPIC, "v"))
    answer = await share_members.altered(client, offsets)
    assert [
        (topic.topic_name, each.error_code, each.error_message)
        for topic in answer.responses
        for each in topic.partitions
    ] == [
        ("u", TOPIC_DENIED, "Topic authorization failed."),
        ("v", TOPIC_DENIED, "Topic authorization failed."),
        ("t", 0, None),
    ]


async def test_share_offsets_are_forgotten_of_topics_that_one_may_read(home: Home, user: User) -> None:
    await share_members.emptied(home, user)
    client, _ = await under(home, (DELETE, GROUP, "g"))
    assert (await share_members.forgotten(client, "t")).error_code == GROUP_DENIED
    client, _ = await under(home, (READ, TOPIC, "t"))
    answer = await share_members.forgotten(client, "u", "t")
    assert [(topic.topic_name, topic.error_code) for topic in answer.responses] == [
        ("t", TOPIC_DENIED),
        ("u", int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
    ]


async def test_a_group_that_one_may_not_delete_stays(home: Home, user: User) -> None:
    await user.create_topic("t")
    for group in ("kept", "gone"):
        await user.commit(group, "t", 1)
    client, _ = await under(home, (DELETE, GROUP, "kept"))
    results = (await client.send(DeleteGroupsRequest(groups_names=["kept", "gone"]), 2)).results

    assert [(each.group_id, each.error_code) for each in results] == [("gone", 0), ("kept", GROUP_DENIED)]
    assert await user.committed("kept") == {("t", 0): 1}


@pytest.mark.parametrize(
    ("key_type", "kind", "error"), [(0, GROUP, GROUP_DENIED), (1, TRANSACTIONAL_ID, ID_DENIED)]
)
async def test_the_coordinator_of_what_one_may_not_describe_is_not_told(
    home: Home, user: User, key_type: int, kind: AclResourceType, error: int
) -> None:
    client, _ = await under(home, (DESCRIBE, kind, "hidden"))
    batched = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["hidden", "shown"])
    hidden, shown = (await client.send(batched, 6)).coordinators
    assert (hidden.error_code, hidden.node_id, hidden.host) == (error, -1, "")
    assert (shown.error_code, shown.node_id) == (0, 1)

    single = await client.send(FindCoordinatorRequest(key_type=key_type, key="hidden"), 3)
    assert (single.error_code, single.node_id) == (error, -1)


async def test_no_topic_of_coordinators_is_created_for_those_who_are_denied_one(
    home: Home, user: User
) -> None:
    client, _ = await under(home, (DESCRIBE, GROUP, "hidden"))
    await client.send(FindCoordinatorRequest(key_type=0, coordinator_keys=["hidden"]), 6)
    assert "__consumer_offsets" not in await user.topics()


async def test_offsets_of_topics_that_one_may_not_read_stay(home: Home, user: User) -> None:
    for topic in ("t", "hidden"):
        await user.create_topic(topic)
        await user.commit("g", topic, 5)
    client, _ = await under(home, (READ, TOPIC, "hidden"))
    partition = forgetting.OffsetDeleteRequestPartition(partition_index=0)
    asked = [
        forgetting.OffsetDeleteRequestTopic(name=name, partitions=[partition]) for name in ("hidden", "t")
    ]
    answer = await client.send(forgetting.OffsetDeleteRequest(group_id="g", topics=asked), 0)

    assert {topic.name: topic.partitions[0].error_code for topic in answer.topics} == {
        "hidden": TOPIC_DENIED,
        "t": 0,
    }
    assert await user.committed("g") == {("hidden", 0): 5}


@pytest.mark.parametrize("version", [9, 10])
async def test_an_offset_of_a_topic_that_one_may_not_read_is_not_committed(
    home: Home, user: User, version: int
) -> None:
    ids = {name: await user.create_topic(name) for name in ("t", "hidden")}
    await coordinated(user)
    client, _ = await under(home, (READ, TOPIC, "hidden"))
    named = ids if version >= 10 else {name: name for name in ids}
    request = committing_of("g", named["hidden"], 5)
    request.topics += committing_of("g", named["t"], 5).topics
    answer = await client.send(request, version)

    errors = [topic.partitions[0].error_code for topic in answer.topics]
    assert errors == [TOPIC_DENIED, 0]
    assert await user.committed("g") == {("t", 0): 5}


@pytest.mark.parametrize("version", [1, 7, 9, 10])
async def test_committed_offsets_of_what_one_may_not_describe_are_not_told(
    home: Home, user: User, version: int
) -> None:
    ids = {name: await user.create_topic(name) for name in ("t", "hidden")}
    named: dict[str, Any] = ids if version >= 10 else {name: name for name in ids}
    for name in ids:
        await user.commit("g", name, 5)

    async def fetched(client: User, *names: str) -> tuple[int, list[tuple[int, int]]]:
        """The error of the group, and the offset and the error of each topic."""
        asked = offsets_of("g", *((named[name], [0]) for name in names))
        if version < 8:
            topics = [OffsetFetchRequestTopic(name=each, partition_indexes=[0]) for each in names]
            asked = OffsetFetchRequest(group_id="g", topics=topics)
        answer = await client.send(asked, version)
        group = answer.groups[0] if version >= 8 else answer
        found = [(p.committed_offset, p.error_code) for topic in group.topics for p in topic.partitions]
        return group.error_code, found

    client, _ = await under(home, (DESCRIBE, TOPIC, "hidden"))
    assert await fetched(client, "hidden", "t") == (0, [(5, 0), (-1, TOPIC_DENIED)])
    if version >= 8:
        everything = offsets_of("g")
        assert len((await client.send(everything, version)).groups[0].topics) == 1

    client, _ = await under(home, (DESCRIBE, GROUP, "g"))
    error, partitions = await fetched(client, "t")
    assert [error, *partitions] == ([GROUP_DENIED] if version > 1 else [0, (-1, GROUP_DENIED)])


# -- topics -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timestamp", [-1, 0])
@pytest.mark.parametrize("topic", ["hidden", "missing"])
async def test_offsets_of_a_topic_that_one_may_not_describe_are_not_told(
    home: Home, user: User, topic: str, timestamp: int
) -> None:
    for name in ("t", "hidden"):
        await user.create_topic(name)
        await user.produce(name, b"v")
    client, _ = await under(home, (DESCRIBE, TOPIC, topic))
    request = offsets_at(topic, timestamp)
    request.topics += offsets_at("t", timestamp).topics
    first, last = (await client.send(request, 10)).topics

    assert (first.name, first.partitions[0].error_code) == ("t", 0)
    [refused] = last.partitions
    assert (last.name, refused.error_code, refused.offset) == (topic, TOPIC_DENIED, -1)


@pytest.mark.parametrize("version", every(metadata))
async def test_metadata_of_a_topic_that_one_may_not_describe_is_that_of_a_missing_one(
    home: Home, user: User, version: int
) -> None:
    for name in ("t", "hidden"):
        await user.create_topic(name)
    client, authorizer = await under(home, (DESCRIBE, TOPIC, "hidden"), (DESCRIBE, TOPIC, "missing"))

    async def told(*names: str) -> list[tuple[str, int, int]]:
        topics = [MetadataRequestTopic(name=name) for name in names]
        answer = await client.send(MetadataRequest(topics=topics), version)
        assert not any(any(topic.topic_id) for topic in answer.topics if topic.error_code)
        return [(topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics]

    denied = [("hidden", TOPIC_DENIED, 0), ("missing", TOPIC_DENIED, 0)]
    assert await told("hidden", "missing", "t") == [("t", 0, 1), *denied]
    assert "missing" not in await user.topics()
    everything = await client.send(MetadataRequest(topics=None if version else []), version)
    assert [topic.name for topic in everything.topics] == ["t"]
    # All topics were asked for, and none of those that are hidden.
    assert len(authorizer.attempts) == 2


async def test_an_id_is_no_secret_but_the_name_of_the_topic_is(home: Home, user: User) -> None:
    topic_id = await user.create_topic("hidden")
    client, _ = await under(home, (DESCRIBE, TOPIC, "hidden"))
    asked = [MetadataRequestTopic(topic_id=topic_id, name=None)]
    [topic] = (await client.send(MetadataRequest(topics=asked), 12)).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (TOPIC_DENIED, None, topic_id)


async def test_those_who_may_not_create_topics_do_not_create_them_by_naming_them(
    home: Home, user: User
) -> None:
    async def told(*denied: Denied) -> list[tuple[str, int]]:
        client, _ = await under(home, *denied)
        asked = [MetadataRequestTopic(name=name) for name in ("new", "other")]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=True)
        return [(topic.name, topic.error_code) for topic in (await client.send(request, 12)).topics]

    on_the_topic, on_the_cluster = (CREATE, TOPIC, "new"), (CREATE, CLUSTER, ON_CLUSTER)
    assert await told(on_the_topic, on_the_cluster) == [("other", 0), ("new", TOPIC_DENIED)]
    assert await told(on_the_topic) == [("new", 0), ("other", 0)]


async def test_pages_of_topics_leave_out_what_one_may_not_describe(home: Home, user: User) -> None:
    for name in ("a", "hidden", "z"):
        await user.create_topic(name)
    client, _ = await under(home, (DESCRIBE, TOPIC, "hidden"), (DESCRIBE, TOPIC, "missing"))

    async def told(limit: int, *names: str) -> tuple[list[tuple[str, int]], str | None]:
        topics = [TopicRequest(name=name) for name in names]
        request = DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit)
        answer = await client.send(request, 0)
        found = [(topic.name, topic.error_code) for topic in answer.topics]
        return found, answer.next_cursor and answer.next_cursor.topic_name

    assert await told(10) == ([("a", 0), ("z", 0)], None)
    assert await told(1) == ([("a", 0)], "z")
    denied = [("hidden", TOPIC_DENIED), ("missing", TOPIC_DENIED)]
    assert await told(10, "a", "hidden", "missing", "z") == ([("a", 0), ("z", 0), *denied], None)


async def test_ends_of_epochs_are_told_to_brokers_and_to_those_who_may_describe_the_topic(
    home: Home, user: User
) -> None:
    await user.create_topic("t")
    partition = epochs.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    topics = [epochs.OffsetForLeaderTopic(topic="t", partitions=[partition])]
    request = epochs.OffsetForLeaderEpochRequest(replica_id=-2, topics=topics)
    hides = (DESCRIBE, TOPIC, "t")

    async def error(*denied: Denied) -> int:
        client, _ = await under(home, *denied)
        return int((await client.send(request, 4)).topics[0].partitions[0].error_code)

    assert await error(hides, (CLUSTER_ACTION, CLUSTER, ON_CLUSTER)) == TOPIC_DENIED
    assert await error(hides) == 0
    assert await error((CLUSTER_ACTION, CLUSTER, ON_CLUSTER)) == 0


@pytest.mark.parametrize("topic", ["kept", "missing"])
async def test_records_that_one_may_not_delete_stay(home: Home, user: User, topic: str) -> None:
    await user.create_topic("kept")
    await user.produce("kept", b"v")
    client, _ = await under(home, (DELETE, TOPIC, topic))
    partition = deleting.DeleteRecordsPartition(partition_index=0, offset=1)
    asked = [deleting.DeleteRecordsTopic(name=topic, partitions=[partition])]
    [refused] = (await client.send(deleting.DeleteRecordsRequest(topics=asked, timeout_ms=100), 2)).topics

    assert (refused.partitions[0].error_code, refused.partitions[0].low_watermark) == (TOPIC_DENIED, -1)
    assert await user.values("kept") == [b"v"]


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        ("hidden", TOPIC_DENIED),
        ("missing", TOPIC_DENIED),
        ("not a name", int(ErrorCode.INVALID_TOPIC_EXCEPTION)),
    ],
)
async def test_producers_of_a_topic_that_one_may_not_read_are_not_told(
    home: Home, user: User, topic: str, error: int
) -> None:
    await user.create_topic("hidden")
    client, _ = await under(home, (READ, TOPIC, topic))
    asked = [producers.TopicRequest(name=topic, partition_indexes=[0])]
    answer = await client.send(producers.DescribeProducersRequest(topics=asked), 0)
    [refused] = answer.topics[0].partitions
    assert (refused.error_code, refused.active_producers) == (error, [])


async def test_a_topic_that_one_may_not_create_is_not_created(home: Home, user: User) -> None:
    on_cluster = (CREATE, CLUSTER, ON_CLUSTER)

    async def told(*denied: Denied) -> list[tuple[str, int, int, int]]:
        client, _ = await under(home, *denied)
        new = [
            creating.CreatableTopic(
                name=name, num_partitions=3, replication_factor=1, assignments=[], configs=[]
            )
            for name in ("denied", "new")
        ]
        answer = await client.send(creating.CreateTopicsRequest(topics=new, validate_only=True), 7)
        return [
            (topic.name, topic.error_code, topic.topic_config_error_code, topic.num_partitions)
            for topic in answer.topics
        ]

    shown = [("denied", 0, 0, 3), ("new", 0, 0, 3)]
    assert await told((CREATE, TOPIC, "denied")) == shown
    denied = ("denied", TOPIC_DENIED, 0, -1)
    assert await told((CREATE, TOPIC, "denied"), on_cluster) == [("new", 0, 0, 3), denied]
    # Who may not describe the configs of a topic may create it all the same.
    assert await told((DESCRIBE_CONFIGS, TOPIC, "new")) == [shown[0], ("new", 0, TOPIC_DENIED, -1)]


@pytest.mark.parametrize("version", [12, 13])
async def test_records_that_one_may_not_write_are_not_written(home: Home, user: User, version: int) -> None:
    ids = {name: await user.create_topic(name) for name in ("t", "hidden")}
    named: dict[str, Any] = ids if version >= 13 else {name: name for name in ids}
    client, _ = await under(home, (WRITE, TOPIC, "hidden"), (WRITE, TOPIC, "missing"))
    request = producing_to(named["hidden"], batch(b"v"))
    request.topic_data += producing_to(named["t"], batch(b"v")).topic_data
    answer = await client.send(request, version)

    assert [partition.error_code for partition in partitions_of(answer)] == [TOPIC_DENIED, 0]
    assert (await user.values("t"), await user.values("hidden")) == ([b"v"], [])
    if version < 13:
        [refused] = partitions_of(await client.send(producing_to("missing", batch(b"v")), version))
        assert refused.error_code == TOPIC_DENIED


async def test_a_transaction_does_not_write_where_one_may_not(home: Home, user: User) -> None:
    for name in ("t", "hidden"):
        await user.create_topic(name)
    await Producer.of(user)
    client, _ = await under(home, (WRITE, TOPIC, "hidden"))
    producer = await Producer.of(client)
    with pytest.raises(AssertionError):
        await producer.write("hidden", b"v")
    await producer.write("t", b"v")
    assert [topic.topic for topic in (await described(user)).topics] == ["t"]


@pytest.mark.parametrize("version", [4, 6, 12, 17])
async def test_who_is_no_broker_cannot_fetch_as_one(home: Home, user: User, version: int) -> None:
    topic_id = await user.create_topic("t")
    await user.produce("t", b"v")
    client, authorizer = await under(home, (CLUSTER_ACTION, CLUSTER, ON_CLUSTER))
    request = fetching_of(wanting("t" if version < 13 else topic_id, 0))
    if version < 15:
        request.replica_id = 1
    else:
        request.replica_state = ReplicaState(replica_id=1)
    [refused] = partitions_of(await client.send(request, version))

    assert (refused.error_code, refused.high_watermark) == (TOPIC_DENIED, -1)
    assert bytes(refused.records or b"") == b""
    assert authorizer.attempts == [(CLUSTER_ACTION, CLUSTER, ON_CLUSTER)]


@pytest.mark.parametrize("topic", ["hidden", "missing"])
async def test_records_that_one_may_not_read_are_not_read(home: Home, user: User, topic: str) -> None:
    ids = {name: await user.create_topic(name) for name in ("t", "hidden")}
    for name in ids:
        await user.produce(name, b"v")
    client, authorizer = await under(home, (READ, TOPIC, topic))
    if topic == "missing":
        answer = await client.send(fetching_of(wanting("missing", 0), wanting("t", 0)), 12)
    else:
        answer = await client.send(fetching_of(wanting(ids["hidden"], 0), wanting(ids["t"], 0)), 17)
    shown, refused = partitions_of(answer)

    assert shown.error_code == 0
    assert bytes(shown.records or b"")
    assert (refused.error_code, bytes(refused.records or b"")) == (TOPIC_DENIED, b"")
    assert authorizer.attempts == [(READ, TOPIC, topic)]


async def test_a_topic_that_one_may_not_delete_stays(home: Home, user: User) -> None:
    ids = {name: await user.create_topic(name) for name in ("hidden", "kept")}
    missing = ((DELETE, TOPIC, "missing"), (DESCRIBE, TOPIC, "missing"))
    on_kept, on_hidden = (DELETE, TOPIC, "kept"), (DESCRIBE, TOPIC, "hidden")
    client, _ = await under(home, on_kept, on_hidden, *missing, (DELETE, CLUSTER, ON_CLUSTER))

    async def told(*topics: removing.DeleteTopicState) -> set[tuple[str | None, bytes, int]]:
        request = removing.DeleteTopicsRequest(topics=list(topics), topic_names=[], timeout_ms=1000)
        answer = await client.send(request, 6)
        return {(each.name, each.topic_id, each.error_code) for each in answer.responses}

    by_id = [removing.DeleteTopicState(name=None, topic_id=topic_id) for topic_id in ids.values()]
    denied = {(None, ids["hidden"], TOPIC_DENIED), ("kept", ids["kept"], TOPIC_DENIED)}
    assert await told(*by_id) == denied
    names = ("hidden", "kept", "missing")
    by_name = [removing.DeleteTopicState(name=name, topic_id=bytes(16)) for name in names]
    assert await told(*by_name) == {(name, bytes(16), TOPIC_DENIED) for name in names}
    assert {"hidden", "kept"} <= (await user.topics()).keys()

    client, _ = await under(home, on_kept, on_hidden)
    assert {error for _, _, error in await told(*by_name[:2])} == {0}


@pytest.mark.parametrize("topic", ["kept", "missing"])
async def test_a_topic_that_one_may_not_alter_does_not_grow(home: Home, user: User, topic: str) -> None:
    for name in ("kept", "t"):
        await user.create_topic(name)
    client, _ = await under(home, (ALTER, TOPIC, topic))
    asked = [growing.CreatePartitionsTopic(name=name, count=2, assignments=None) for name in (topic, "t")]
    request = growing.CreatePartitionsRequest(topics=asked, timeout_ms=1000, validate_only=False)
    results = (await client.send(request, 3)).results

    assert {each.name: each.error_code for each in results} == {topic: TOPIC_DENIED, "t": 0}
    described = (await user.metadata("kept")).topics[0]
    assert len(described.partitions) == 1


@pytest.mark.parametrize(
    ("kind", "name", "on", "error"),
    [
        (ResourceType.TOPIC, "t", (TOPIC, "t"), TOPIC_DENIED),
        (ResourceType.TOPIC, "missing", (TOPIC, "missing"), TOPIC_DENIED),
        (ResourceType.GROUP, "g", (GROUP, "g"), GROUP_DENIED),
        (ResourceType.BROKER, "1", (CLUSTER, ON_CLUSTER), CLUSTER_DENIED),
        (ResourceType.BROKER_LOGGER, "1", (CLUSTER, ON_CLUSTER), CLUSTER_DENIED),
        (ResourceType.CLIENT_METRICS, "m", (CLUSTER, ON_CLUSTER), CLUSTER_DENIED),
    ],
)
async def test_configs_that_one_may_not_describe_are_not_told(
    home: Home, user: User, kind: ResourceType, name: str, on: tuple[AclResourceType, str], error: int
) -> None:
    for topic in ("t", "other"):
        await user.create_topic(topic)
    client, _ = await under(home, (DESCRIBE_CONFIGS, *on))
    asked = [
        DescribeConfigsResource(resource_type=int(each), resource_name=named, configuration_keys=None)
        for each, named in ((kind, name), (ResourceType.TOPIC, "other"))
    ]
    first, last = (await client.send(DescribeConfigsRequest(resources=asked), 4)).results

    assert (first.resource_name, first.error_code) == ("other", 0)
    assert (last.resource_name, last.error_code, last.configs) == (name, error, [])


CONFIGS_OF = [
    (ResourceType.TOPIC, "t", "retention.ms", "1000", (TOPIC, "t"), TOPIC_DENIED),
    (ResourceType.TOPIC, "missing", "retention.ms", "1000", (TOPIC, "missing"), TOPIC_DENIED),
    (ResourceType.GROUP, "g", "consumer.session.timeout.ms", "50000", (GROUP, "g"), GROUP_DENIED),
    (ResourceType.BROKER, "1", "log.retention.ms", "1000", (CLUSTER, ON_CLUSTER), CLUSTER_DENIED),
    (ResourceType.CLIENT_METRICS, "m", "interval.ms", "5000", (CLUSTER, ON_CLUSTER), CLUSTER_DENIED),
]


@pytest.mark.parametrize("listener", ["brokers", "controllers"])
@pytest.mark.parametrize(("kind", "name", "key", "value", "on", "error"), CONFIGS_OF)
async def test_configs_that_one_may_not_alter_stay(
    combined: Home,
    kind: ResourceType,
    name: str,
    key: str,
    value: str,
    on: tuple[AclResourceType, str],
    error: int,
    listener: str,
) -> None:
    async with combined.running() as user:
        for topic in ("t", "other"):
            await user.create_topic(topic)
        client = await at(listener, combined, (ALTER_CONFIGS, *on))
        wanted = ((kind, name, key, value), (ResourceType.TOPIC, "other", "retention.ms", "5000"))
        replacing = AlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=int(each),
                    resource_name=named,
                    configs=[AlterableConfig(name=one, value=to)],
                )
                for each, named, one, to in wanted
            ],
            validate_only=False,
        )
        changing = incremental.IncrementalAlterConfigsRequest(
            resources=[
                incremental.AlterConfigsResource(
                    resource_type=int(each),
                    resource_name=named,
                    configs=[incremental.AlterableConfig(name=one, config_operation=0, value=to)],
                )
                for each, named, one, to in wanted
            ],
            validate_only=False,
        )
        for request, version in ((replacing, 2), (changing, 1)):
            answer = await client.send(request, version)
            errors = {each.resource_name: each.error_code for each in answer.responses}
            assert errors == {name: error, "other": 0}
        assert await user.config(int(ResourceType.TOPIC), "other", "retention.ms") == "5000"
        if name != "missing":
            assert await user.config(int(kind), name, key) != value


async def test_loggers_that_one_may_not_alter_stay(home: Home, user: User) -> None:
    client, _ = await under(home, (ALTER_CONFIGS, CLUSTER, ON_CLUSTER))
    config = incremental.AlterableConfig(name="kafka", config_operation=0, value="DEBUG")
    resource = incremental.AlterConfigsResource(
        resource_type=int(ResourceType.BROKER_LOGGER), resource_name="1", configs=[config]
    )
    request = incremental.IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
    [refused] = (await client.send(request, 1)).responses
    assert (refused.error_code, refused.error_message) == (CLUSTER_DENIED, None)


async def test_a_broker_refuses_what_is_malformed_or_not_about_it_before_the_controller_asks_about_acls(
    home: Home, user: User
) -> None:
    """Only about loggers does a broker ask itself. The results are in the order of the request."""
    client, _ = await under(home, (ALTER_CONFIGS, CLUSTER, ON_CLUSTER))
    brokers = {
        "2": (int(ErrorCode.INVALID_REQUEST), "Unexpected broker id, expected 1, but received 2"),
        "1": (CLUSTER_DENIED, "Cluster authorization failed."),
        "one": (int(ErrorCode.INVALID_REQUEST), "Node id must be an integer, but it is: one"),
    }
    replacing = AlterConfigsRequest(
        resources=[
            AlterConfigsResource(resource_type=int(ResourceType.BROKER), resource_name=name, configs=[])
            for name in brokers
        ],
        validate_only=True,
    )
    changing = incremental.IncrementalAlterConfigsRequest(
        resources=[
            incremental.AlterConfigsResource(
                resource_type=int(ResourceType.BROKER), resource_name=name, configs=[]
            )
            for name in brokers
        ],
        validate_only=True,
    )
    for request, version in ((replacing, 2), (changing, 1)):
        answer = await client.send(request, version)
        told = [(each.resource_name, (each.error_code, each.error_message)) for each in answer.responses]
        assert told == list(brokers.items())


# -- transactions -------------------------------------------------------------------------------------------


async def test_a_transaction_is_described_without_topics_that_one_may_not_describe(
    home: Home, user: User
) -> None:
    producer = await Producer.of(user)
    for topic in ("t", "hidden"):
        await user.create_topic(topic)
        await producer.write(topic, b"v")

    client, _ = await under(home, (DESCRIBE, TOPIC, "hidden"))
    assert [topic.topic for topic in (await described(client)).topics] == ["t"]


async def test_a_transaction_that_one_may_not_describe_looks_like_one_that_is_missing(
    home: Home, user: User
) -> None:
    await Producer.of(user)

    async def error(client: User, name: str) -> tuple[int, str]:
        answer = await client.send(DescribeTransactionsRequest(transactional_ids=[name]), 0)
        [state] = answer.transaction_states
        return state.error_code, state.transaction_state

    client, _ = await under(home, *((DESCRIBE, TRANSACTIONAL_ID, name) for name in (ID, "missing")))
    assert await error(client, ID) == await error(client, "missing") == (ID_DENIED, "")
    listed: Any = await client.send(ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 2)
    assert listed.transaction_states == []


async def test_a_topic_that_one_may_not_write_to_keeps_all_others_out_of_the_transaction(
    home: Home, user: User
) -> None:
    producer = await Producer.of(user, old=True)
    for topic in ("t", "hidden"):
        await user.create_topic(topic)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=ID,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in ("t", "hidden")],
    )

    async def errors(*denied: Denied) -> list[int]:
        client, _ = await under(home, *denied)
        answer = await client.send(request, 3)
        results = answer.results_by_topic_v3_and_below
        return [result.results_by_partition[0].partition_error_code for result in results]

    not_attempted = int(ErrorCode.OPERATION_NOT_ATTEMPTED)
    assert await errors((WRITE, TOPIC, "hidden")) == [not_attempted, TOPIC_DENIED]
    assert await errors((WRITE, TRANSACTIONAL_ID, ID)) == [ID_DENIED, ID_DENIED]
    assert (await described(user)).transaction_state == "Empty"
    assert await errors() == [0, 0]


async def test_offsets_of_a_topic_that_one_may_not_read_do_not_go_with_a_transaction(
    home: Home, user: User
) -> None:
    for topic in ("t", "hidden"):
        await user.create_topic(topic)
    await coordinated(user)
    producer = await Producer.of(user)
    client, _ = await under(home, (READ, TOPIC, "hidden"))
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    request = TxnOffsetCommitRequest(
        transactional_id=ID,
        group_id="g",
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        topics=[TxnOffsetCommitRequestTopic(name=name, partitions=[partition]) for name in ("hidden", "t")],
    )
    answer = await client.send(request, 5)

    errors = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert errors == {"hidden": TOPIC_DENIED, "t": 0}


# -- the cluster --------------------------------------------------------------------------------------------


async def test_what_one_may_do_to_a_cluster_that_one_may_not_describe_is_nothing(
    home: Home, user: User
) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    client, _ = await under(home, (DESCRIBE, CLUSTER, ON_CLUSTER))
    answer = await client.send(request, 2)
    assert (answer.error_code, answer.cluster_authorized_operations) == (0, 0)
    assert len(answer.brokers) == 1
