"""Topics, judged from their metadata and offsets."""

from __future__ import annotations

from types import SimpleNamespace as Told
from typing import Any

import pytest

from pykafka_broker.client.core.metadata import NO_LEADER
from pykafka_broker.doctor.findings import Level, ok
from pykafka_broker.doctor.topics import (
    Offsets,
    OpenTransaction,
    Partition,
    Topic,
    judge,
    judge_missing,
    judge_records,
    judge_stability,
    judge_without_quorum,
    open_transactions,
    strongest_acks,
)
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.describe_producers import DescribeProducersRequest
from pykafka_broker.protocol.messages.list_transactions import ListTransactionsRequest


def topic(*partitions: Partition, min_insync_replicas: int = 1) -> Topic:
    return Topic("orders", False, partitions, min_insync_replicas)


HEALTHY = Partition(0, 1, (1, 2, 3), (1, 2, 3))


def test_healthy_topics_are_counted() -> None:
    assert judge([topic(HEALTHY)]) == [
        ok("topics", "", "1 topic with 1 partition, each with a leader and all its replicas in sync.")
    ]
    assert judge([]) == [ok("topics", "", "There are no topics yet.")]


@pytest.mark.parametrize(
    ("partition", "acks"),
    [
        (Partition(0, 1, (1,), (1,)), "all"),
        (Partition(0, 1, (1, 2, 3), (1, 2)), "all"),
        (Partition(0, 1, (1, 2, 3), (1, 2, 3)), "1"),
        (Partition(0, 3, (1, 2, 3), (3,)), None),
        (Partition(0, NO_LEADER, (1, 2), ()), None),
    ],
)
def test_a_partition_takes_records_by_those_that_answer(partition: Partition, acks: str | None) -> None:
    _, leader_id, replicas, isr = partition
    assert strongest_acks(leader_id, replicas, isr, 1, {1, 2}) == acks


def test_too_few_replicas_in_sync_take_no_acks_all() -> None:
    assert strongest_acks(1, (1, 2), (1,), 2, {1}) == "1"
    assert strongest_acks(1, (1,), (1,), 2, {1}) == "all", "there are no more"


def test_without_a_quorum_it_is_said_what_can_be_written() -> None:
    only_here = topic(Partition(0, 1, (1,), (1,)))
    assert judge_without_quorum([only_here], {1}).level is Level.OK
    finding = judge_without_quorum([only_here, topic(HEALTHY, Partition(1, 2, (2, 3), (2, 3)))], {1})
    assert finding.level is Level.PROBLEM
    assert finding.message.startswith(
        "Of 3 partitions, 1 can be written with acks=all, 1 with acks=1 at most (in-sync replicas do not "
        "answer, or are too few), 1 not at all (no leader answers)."
    )


def test_a_missing_topic_makes_clients_wait_where_it_is_not_created_on_first_use() -> None:
    finding = judge_missing("ordres", ["orders", "clicks"], is_created_on_first_use=False)
    assert finding.level is Level.PROBLEM
    assert "waits until it times out, often after 60 s" in finding.message
    assert (
        finding.remedy == "Did you mean 'orders'? Otherwise create it:\n  pykafka-broker topics create ordres"
    )


def test_a_missing_topic_that_will_be_created_is_a_warning() -> None:
    finding = judge_missing("new", [], is_created_on_first_use=True)
    assert (finding.level, finding.remedy) == (
        Level.WARNING,
        "Create it:\n  pykafka-broker topics create new",
    )


def test_partitions_without_a_leader_name_the_brokers_that_are_missing() -> None:
    (finding,) = judge([topic(HEALTHY, Partition(1, NO_LEADER, (2, 3), ()))])
    assert finding.level is Level.PROBLEM
    assert "has no leader for 1 partition (1)" in finding.message
    assert "(2, 3)" in finding.remedy


