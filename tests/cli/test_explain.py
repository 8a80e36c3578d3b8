"""`explain`: the present, from Kafka's APIs, and the history, from the brokers of this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from pykafka_broker.cli.explain.explanation import Fact
from pykafka_broker.cli.explain.partition import FAILED_DISK, LOST
from pykafka_broker.cli.explain.partition import look as look_at_partition
from pykafka_broker.cli.explain.producer import AGAIN
from pykafka_broker.cli.explain.producer import look as look_at_producer
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.client.core.metadata import NO_LEADER
from pykafka_broker.machine.clock import SystemClock
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import list_transactions
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterResponse
from pykafka_broker.protocol.messages.describe_configs import DescribeConfigsResponse, DescribeConfigsResult
from pykafka_broker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from pykafka_broker.protocol.messages.describe_transactions import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from pykafka_broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pykafka_broker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pykafka_broker.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from pykafka_broker.system.wording import MS_PER_HOUR
from pykafka_broker.testing.processes import free_port
from tests.cli.conftest import Run, RunningBroker, run_command
from tests.support.offline_partition import TOPIC, HalfOffline, half_offline


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker with a metrics listener on a loopback address."""
    listener = f"metrics.listeners=http://127.0.0.1:{free_port()}"
    with RunningBroker(tmp_path_factory.mktemp("measured"), overrides=[listener]) as running:
        yield running.address


def coordinator_of_transactions(client: Client) -> None:
    """The first such question makes the topic of the coordinator."""
    [found] = client.send(FindCoordinatorRequest(key_type=1, coordinator_keys=["payments"])).coordinators
    check(found.error_code)


def begun(answer: InitProducerIdResponse) -> None:
    check(answer.error_code)


@pytest.fixture
def ask(measured: str) -> Callable[..., str]:
    def ask(*words: str) -> str:
        result = run_command(*words, "-b", measured)
        assert result.status == 0
        assert re.fullmatch(r"(Processed a total of \d messages\n)?", result.err)
        return result.out

    return ask


NOTHING_SET = DescribeConfigsResult(error_code=0, resource_type=2, resource_name="orders", configs=[])


class Answering(Client):
    """A cluster of one broker, which has one answer to each kind of request."""

    def __init__(self, answers: Iterable[object]) -> None:
        super().__init__("127.0.0.1:1")
        self._answers = {type(answer).__name__.removesuffix("Response"): answer for answer in answers}
        self.versions = dict.fromkeys(range(100), (0, 100))

    def connection(self, node_id: int | None = None) -> Any:
        return self

    def send(self, request: object, node_id: int | None = None, version: int | None = None) -> Any:
        return self._answers[type(request).__name__.removesuffix("Request")]

    def metadata(self, topics: Iterable[str] | None, *, auto_create: bool = False) -> Any:
        return self._answers["Metadata"]


def join(client: Client, group: str) -> str:
    """Join a group, which then waits for this member's assignment; the id of the member."""
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    joining = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=[protocol],
    )

    def joined(coordinator: int) -> str:
        answer = client.send(joining, coordinator, version=3)
        check(answer.error_code)
        return str(answer.member_id)

    return client.at_coordinator(group, joined)


def leave(client: Client, group: str, member_id: str) -> None:
    leaving = [MemberIdentity(member_id=member_id, reason="done")]
    client.send(LeaveGroupRequest(group_id=group, members=leaving))


def join_and_leave(client: Client, group: str) -> None:
    leave(client, group, join(client, group))


def test_a_group_has_its_state_and_what_became_of_its_members(ask: Callable[..., str], measured: str) -> None:
    ask("topics", "create", "orders")
    ask("produce", "orders", "one")
    ask("consume", "orders", "--group", "readers", "--until", "end")
    ask("produce", "orders", "two", "three")
    with Client(measured, 30.0) as client:
        join_and_leave(client, "readers")

    told = ask("explain", "group", "readers")

    present = "group readers, now:\n  The group is Empty: no member is in it."
    assert present in told
    assert "\n  Its coordinator is broker 1, and it has 0 members, 2 records behind.\n" in told
    assert told.startswith("History of broker 1:\n")
    joined = r"\n  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  Member \S+ \(127\.0\.0\.1\) joined\."
    left = (
        r"\n  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  Member \S+ \(127\.0\.0\.1\) left: done\. .*"
        r"\n      A consumer leaves when "
    )
    assert re.search(f"{joined}(.|\n)*{left}", told), told


