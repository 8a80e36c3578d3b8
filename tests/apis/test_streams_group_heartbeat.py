"""StreamsGroupHeartbeat (88): join, stay in and leave groups of Kafka Streams applications."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.broker.node_ports import TopicsOnDemand
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.coordinator.topic_creation import TopicCreation
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import streams_group_heartbeat as m
from pykafka_broker.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from pykafka_broker.testing.home import Home, until
from pykafka_broker.testing.user import TOPIC_RESOURCE, User
from tests.apis.asking import committing_of, coordinated
from tests.apis.conftest import OVERRIDES
from tests.apis.streaming import (
    AT_ONCE,
    DELAYED,
    answered,
    beat,
    internal,
    owning,
    reading,
    refused,
    tasks,
)
from tests.apis.test_denials import CLUSTER, CREATE, DESCRIBE, GROUP, ON_CLUSTER, READ, TOPIC, under
from tests.support.members import Member

MISSING_SOURCE, WRONG_SIZE, MISSING_INTERNAL, SHUTDOWN = 1, 2, 3, 4


@pytest.fixture
def home() -> Home:
    return Home({**OVERRIDES, **AT_ONCE})


def creation_of(home: Home) -> TopicCreation:
    ports = home.broker.node.broker.ports
    assert isinstance(ports.topic_creation, TopicsOnDemand)
    return ports.topic_creation.creation


def statuses(answer: Any) -> list[tuple[int, str]]:
    return [(status.status_code, status.status_detail) for status in answer.status]


# ---- members ----


async def test_a_member_gets_all_tasks_with_the_answer_to_its_first_heartbeat(user: User) -> None:
    await user.create_topic("t", partitions=3)
    await coordinated(user)

    assert await beat(user) == answered(2, **owning(0, 1, 2))
    assert await beat(user, "m", 2) == answered(2)
    assert await beat(user, "m", -1) == answered(-1, heartbeat_interval_ms=0)
    unknown = refused(ErrorCode.UNKNOWN_MEMBER_ID, "Member m is not a member of group g.")
    assert await beat(user, "m", 2) == unknown


async def test_the_first_assignment_waits_for_more_members(home: Home) -> None:
    home.overrides["group.streams.initial.rebalance.delay.ms"] = "3000"
    async with home.running() as user:
        await user.create_topic("t", partitions=2)
        await coordinated(user)

        assert await beat(user) == answered(1, status=[DELAYED], **owning())
        assert await beat(user, "n") == answered(1, "n", status=[DELAYED], **owning())
        await home.pass_time(3_000)
        assert await beat(user, "m", 1) == answered(3, **owning(1))
        assert await beat(user, "n", 1) == answered(3, "n", **owning(0))


async def test_a_task_moves_when_it_is_given_up(user: User) -> None:
    await user.create_topic("t", partitions=2)
    await coordinated(user)
    await beat(user)

    assert await beat(user, "n") == answered(3, "n", **owning())
    assert await beat(user, "m", 2, **owning(0, 1)) == answered(2, **owning(0))
    assert await beat(user, "n", 3) == answered(3, "n")
    assert await beat(user, "m", 2, **owning(0)) == answered(3)
    assert await beat(user, "n", 3) == answered(3, "n", **owning(1))


async def test_members_learn_where_the_others_can_be_asked(user: User) -> None:
    await user.create_topic("t", partitions=2)
    await coordinated(user)
    here = m.Endpoint(host="here", port=65_535)
    told = m.EndpointToPartitions(
        user_endpoint=here,
        active_partitions=[m.TopicPartition(topic="t", partitions=[0, 1])],
        standby_partitions=[],
    )

    # Apache Kafka 4.3 says that nothing has changed yet when the group is new.
    joined = answered(2, endpoint_information_epoch=0, partitions_by_user_endpoint=[told], **owning(0, 1))
    assert await beat(user, user_endpoint=here) == joined
    other = await beat(user, "n")
    assert (other.endpoint_information_epoch, other.partitions_by_user_endpoint) == (0, None)


async def test_one_member_can_stop_all_of_them(user: User) -> None:
    await user.create_topic("t")
    await coordinated(user)
    await beat(user)
    await beat(user, "n")

    await beat(user, "n", -1, shutdown_application=True)

    assert statuses(await beat(user, "m", 2)) == [
        (
            SHUTDOWN,
            "Streams group member n encountered a fatal error and requested a shutdown for the entire "
            "application.",
        )
    ]


async def test_a_group_may_have_settings_of_its_own(user: User) -> None:
    await user.create_topic("t")
    await coordinated(user)
    assert await user.try_to_alter(
        ResourceType.GROUP, "g", **{"streams.heartbeat.interval.ms": "7000"}
    ) is ErrorCode(0)

    assert (await beat(user)).heartbeat_interval_ms == 7_000


async def test_standby_tasks_are_told_apart(home: Home) -> None:
    home.overrides["group.streams.num.standby.replicas"] = "1"
    async with home.running() as user:
        await user.create_topic("t")
        await user.create_topic("store")
        await coordinated(user)
        stateful = reading("t", state_changelog_topics=[internal("store")])
        await beat(user, topology=stateful)

        second = await beat(user, "n", topology=stateful)

        assert (second.active_tasks, second.standby_tasks, second.warmup_tasks) == ([], tasks(0), [])


async def test_a_member_commits_in_its_epoch(user: User) -> None:
    topic_id = await user.create_topic("t")
    await coordinated(user)
    await beat(user)

    async def commit(member_epoch: int, version: int = 9) -> int:
        topic = "t" if version < 10 else topic_id
        answer = await user.send(committing_of("g", topic, 5, member=Member("m", member_epoch)), version)
        return int(answer.topics[0].partitions[0].error_code)

    assert await commit(2) == 0
    assert await commit(2, version=10) == 0
    assert await commit(3) == ErrorCode.STALE_MEMBER_EPOCH
    assert await commit(1) == ErrorCode.STALE_MEMBER_EPOCH
    assert await commit(2, version=8) == ErrorCode.UNSUPPORTED_VERSION


async def test_a_group_goes_on_after_a_restart(home: Home) -> None:
    async with home.running() as user:
        await user.create_topic("t", partitions=2)
        await coordinated(user)
        await beat(user)
    async with home.running() as user:
        assert await beat(user, "m", 2, **owning(0, 1)) == answered(2)
        assert (await beat(user, "n")).member_epoch == 3


# ---- topics ----


async def test_a_missing_source_topic_is_named_until_it_is_there(user: User) -> None:
    await coordinated(user)

    joined = await beat(user)
    assert statuses(joined) == [(MISSING_SOURCE, "Source topics t are missing.")]
    assert (joined.active_tasks, "t" in await user.topics()) == ([], False)
    await user.create_topic("t")
    assert (await beat(user, "m", 2)).active_tasks == tasks(0)


async def test_internal_topics_are_created_as_the_topology_says(user: User) -> None:
    await user.create_topic("t", partitions=3)
    await coordinated(user)
    topology = reading(
        "t",
        state_changelog_topics=[
            internal("g-store-changelog", cleanup_policy="compact", segment_bytes="1048576")
        ],
        repartition_source_topics=[internal("g-key-repartition", 2, 1, retention_ms="-1")],
        repartition_sink_topics=["g-key-repartition"],
    )

    joined = await beat(user, topology=topology)
    missing = "Internal topics are missing: g-key-repartition, g-store-changelog"
    assert statuses(joined) == [(MISSING_INTERNAL, missing)]
    assert joined.active_tasks == []
    while "g-store-changelog" not in await user.topics():
        pass
    assert (await beat(user, "m", 2)).active_tasks == tasks(0, 1, 2)

    [changelog] = (await user.metadata("g-store-changelog")).topics
    [repartition] = (await user.metadata("g-key-repartition")).topics
    assert (len(changelog.partitions), len(repartition.partitions)) == (3, 2)
    for name, key, value in (
        ("g-store-changelog", "cleanup.policy", "compact"),
        ("g-store-changelog", "segment.bytes", "1048576"),
        ("g-key-repartition", "retention.ms", "-1"),
    ):
        assert await user.config(TOPIC_RESOURCE, name, key) == value


async def test_why_topics_cannot_be_created_is_told_for_two_heartbeats(home: Home, user: User) -> None:
    await user.create_topic("t")
    await coordinated(user)
    names = ["a", "b", "c", "d"]
    flawed = [internal(name, 0, 2) for name in names]
    await beat(user, topology=reading("t", state_changelog_topics=flawed))

    async def detail() -> str:
        [(code, text)] = statuses(await beat(user, "m", 2))
        assert code == MISSING_INTERNAL
        return text

    missing = "Internal topics are missing: a, b, c and 1 additional topics"
    why = (
        "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached "
        "because only 1 broker(s) are registered or some brokers have all their log directories cordoned."
    )
    creation = creation_of(home)
    await until(lambda: not creation._under_way)
    told = f"{missing}; Creation failed: a ({why}), b ({why}), c ({why}) and 1 more."
    assert await detail() == told
    await home.pass_time(9_999)
    assert await detail() == told
    assert not creation._under_way
    await home.pass_time(1)
    assert await detail() == missing, "it is tried again"


async def test_an_internal_topic_of_another_size_is_not_touched(user: User) -> None:
    await user.create_topic("t", partitions=3)
    await user.create_topic("store", partitions=2)
    await coordinated(user)

    joined = await beat(user, topology=reading("t", state_changelog_topics=[internal("store")]))

    text = "Existing topic store has different number of partitions: expected 3, found 2"
    assert statuses(joined) == [(WRONG_SIZE, text)]


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (
            reading("__consumer_offsets", "t", repartition_sink_topics=["__transaction_state"]),
            "Use of Kafka internal topics __consumer_offsets,__transaction_state in a Kafka Streams topology "
            "is prohibited.",
        ),
        (
            reading("a b", repartition_source_topics=[internal("..")], state_changelog_topics=[internal("")]),
            "Topic names a b,.., are not valid topic names.",
        ),
        (
            reading("t", state_changelog_topics=[internal("x", 3)]),
            "Changelog topic x must have an undefined partition count, but it is set to 3.",
        ),
    ],
)
async def test_topics_that_may_not_be_are_refused(user: User, topology: Any, message: str) -> None:
    await coordinated(user)

    assert await beat(user, topology=topology) == refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


# ---- where it is served ----


async def test_it_is_not_served_where_its_protocol_is_switched_off(home: Home) -> None:
    home.overrides["group.coordinator.rebalance.protocols"] = "classic,consumer"
    async with home.running() as user:
        await coordinated(user)

        assert await beat(user) == refused(ErrorCode.UNSUPPORTED_VERSION)


async def test_it_is_not_served_where_its_feature_is_not_finalized(user: User) -> None:
    await coordinated(user)
    lowering = FeatureUpdateKey(feature="streams.version", max_version_level=0, upgrade_type=2)
    request = UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[lowering], validate_only=False)
    assert (await user.send(request, 1)).error_code == 0

    assert await beat(user) == refused(ErrorCode.UNSUPPORTED_VERSION)


@pytest.mark.parametrize("is_coordinated", [True, False])
async def test_what_is_wrong_with_a_request_is_told_by_every_broker(
    user: User, *, is_coordinated: bool
) -> None:
    if is_coordinated:
        await coordinated(user)

    empty = refused(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
    assert await beat(user, group=" ") == empty
    flawed = refused(ErrorCode.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request.")
    assert await beat(user, rebalance_timeout_ms=-1) == flawed


async def test_without_the_offsets_topic_there_is_no_coordinator(user: User) -> None:
    assert (await beat(user)).error_code == ErrorCode.NOT_COORDINATOR


# ---- what a member may do ----


async def test_a_member_has_to_be_allowed_to_read_the_group_and_to_see_its_topics(
    home: Home, user: User
) -> None:
    await user.create_topic("t")
    await coordinated(user)

    client, authorizer = await under(home, (READ, GROUP, "g"))
    assert await beat(client) == refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert authorizer.attempts == [(READ, GROUP, "g")]
    client, authorizer = await under(home, (DESCRIBE, TOPIC, "store"))
    topology = reading("t", state_changelog_topics=[internal("store")])
    assert await beat(client, topology=topology) == refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert authorizer.attempts == [(DESCRIBE, TOPIC, "store")]
    # Once it is in, the topics are not looked at any more.
    await beat(user, topology=topology)
    assert (await beat(client, "m", 2)).error_code == 0


async def test_one_topic_that_a_member_may_not_create_keeps_all_of_them_from_being_created(
    home: Home, user: User
) -> None:
    await user.create_topic("t")
    await coordinated(user)
    topology = reading("t", state_changelog_topics=[internal("a"), internal("b")])
    client, authorizer = await under(home, (CREATE, CLUSTER, ON_CLUSTER), (CREATE, TOPIC, "b"))

    joined = await beat(client, topology=topology)

    text = "Internal topics are missing: a, b; Unauthorized to CREATE on topics b."
    assert statuses(joined) == [(MISSING_INTERNAL, text)]
    assert authorizer.attempts == [(CREATE, TOPIC, "b")]
    assert not creation_of(home)._under_way
    client, authorizer = await under(home, (CREATE, CLUSTER, ON_CLUSTER))
    await beat(client, "m", 2)
    while "b" not in await user.topics():
        pass
    assert authorizer.attempts == []