def test_a_broker_that_was_unregistered_is_not_to_be_started() -> None:
    (lacking,) = judge([topic(Partition(0, 1, (1, 2, 3), (1,)))], registered={1, 3})
    assert lacking.remedy == (
        "Start the brokers that are missing (3), or wait until they have caught up.\n"
        "Not registered: 2. If such a broker runs, it was unregistered: restart it, and it registers again. "
        "If it is gone for good, move its replicas away:\n"
        "  pykafka-broker reassign plan --without 2 --output-file moves.json"
    )
    (leaderless,) = judge([topic(Partition(0, NO_LEADER, (2,), ()))], registered={1, 3})
    assert leaderless.remedy.startswith("Not registered: 2. If such a broker runs, it was unregistered: ")


def test_too_few_replicas_in_sync_refuse_producers() -> None:
    (finding,) = judge([topic(Partition(0, 1, (1, 2, 3), (1,)), min_insync_replicas=2)])
    assert finding.level is Level.PROBLEM
    assert "NOT_ENOUGH_REPLICAS" in finding.message
    assert finding.remedy == "Start the brokers that are missing (2, 3)."


def test_a_replica_that_lags_where_enough_are_in_sync_is_a_warning() -> None:
    (finding,) = judge([topic(Partition(0, 1, (1, 2, 3), (1, 2)), min_insync_replicas=2)])
    assert finding.level is Level.WARNING


def test_a_topic_whose_records_were_all_removed_says_by_what() -> None:
    finding = judge_records(topic(HEALTHY), {("orders", 0): Offsets(100, 100, 100)}, "604800000")
    assert finding.level is Level.WARNING
    assert "the first 100 offsets were removed by retention (retention.ms=604800000)" in finding.message


def test_the_offsets_of_other_topics_are_not_counted() -> None:
    found = {("orders", 0): Offsets(10, 30, 30), ("clicks", 0): Offsets(0, 500, 500)}
    assert judge_records(topic(HEALTHY), found, "1") == ok(
        "topics", "orders", "Topic 'orders' has 1 partition and 20 offsets to read."
    )


def test_an_open_transaction_holds_up_those_who_read_committed_records() -> None:
    found = {("orders", 0): Offsets(0, 50, 40), ("orders", 1): Offsets(0, 9, 9)}
    (finding,) = judge_stability(found, {("orders", 0): OpenTransaction(7, 40, "billing")})
    assert (finding.level, finding.subject) == (Level.WARNING, "orders-0")
    assert finding.message == (
        "Consumers with isolation.level=read_committed stop at offset 40 of orders-0, 10 offsets before its "
        "end: the transaction of 'billing' (producer id 7) is open."
    )
    assert "transaction.timeout.ms" in finding.remedy


@pytest.mark.parametrize(
    ("error", "hangs"), [(ErrorCode.NONE, True), (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, False)]
)
def test_a_transaction_hangs_only_if_all_coordinators_have_told_that_they_do_not_know_it(
    error: ErrorCode, hangs: bool
) -> None:
    producer = Told(producer_id=7, current_txn_start_offset=40, last_timestamp=0)
    answers = {
        DescribeProducersRequest: Told(topics=[Told(partitions=[Told(active_producers=[producer])])]),
        ListTransactionsRequest: Told(error_code=error, transaction_states=[]),
    }
    client: Any = Told(
        brokers=Told(addresses={1: "here"}), send=lambda request, node_id: answers[type(request)]
    )

    found = open_transactions(client, {"orders": topic(HEALTHY)}, [("orders", 0)])
    assert found == {("orders", 0): OpenTransaction(7, 40, "", hangs)}


def test_a_transaction_that_no_coordinator_knows_has_to_be_aborted() -> None:
    found = {("orders", 0): Offsets(0, 50, 40)}
    (finding,) = judge_stability(found, {("orders", 0): OpenTransaction(7, 40, "", hangs=True)})
    assert "abort --topic orders --partition 0 --start-offset 40" in finding.remedy