def test_a_producer_that_took_over_is_named_with_its_client(ask: Callable[..., str], measured: str) -> None:
    with Client(measured, 30.0) as client:
        request = InitProducerIdRequest(transactional_id="payments", transaction_timeout_ms=60_000)
        client.retrying(lambda: coordinator_of_transactions(client))
        for _ in range(2):
            client.retrying(lambda: begun(client.send(request)))

    found = json.loads(ask("explain", "producer", "payments", "--json"))

    assert found["now"][0]["text"].startswith("The transactional id payments belongs to producer id ")
    [taken_over] = found["history"]
    assert (taken_over["node_id"], taken_over["times"]) == (1, 1)
    assert " became the producer of payments, with epoch 1 " in taken_over["text"]
    assert "(User:ANONYMOUS, 127.0.0.1)" in taken_over["text"]


def test_a_partition_has_its_leader_and_its_replicas_in_sync(ask: Callable[..., str]) -> None:
    ask("topics", "create", "clicks")

    told = ask("explain", "partition", "clicks:0")

    assert told == (
        "History of broker 1: nothing.\npartition clicks-0, now:\n  The partition has broker 1 as its leader "
        "(leader epoch 0), the replicas [1], of which [1] are in sync, and min.insync.replicas=1.\n"
    )


@pytest.fixture(scope="module")
def half() -> Iterator[HalfOffline]:
    with half_offline() as found:
        yield found


def test_a_partition_that_is_offline_says_that_its_disk_has_failed(half: HalfOffline) -> None:
    with Client(half.address) as client:
        _, offline = look_at_partition(client, f"{TOPIC}-{half.offline}")
        [led] = look_at_partition(client, f"{TOPIC}-{half.led}")

    assert offline == Fact(
        "The partition is offline: it can be neither written nor read, because none of [1], which may lead "
        "it, is available. The log directory of its replica on broker 1 is out of service.",
        f"{FAILED_DISK} {LOST}",
    )
    assert led.text.startswith("The partition has broker 1 as its leader ")


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({}, "no replica may lead it"),
        ({"eligible_leader_replicas": [3, 2]}, "none of [2, 3], which may lead it, is available"),
        ({"last_known_elr": [2]}, "no replica may lead it; the last that might were [2]"),
    ],
)
def test_without_a_replica_in_sync_those_are_told_that_may_lead_all_the_same(
    told: dict[str, Any], why: str
) -> None:
    described = DescribeTopicPartitionsResponsePartition(
        error_code=5,
        partition_index=0,
        leader_id=NO_LEADER,
        replica_nodes=[1, 2, 3],
        isr_nodes=[],
        offline_replicas=[1, 2, 3],
        **told,
    )
    client = Answering(
        [
            DescribeTopicPartitionsResponse(
                topics=[
                    DescribeTopicPartitionsResponseTopic(
                        error_code=0, name="orders", topic_id=bytes(16), partitions=[described]
                    )
                ]
            ),
            DescribeConfigsResponse(results=[NOTHING_SET]),
            DescribeClusterResponse(error_code=0, cluster_id="", brokers=[]),
        ]
    )
    assert why in look_at_partition(client, "orders-0")[1].text


NOW_MS = 1_767_323_045_000
SHOP = TransactionState(
    error_code=0,
    transactional_id="shop",
    transaction_state="Ongoing",
    transaction_timeout_ms=60_000,
    transaction_start_time_ms=NOW_MS - 3 * MS_PER_HOUR,
    producer_id=7,
    producer_epoch=3,
    topics=[TopicData(topic="orders", partitions=[0, 1])],
)


