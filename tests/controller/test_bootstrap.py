"""The first records of a leader."""

from __future__ import annotations

from pykafka_broker.cluster.features import bootstrap_records
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.controller.bootstrap import feature_levels, first_records, read_bootstrap_records
from pykafka_broker.controller.core.state import ControllerRules, ControllerState
from pykafka_broker.protocol.messages.records import metadata as m
from tests.support.metadata import DATA, formatted

EMPTY = ControllerState(ClusterImage("c"), ControllerRules(1, "c"))
OLD_VERSION = m.FeatureLevelRecord(name="metadata.version", feature_level=12)


def test_formatting_leaves_the_feature_levels_for_an_empty_log() -> None:
    records = read_bootstrap_records(formatted(), DATA)
    assert records == tuple(bootstrap_records())
    assert feature_levels(records)["metadata.version"] == 30


def test_a_log_that_has_begun_and_ends_in_order_needs_no_first_records() -> None:
    assert first_records(EMPTY, (), in_transaction=False) == ()


def test_what_the_last_leader_left_half_done_is_aborted() -> None:
    assert first_records(EMPTY, (), in_transaction=True) == (
        m.AbortTransactionRecord(reason="Controller failover"),
    )


def test_an_empty_log_begins_with_one_transaction() -> None:
    begin, *levels, end = first_records(EMPTY, tuple(bootstrap_records()), in_transaction=False)
    assert (begin, end) == (m.BeginTransactionRecord(name="Bootstrap records"), m.EndTransactionRecord())
    assert levels[: len(bootstrap_records())] == list(bootstrap_records())


def test_versions_that_know_no_transactions_get_the_plain_records() -> None:
    assert first_records(EMPTY, (OLD_VERSION,), in_transaction=False) == (OLD_VERSION,)


def test_an_aborted_begin_is_begun_again() -> None:
    records = first_records(EMPTY, (OLD_VERSION,), in_transaction=True)
    assert records == (m.AbortTransactionRecord(reason="Controller failover"), OLD_VERSION)
