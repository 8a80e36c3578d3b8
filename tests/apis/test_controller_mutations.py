"""Partitions that are created and deleted count to the quota of controller mutations (KIP-599)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from math import inf
from typing import Any

import pytest

from pykafka_broker.apis import APIS
from pykafka_broker.apis.api import BROKER_LISTENER
from pykafka_broker.apis.ports.authorizer import Requester
from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.endpoint import ListenerEndpoint
from pykafka_broker.network.identity import Anonymous
from pykafka_broker.network.kafka_connections import KafkaConnections
from pykafka_broker.network.listening import ListenerService
from pykafka_broker.network.transports import Plaintext
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from pykafka_broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User

OVER = int(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
OVER_QUOTA = (OVER, None)
DONE = (0, None)
THROTTLE_MS = 700
#: The last version of each API that does not know THROTTLING_QUOTA_EXCEEDED, and the first that does.
CREATE_TOPICS, CREATE_PARTITIONS, DELETE_TOPICS = (5, 6), (2, 3), (4, 5)


class Budget:
    """A client is over its quota once it has used more partitions than `left`."""

    is_active = True

    def __init__(self) -> None:
        self.left = 1_000
        self.used: list[int] = []

    def record(self, quota: Quota, requester: Requester, amount: int) -> int:
        assert quota is Quota.CONTROLLER_MUTATION
        if amount:
            self.used.append(amount)
        self.left -= amount
        return THROTTLE_MS if self.left < 0 else 0

    def most_bytes_fetched(self, requester: Requester) -> float:
        return inf

    def processing_ns(self) -> int:
        return 0


@pytest.fixture
def budget() -> Budget:
    return Budget()


@pytest.fixture
async def limited(home: Home, user: User, budget: Budget) -> AsyncIterator[User]:
    """A client whose mutations count to `budget`."""
    node = home.broker.node
    ports = node.broker.ports._replace(quotas=budget)
    kafka = KafkaConnections(
        node.listeners.shared, Dispatch(APIS, BROKER_LISTENER), Anonymous(), lambda: ports
    )
    listener = node.listeners.add(
        ListenerEndpoint("LIMITED", "127.0.0.1", 0), ListenerService(Plaintext(), kafka)
    )
    listener.start()
    async with await User.connect(f"127.0.0.1:{listener.port}") as limited:
        yield limited


def new(name: str, partitions: int = 1, assigned: int = 0) -> CreatableTopic:
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in range(assigned)
    ]
    return CreatableTopic(
        name=name,
        num_partitions=-1 if assigned else partitions,
        replication_factor=-1,
        assignments=assignments,
        configs=[],
    )


async def create(user: User, version: int, *topics: CreatableTopic) -> Any:
    return await user.send(CreateTopicsRequest(topics=list(topics), timeout_ms=1_000), version)


async def grow(user: User, version: int, **counts: int) -> Any:
    topics = [
        CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in counts.items()
    ]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=1_000, validate_only=False)
    return await user.send(request, version)


async def delete(user: User, version: int, *names: str) -> Any:
    return await user.send(DeleteTopicsRequest(topic_names=list(names), timeout_ms=1_000), version)


def outcomes(answers: list[Any]) -> dict[str, tuple[int, str | None]]:
    return {answer.name: (answer.error_code, answer.error_message) for answer in answers}


async def test_each_partition_that_is_created_or_deleted_counts(limited: User, budget: Budget) -> None:
    await create(limited, 7, new("a", 3), new("b", -1), new("c", assigned=2))
    await grow(limited, 3, a=5, b=4)
    await delete(limited, 5, "a", "b", "c")

    assert budget.used == [3, 1, 2, 2, 3, 5, 4, 2]


async def test_a_topic_deleted_by_its_id_counts(limited: User, budget: Budget) -> None:
    created = await create(limited, 7, new("a", 3))
    [topic] = created.topics

    wanted = [DeleteTopicState(name=None, topic_id=topic.topic_id)]
    await limited.send(DeleteTopicsRequest(topics=wanted, timeout_ms=1_000), 6)

    assert budget.used == [3, 3]


async def test_what_the_controller_refuses_by_name_counts_nothing(limited: User, budget: Budget) -> None:
    await create(limited, 7, new("a", 3))
    budget.left = -1

    created = await create(limited, 7, new("a"), new("twice"), new("twice"), new("none", 0))
    grown = await grow(limited, 3, a=2, missing=4)
    deleted = await delete(limited, 5, "missing", "a", "a")

    assert budget.used == [3]
    assert {name: ErrorCode(code) for name, (code, _) in outcomes(created.topics).items()} == {
        "a": ErrorCode.TOPIC_ALREADY_EXISTS,
        "twice": ErrorCode.INVALID_REQUEST,
        "none": ErrorCode.INVALID_PARTITIONS,
    }
    assert {name: ErrorCode(code) for name, (code, _) in outcomes(grown.results).items()} == {
        "a": ErrorCode.INVALID_PARTITIONS,
        "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert {name: ErrorCode(code) for name, (code, _) in outcomes(deleted.responses).items()} == {
        "a": ErrorCode.INVALID_REQUEST,
        "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


async def test_newer_versions_refuse_topics_once_the_client_is_over_its_quota(
    limited: User, budget: Budget
) -> None:
    budget.left = 2

    created = await create(limited, CREATE_TOPICS[1], new("a", 3), new("b"))

    assert outcomes(created.topics) == {"a": DONE, "b": OVER_QUOTA}
    assert created.throttle_time_ms == THROTTLE_MS
    budget.left = 0
    grown = await grow(limited, CREATE_PARTITIONS[1], a=4)
    assert (outcomes(grown.results), grown.throttle_time_ms) == ({"a": DONE}, 0)
    grown = await grow(limited, CREATE_PARTITIONS[1], a=5)
    assert (outcomes(grown.results), grown.throttle_time_ms) == ({"a": OVER_QUOTA}, THROTTLE_MS)
    deleted = await delete(limited, DELETE_TOPICS[1], "a")
    assert (outcomes(deleted.responses), deleted.throttle_time_ms) == ({"a": OVER_QUOTA}, THROTTLE_MS)
    assert budget.used == [3, 1]
    assert list(await limited.topics()) == ["a"]


async def test_older_versions_go_over_the_quota_and_tell_the_client_to_wait(
    limited: User, budget: Budget
) -> None:
    budget.left = 0

    created = await create(limited, CREATE_TOPICS[0], new("a", 3), new("b"))
    grown = await grow(limited, CREATE_PARTITIONS[0], a=4)
    deleted = await delete(limited, DELETE_TOPICS[0], "a", "b")

    throttled = [answer.throttle_time_ms for answer in (created, grown, deleted)]
    assert throttled == [THROTTLE_MS, THROTTLE_MS, THROTTLE_MS]
    assert outcomes(created.topics) == {"a": DONE, "b": DONE}
    assert budget.used == [3, 1, 1, 4, 1]
    assert await limited.topics() == {}