def coordinating(error_code: int, *states: list_transactions.TransactionState) -> Answering:
    return Answering(
        [
            MetadataResponse(brokers=[MetadataResponseBroker(node_id=4, host="a", port=1)], topics=[]),
            list_transactions.ListTransactionsResponse(
                error_code=error_code, unknown_state_filters=[], transaction_states=list(states)
            ),
            DescribeTransactionsResponse(transaction_states=[SHOP]),
        ]
    )


def test_an_open_transaction_began_when_its_coordinator_says_and_has_no_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SystemClock, "now_ms", lambda _: NOW_MS)
    listed = list_transactions.TransactionState(
        transactional_id="shop", producer_id=7, transaction_state="Ongoing"
    )

    [by_name], [by_number] = (look_at_producer(coordinating(0, listed), name) for name in ("shop", "7"))

    assert by_name == by_number
    assert by_name.remedy == ""
    assert by_name.text.endswith(", 3 h ago, writes to orders-0, orders-1, and is aborted after 1 min.")


def test_a_coordinator_that_loads_may_know_the_producer() -> None:
    loading = coordinating(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    assert look_at_producer(loading, "shop") == [
        Fact(
            "No coordinator that tells knows a transactional id of shop, but broker 4 is still loading its "
            "transactions.",
            AGAIN,
        )
    ]


def test_what_is_set_for_every_user_or_for_a_user_with_a_client_id_is_told(run: Run) -> None:
    run("acls", "add", "--deny-principal", "User:*", "--operation", "read", "--topic", "guarded")
    run("quotas", "set", "--user", "alice", "--client-id", "shop", "producer_byte_rate=9")
    run("quotas", "set", "--user", "bob", "--client-id", "other", "producer_byte_rate=8")

    told = {name: run("explain", "request", name).out for name in ("alice", "shop")}

    run("quotas", "remove", "--user", "alice", "--client-id", "shop", "--all")
    run("quotas", "remove", "--user", "bob", "--client-id", "other", "--all")
    for each in told.values():
        assert "  The quota of user-principal 'alice', client-id 'shop': producer_byte_rate=9.\n" in each
        assert "'bob'" not in each
        assert "READ on TOPIC guarded (LITERAL) from * is denied to User:*.\n" in each


def test_a_throttled_client_is_told_its_quota(ask: Callable[..., str]) -> None:
    ask("topics", "create", "slow")
    ask("quotas", "set", "--client-id-defaults", "producer_byte_rate=1")
    ask("produce", "slow", "x" * 1_000)

    told = ask("explain", "request", "ANONYMOUS")
    ask("quotas", "remove", "--client-id-defaults", "--all")

    assert "  The cluster has no authorizer: it denies no request.\n" in told
    assert "  The quota of the default client-id: producer_byte_rate=1.\n" in told
    quota = "the quota producer_byte_rate of the default client id: 1 bytes per second."
    assert f"was throttled by {quota}" in told


def test_a_broker_without_such_a_listener_has_no_history(run: Run) -> None:
    run("topics", "create", "kept")

    told = run("explain", "partition", "kept-0")

    assert told.out.startswith(
        "History not available: broker 1 tells of no metrics listener on a loopback address, such as "
        "`start --metrics` opens.\n"
    )


@pytest.mark.parametrize(
    ("words", "status", "err"),
    [
        (("group", "unknown"), 1, "Group unknown not found."),
        (("partition", "orders"), 2, "orders is no partition: name it as orders-0"),
        (("partition", "unknown-0"), 1, "unknown"),
        (("partition", "narrow-9"), 1, "Topic narrow has no partition 9."),
    ],
)
def test_what_does_not_exist_is_an_error_as_everywhere(
    run: Run, words: tuple[str, ...], status: int, err: str
) -> None:
    run("topics", "create", "narrow")

    result = run("explain", *words)

    assert result.status == status
    assert err in result.err
