"""Commands go on while a broker that was killed is still named as a leader or as a coordinator."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from pykafka_broker import Cluster
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import LATEST, list_offsets
from pykafka_broker.local_cluster.cluster import BlockingCluster
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from tests.cli.conftest import Result, run_command
from tests.support.waiting import until

pytestmark = pytest.mark.acknowledged

TOPIC = "payments"
#: The broker that is killed, and another one, which commands ask first.
KILLED, OTHER = 2, 1


@pytest.fixture
def cluster() -> Iterator[BlockingCluster]:
    """Three nodes, each of which leads a partition of the topic."""
    replicated = {"default.replication.factor": 3, "offsets.topic.num.partitions": 6}
    with Cluster(nodes=3, overrides=replicated) as cluster:
        assert run(cluster, "topics", "create", TOPIC, "-p", "3").status == 0
        assert {cluster.leader(TOPIC, partition) for partition in range(3)} == {1, 2, 3}
        yield cluster


def run(cluster: BlockingCluster, *arguments: str, stdin: bytes = b"") -> Result:
    return run_command(*arguments, "-b", cluster.address(OTHER), stdin=stdin)


def led(cluster: BlockingCluster) -> str:
    """The partition that the broker leads which is killed."""
    return next(str(partition) for partition in range(3) if cluster.leader(TOPIC, partition) == KILLED)


def coordinated(cluster: BlockingCluster) -> str:
    """A group that the broker coordinates which is killed."""
    with Client(cluster.address(OTHER)) as client:
        return next(name for name in map("g{}".format, range(100)) if client.coordinator(name) == KILLED)


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_records_are_written_to_the_broker_that_takes_over(cluster: BlockingCluster, acks: str) -> None:
    partition = led(cluster)
    cluster.kill(KILLED)
    assert run(cluster, "produce", TOPIC, "-p", partition, "--acks", acks, "one", "two").status == 0
    assert run(cluster, "consume", TOPIC, "-p", partition, "-n", "2").out == "one\ntwo\n"


def test_records_are_read_from_the_broker_that_takes_over(cluster: BlockingCluster) -> None:
    partition = led(cluster)
    assert run(cluster, "produce", TOPIC, "-p", partition, "one", "two").status == 0
    cluster.kill(KILLED)
    assert run(cluster, "consume", TOPIC, "--until", "end").out == "one\ntwo\n"


def test_a_partition_without_a_leader_keeps_none_from_the_offsets_of_the_others(
    cluster: BlockingCluster,
) -> None:
    assert run(cluster, "topics", "create", "single", "-p", "3", "-r", "1").status == 0
    alone, *others = sorted(range(3), key=lambda one: cluster.leader("single", one) != KILLED)
    cluster.kill(KILLED)
    with Client(cluster.address(OTHER), 0.2) as client:
        until(lambda: _leader(client, "single", alone) < 0, "it has no leader")
        assert list_offsets(client, {("single", one): LATEST for one in others}) == {
            ("single", one): 0 for one in others
        }
        with pytest.raises(KafkaError) as refused:
            list_offsets(client, {("single", alone): LATEST})
        assert refused.value.code is ErrorCode.LEADER_NOT_AVAILABLE


def _leader(client: Client, topic: str, partition: int) -> int:
    [described] = client.metadata([topic]).topics
    return next(one.leader_id for one in described.partitions if one.partition_index == partition)


def test_a_group_goes_on_with_the_broker_that_takes_over(cluster: BlockingCluster) -> None:
    group = coordinated(cluster)
    assert run(cluster, "produce", TOPIC, "-p", "0", "one", "two", "three").status == 0
    assert run(cluster, "consume", TOPIC, "-p", "0", "-g", group, "-n", "1").out == "one\n"
    cluster.kill(KILLED)
    [described] = json.loads(run(cluster, "groups", "describe", group, "--json").out)["groups"]
    assert [(offset["current_offset"], offset["lag"]) for offset in described["offsets"]] == [(1, 2)]
    assert run(cluster, "consume", TOPIC, "-p", "0", "-g", group, "-n", "1").out == "two\n"
    assert run(cluster, "groups", "delete", group).status == 0


@pytest.mark.parametrize(
    ("command", "error"),
    [
        # Only the controller has ids of producers.
        (["produce", "x"], "The coordinator is loading and cannot process requests yet"),
        (["produce", "--acks", "1", "x"], "Cannot connect to {killed}: Connection refused"),
        (["consume"], "Cannot connect to {killed}: Connection refused"),
    ],
)
def test_without_a_quorum_no_broker_takes_over_and_the_time_out_ends(
    cluster: BlockingCluster, command: list[str], error: str
) -> None:
    partition = led(cluster)
    cluster.kill(KILLED, 3)
    name, *rest = command
    result = run(cluster, name, TOPIC, "-p", partition, *rest, "--timeout", "1")
    assert result.status == 1
    assert result.err.startswith(f"Error: {error.format(killed=cluster.address(KILLED))}")
