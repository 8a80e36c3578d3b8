"""A broker with ACLs in force: what its users may do is what the ACLs say, from one request to the next."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pykafka_broker.apis.ports.authorizer import CLUSTER_NAME
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from pykafka_broker.protocol.acls import AclOperation, AclResourceType, PatternType
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.protocol.messages import (
    alter_replica_log_dirs,
    describe_log_dirs,
    heartbeat,
    join_group,
    leave_group,
    list_config_resources,
    offset_commit,
    offset_delete,
    sync_group,
)
from pykafka_broker.protocol.messages import delete_share_group_state as deleting
from pykafka_broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pykafka_broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.acls import created, creation, removing
from tests.apis.asking import coordinated
from tests.support.controllers import combined_home, controller_address
from tests.support.sasl import ALICE, PLAIN_LISTENER, authenticate

#: Clients of the listener INSIDE, and the node itself, are not asked who they are.
ACLS = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
TOPIC, GROUP = AclResourceType.TOPIC, AclResourceType.GROUP
READ, WRITE = AclOperation.READ, AclOperation.WRITE
GROUP_DENIED = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
CLUSTER_DENIED = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


@pytest.fixture
def home() -> Home:
    return Home(PLAIN_LISTENER | ACLS, listen=None)


@pytest.fixture
async def root(home: Home) -> AsyncIterator[User]:
    """A super user of the running broker."""
    async with home.new_broker() as broker, await User.connect(inside(home)) as root:
        assert broker.bootstrap_servers != inside(home)
        yield root


def inside(home: Home) -> str:
    endpoint = home.broker.node._shared.served_listeners.registered()["INSIDE"]
    return f"{endpoint.host}:{endpoint.port}"


async def alice_at(home: Home) -> User:
    user = await User.connect(home.broker.bootstrap_servers)
    assert (await authenticate(user, ALICE)).error_code == 0
    return user


async def allow(root: User, operation: AclOperation, name: str, **changes: object) -> None:
    wanted = creation(operation=operation, resource_name=name, **changes)
    assert await created(root, wanted) == [(0, None)]


async def test_what_is_allowed_and_taken_back_counts_for_the_next_request(home: Home, root: User) -> None:
    await root.create_topic("orders")
    async with await alice_at(home) as alice:
        assert (await alice.try_to_produce("orders", b"x")).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        await allow(root, WRITE, "ord", resource_pattern_type=PatternType.PREFIXED)
        assert (await alice.try_to_produce("orders", b"x")).error_code == 0
        assert (await alice.fetch("orders")).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        await allow(root, READ, "orders")
        assert await alice.values("orders") == [b"x"]
        answer = await root.send(removing({"resource_name_filter": "ord", **_ANY}), 3)
        assert len(answer.filter_results[0].matching_acls) == 1
        assert (await alice.try_to_produce("orders", b"x")).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


_ANY = {
    "resource_type_filter": 1,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


async def test_acls_are_in_force_after_a_restart(home: Home) -> None:
    async with home.new_broker(), await User.connect(inside(home)) as root:
        await root.create_topic("orders")
        await allow(root, WRITE, "orders")
    async with home.new_broker(), await alice_at(home) as alice:
        assert (await alice.try_to_produce("orders", b"x")).error_code == 0
        assert (await alice.fetch("orders")).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_a_producer_that_may_write_somewhere_gets_an_id(home: Home, root: User) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    async with await alice_at(home) as alice:
        refused = await alice.send(request, 4)
        assert (refused.error_code, refused.producer_id) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, -1)
        await allow(root, WRITE, "a-topic-that-does-not-exist")
        assert (await alice.send(request, 4)).error_code == 0


async def test_only_brokers_may_ask_for_share_coordinators_and_their_state(home: Home, root: User) -> None:
    finding = FindCoordinatorRequest(key_type=2, coordinator_keys=[f"g:{'A' * 22}:0", "what?"])
    topic = deleting.DeleteStateData(topic_id=bytes(16), partitions=[deleting.PartitionData(partition=3)])
    request = deleting.DeleteShareGroupStateRequest(group_id="g", topics=[topic])
    async with await alice_at(home) as alice:
        found = (await alice.send(finding, 6)).coordinators
        assert [each.error_code for each in found] == [CLUSTER_DENIED, CLUSTER_DENIED]
        [answer] = (await alice.send(request, 0)).results
        assert [(each.partition, each.error_code) for each in answer.partitions] == [(3, CLUSTER_DENIED)]
        # Before version 6 there are no share partitions to look for, whoever asks.
        before = (await alice.send(finding, 5)).coordinators
        assert {each.error_code for each in before} == {ErrorCode.INVALID_REQUEST}

        await allow(root, AclOperation.CLUSTER_ACTION, "kafka-cluster", resource_type=AclResourceType.CLUSTER)
        found = (await alice.send(finding, 6)).coordinators
        assert [each.error_code for each in found] == [0, ErrorCode.INVALID_REQUEST]
        [answer] = (await alice.send(request, 0)).results
        assert answer.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


#: Requests that are refused as a whole, each with the answer.
REFUSED: list[tuple[Any, int, Any]] = [
    (
        heartbeat.HeartbeatRequest(group_id="g", generation_id=1, member_id="m"),
        4,
        heartbeat.HeartbeatResponse(error_code=GROUP_DENIED),
    ),
    (
        leave_group.LeaveGroupRequest(group_id="g"),
        5,
        leave_group.LeaveGroupResponse(error_code=GROUP_DENIED, members=[]),
    ),
    (
        offset_delete.OffsetDeleteRequest(group_id="g", topics=[]),
        0,
        offset_delete.OffsetDeleteResponse(error_code=GROUP_DENIED, topics=[]),
    ),
    (
        describe_log_dirs.DescribeLogDirsRequest(topics=None),
        4,
        describe_log_dirs.DescribeLogDirsResponse(error_code=CLUSTER_DENIED, results=[]),
    ),
    (
        list_config_resources.ListConfigResourcesRequest(resource_types=[]),
        1,
        list_config_resources.ListConfigResourcesResponse(error_code=CLUSTER_DENIED, config_resources=[]),
    ),
    (
        sync_group.SyncGroupRequest(
            group_id="g", generation_id=1, member_id="m", protocol_type="t", protocol_name="n", assignments=[]
        ),
        5,
        sync_group.SyncGroupResponse(error_code=GROUP_DENIED, assignment=b""),
    ),
    (
        # A request that is no use to anybody is told so first.
        sync_group.SyncGroupRequest(group_id="g", generation_id=1, member_id="m", assignments=[]),
        5,
        sync_group.SyncGroupResponse(error_code=int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL), assignment=b""),
    ),
    (
        offset_commit.OffsetCommitRequest(
            group_id="g",
            member_id="",
            topics=[
                offset_commit.OffsetCommitRequestTopic(
                    name="t",
                    partitions=[
                        offset_commit.OffsetCommitRequestPartition(
                            partition_index=3, committed_offset=1, committed_metadata=None
                        )
                    ],
                )
            ],
        ),
        9,
        offset_commit.OffsetCommitResponse(
            topics=[
                offset_commit.OffsetCommitResponseTopic(
                    name="t",
                    partitions=[
                        offset_commit.OffsetCommitResponsePartition(
                            partition_index=3, error_code=GROUP_DENIED
                        )
                    ],
                )
            ]
        ),
    ),
    (
        alter_replica_log_dirs.AlterReplicaLogDirsRequest(
            dirs=[
                alter_replica_log_dirs.AlterReplicaLogDir(
                    path="/x",
                    topics=[alter_replica_log_dirs.AlterReplicaLogDirTopic(name="t", partitions=[5])],
                )
            ]
        ),
        2,
        alter_replica_log_dirs.AlterReplicaLogDirsResponse(
            results=[
                alter_replica_log_dirs.AlterReplicaLogDirTopicResult(
                    topic_name="t",
                    partitions=[
                        alter_replica_log_dirs.AlterReplicaLogDirPartitionResult(
                            partition_index=5, error_code=CLUSTER_DENIED
                        )
                    ],
                )
            ]
        ),
    ),
]


@pytest.mark.parametrize(("request_", "version", "answer"), REFUSED, ids=lambda each: type(each).__name__)
@pytest.mark.usefixtures("root")
async def test_a_request_that_is_denied_as_a_whole_is_answered_in_the_words_of_its_api(
    home: Home, request_: Any, version: int, answer: Any
) -> None:
    async with await alice_at(home) as alice:
        assert await alice.send(request_, version) == answer


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("version", [6, 7])
async def test_a_member_that_may_not_join_is_told_so(home: Home, version: int) -> None:
    request = join_group.JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, member_id="", protocol_type="consumer", protocols=[]
    )
    async with await alice_at(home) as alice:
        answer = await alice.send(request, version)
    assert (answer.error_code, answer.member_id, answer.members) == (GROUP_DENIED, "", [])


async def test_a_topic_that_is_missing_is_told_to_those_who_may_describe_it(home: Home, root: User) -> None:
    await root.create_topic("kept")
    await allow(root, READ, "*")
    request = DeleteTopicsRequest(topics=[], topic_names=["kept", "missing"], timeout_ms=1_000)
    async with await alice_at(home) as alice:
        answer = await alice.send(request, 5)
    assert {each.name: each.error_code for each in answer.responses} == {
        "kept": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


@pytest.mark.usefixtures("root")
async def test_partitions_that_are_denied_come_in_the_order_of_a_hash_set_of_names(home: Home) -> None:
    names = ["apple", "cherry", "fig", "kiwi", "plum"]
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=2, assignments=None) for name in names],
        timeout_ms=1_000,
        validate_only=True,
    )
    async with await alice_at(home) as alice:
        answer = await alice.send(request, 3)
    assert [each.name for each in answer.results] == walked(names, string_hash) != names
    assert {each.error_code for each in answer.results} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (AclOperation.ALTER_CONFIGS, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (AclOperation.CLUSTER_ACTION, ErrorCode.NONE),
    ],
)
async def test_loggers_are_altered_over_a_listener_of_controllers_by_who_may_act_for_the_cluster(
    operation: AclOperation, error: ErrorCode
) -> None:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    home = combined_home(
        {
            **ACLS,
            "super.users": "User:ANONYMOUS;User:bob",
            "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": (
                f'{login} username="bob" password="b" user_bob="b" user_alice="alice-secret";'
            ),
        }
    )
    resource = AlterConfigsResource(
        resource_type=ResourceType.BROKER_LOGGER,
        resource_name="1",
        configs=[AlterableConfig(name="root", config_operation=0, value="INFO")],
    )
    async with (
        home.running() as root,
        await User.connect(controller_address(home.broker)) as alice,
    ):
        await allow(root, operation, CLUSTER_NAME, resource_type=AclResourceType.CLUSTER)
        await authenticate(alice, ALICE)
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
        [answer] = (await alice.send(request, 1)).responses
    assert (answer.error_code, answer.error_message) == (error, error.message if error else None)


async def test_an_expression_finds_the_topics_that_its_member_may_describe(home: Home, root: User) -> None:
    for name in ("orders", "other"):
        await root.create_topic(name)
    await coordinated(root)
    await allow(root, READ, "g", resource_type=GROUP)
    await allow(root, READ, "orders")
    topics = {topic.topic_id: name for name, topic in home.broker.node.image.topics.items()}

    async with await alice_at(home) as alice:

        async def beat(epoch: int, **said: Any) -> tuple[int, int, list[str]]:
            request = ConsumerGroupHeartbeatRequest(
                group_id="g", member_id="m", member_epoch=epoch, rebalance_timeout_ms=60_000, **said
            )
            answer = await alice.send(request, 1)
            assigned = answer.assignment.topic_partitions if answer.assignment else []
            return answer.error_code, answer.member_epoch, [topics[each.topic_id] for each in assigned]

        named = {"subscribed_topic_names": ["orders", "other"], "topic_partitions": []}
        assert await beat(0, **named) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0, [])
        error, epoch, assigned = await beat(0, subscribed_topic_regex="o.*", topic_partitions=[])
        assert error == 0
        for _ in range(1_000):  # until a thread has matched the topics
            if not assigned:
                _, epoch, assigned = await beat(epoch)
        assert assigned == ["orders"]
