"""Who may read up to where, and who may write."""

from __future__ import annotations

import pytest

from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.records.batch import NO_LEADER_EPOCH
from pykafka_broker.replication.core.access import (
    ACKS_ALL,
    CONSUMER_LIMITS,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    check_follower,
    check_leader_epoch,
    is_end_known,
    limit_of_fetch,
    limit_of_offsets,
    not_enough_replicas,
    outcome_of_committed,
)
from pykafka_broker.replication.core.in_sync import is_under_min_isr
from tests.replication.leading import after, fetched, leading


def test_consumers_read_what_is_committed() -> None:
    assert CONSUMER_LIMITS[READ_UNCOMMITTED] == "high_watermark"
    assert CONSUMER_LIMITS[READ_COMMITTED] == "last_stable"


@pytest.mark.parametrize("replica_id", [1, 4], ids=["the leader itself", "a broker that is not assigned"])
def test_only_the_other_replicas_follow(replica_id: int) -> None:
    check_follower(leading(1), 3, 5)
    with pytest.raises(KafkaError) as without_epoch:
        check_follower(leading(1), replica_id, NO_LEADER_EPOCH)
    assert without_epoch.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(KafkaError) as with_epoch:
        check_follower(leading(1), replica_id, 5)
    assert with_epoch.value.code is ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize(
    ("replica_id", "isolation_level", "of_fetch", "of_offsets"),
    [
        (-1, READ_UNCOMMITTED, "high_watermark", "high_watermark"),
        (-1, READ_COMMITTED, "last_stable", "last_stable"),
        (-2, READ_UNCOMMITTED, "high_watermark", "log_end"),
        (-2, READ_COMMITTED, "last_stable", "log_end"),
        (-3, READ_COMMITTED, "log_end", "log_end"),
        (2, READ_COMMITTED, "log_end", "log_end"),
    ],
)
def test_replicas_read_to_the_log_end_and_tools_only_hear_of_it(
    replica_id: int, isolation_level: int, of_fetch: str, of_offsets: str
) -> None:
    assert limit_of_fetch(replica_id, isolation_level) == of_fetch
    assert limit_of_offsets(replica_id, isolation_level) == of_offsets


def test_the_leader_epoch_of_a_client_is_the_current_one_or_none() -> None:
    check_leader_epoch(5, 5)
    check_leader_epoch(5, NO_LEADER_EPOCH)
    with pytest.raises(KafkaError) as older:
        check_leader_epoch(5, 4)
    with pytest.raises(KafkaError) as newer:
        check_leader_epoch(5, 6)
    assert older.value.code is ErrorCode.FENCED_LEADER_EPOCH
    assert newer.value.code is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_too_few_replicas_in_sync_refuse_a_producer_that_waits_for_all() -> None:
    assert not is_under_min_isr(leading(1, 2, min_insync_replicas=2))
    short = leading(1, min_insync_replicas=2)
    assert is_under_min_isr(short)
    refusal = not_enough_replicas(short, "orders-0")
    assert refusal.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert refusal.message == (
        "The size of the current ISR : 1 is insufficient to satisfy the min.isr requirement of 2 "
        "for partition orders-0, live replica(s) broker.id are : 1"
    )


def test_consumers_are_told_the_end_once_a_new_leader_has_committed_the_start_of_its_epoch() -> None:
    new = leading(1, 2, log_end_offset=100)
    assert not is_end_known(new, 99)
    assert is_end_known(new, 100)


def test_records_that_too_few_replicas_have_are_not_acknowledged_although_they_are_committed() -> None:
    assert outcome_of_committed(leading(1, 2, min_insync_replicas=2), ACKS_ALL) is ErrorCode.NONE
    shrunk = leading(1, min_insync_replicas=2)
    assert outcome_of_committed(shrunk, ACKS_ALL) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    joining = after(shrunk, fetched(2, 100))
    assert outcome_of_committed(joining, ACKS_ALL) is ErrorCode.NONE, "the replica that is asked for counts"
