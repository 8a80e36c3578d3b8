"""The throttles of `reassign` while partitions of other plans move, at a cluster of answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace as Told
from typing import Any

import pytest

from pykafka_broker.cli.cluster import Cluster
from pykafka_broker.cli.reassign.moves import RATES, THROTTLED
from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
)
from pykafka_broker.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
)
from pykafka_broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from tests.cli.conftest import run_command

TOPIC = "orders"


class Answers(Client):
    """A cluster with one topic, whose moves end when they are told to."""

    def __init__(self, alive: set[int], replicas: dict[int, list[int]]) -> None:
        super().__init__("127.0.0.1:1", 1.0)
        self.alive = alive
        self.replicas = replicas
        #: The replicas being added and removed, by partition.
        self.moving: dict[int, tuple[list[int], list[int]]] = {}
        #: What resources set: brokers by their ids, topics by their names.
        self.configs: dict[str, dict[str, str]] = {}

    def connection(self, node_id: int | None = None) -> Any:
        return NoVersions()

    def metadata(self, topics: Iterable[str] | None, *, auto_create: bool = False) -> Any:
        return Told(
            brokers=[Told(node_id=broker, rack=None) for broker in sorted(self.alive)],
            topics=[
                Told(
                    name=name,
                    error_code=0,
                    partitions=[
                        Told(partition_index=index, replica_nodes=replicas)
                        for index, replicas in self.replicas.items()
                    ],
                )
                for name in ((TOPIC,) if topics is None else topics)
            ],
        )

    def send(self, request: Any, node_id: int | None = None, version: int | None = None) -> Any:
        assert node_id is None or node_id in self.alive, "asked a broker that is down"
        match request:
            case IncrementalAlterConfigsRequest():
                for resource in request.resources:
                    values = self.configs.setdefault(resource.resource_name, {})
                    for entry in resource.configs:
                        values.pop(entry.name, None)
                        if entry.value is not None:
                            values[entry.name] = entry.value
                return Told(responses=[])
            case ListPartitionReassignmentsRequest():
                asked = None if request.topics is None else request.topics[0].partition_indexes
                found = [
                    Told(
                        partition_index=index,
                        replicas=self.replicas[index],
                        adding_replicas=adding,
                        removing_replicas=removing,
                    )
                    for index, (adding, removing) in self.moving.items()
                    if asked is None or index in asked
                ]
                return Told(error_code=0, error_message=None, topics=[Told(name=TOPIC, partitions=found)])
            case AlterPartitionReassignmentsRequest():
                return Told(error_code=0, error_message=None, responses=[])
        raise AssertionError(request)


class NoVersions:
    """A connection to a broker that serves nothing but Metadata."""

    versions: dict[int, tuple[int, int]] = {}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answers]:
    def connected(alive: set[int], *replicas: list[int]) -> Answers:
        answers = Answers(alive, dict(enumerate(replicas)))
        monkeypatch.setattr(Cluster, "connect", lambda self: answers)
        return answers

    return connected


def plan(folder: Path, partition: int, *replicas: int) -> str:
    file = folder / f"{partition}.json"
    entry = {"topic": TOPIC, "partition": partition, "replicas": replicas}
    file.write_text(json.dumps({"partitions": [entry]}))
    return str(file)


def test_status_leaves_the_throttle_while_partitions_of_another_plan_move(
    cluster: Callable[..., Answers], tmp_path: Path
) -> None:
    answers = cluster({1, 2}, [2], [1, 2])
    answers.moving[1] = ([2], [1])
    throttled = {"1": dict.fromkeys(RATES, "5000"), TOPIC: dict.fromkeys(THROTTLED, "1:1")}
    answers.configs = {name: {**values} for name, values in throttled.items()}

    told = run_command("reassign", "status", plan(tmp_path, 0, 2))
    assert "orders-0 is completed" in told.out and "Clearing" not in told.out
    assert answers.configs == throttled

    answers.moving.clear()
    assert "Clearing" in run_command("reassign", "status", plan(tmp_path, 0, 2)).out
    assert not any(answers.configs.values())


def test_an_additional_plan_slows_down_what_moves_already_and_leaves_it_so(
    cluster: Callable[..., Answers], tmp_path: Path
) -> None:
    answers = cluster({1, 2, 3}, [3, 1], [1])
    answers.moving[0] = ([3], [1])

    ran = run_command("reassign", "run", plan(tmp_path, 1, 2), "--additional", "--throttle", "5000", "--wait")
    assert ran.status == 0, ran.err
    assert "Other partitions still move: the throttle stays" in ran.err
    assert answers.configs == {
        **{broker: dict.fromkeys(RATES, "5000") for broker in "123"},
        TOPIC: dict(zip(THROTTLED, ("0:1,1:1", "0:3,1:2"), strict=True)),
    }


def test_a_throttle_on_a_plan_that_runs_already_slows_its_moves_down(
    cluster: Callable[..., Answers], tmp_path: Path
) -> None:
    answers = cluster({1, 2}, [2, 1])
    answers.moving[0] = ([2], [1])

    ran = run_command("reassign", "run", plan(tmp_path, 0, 2), "--additional", "--throttle", "5000")
    assert ran.status == 0, ran.err
    assert answers.configs[TOPIC] == dict(zip(THROTTLED, ("0:1", "0:2"), strict=True))


def test_replicas_move_under_a_throttle_from_a_broker_that_is_down(
    cluster: Callable[..., Answers], tmp_path: Path
) -> None:
    answers = cluster({1, 2}, [1, 9])

    ran = run_command("reassign", "run", plan(tmp_path, 0, 1, 2), "--throttle", "5000", "--wait")
    assert ran.status == 0, ran.err
    assert ran.out == "Reassignment of partitions orders-0 is completed.\n"
    assert not any(answers.configs.values())
