"""Placement: leaders spread, replicas on distinct brokers and racks, the same seed the same places."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_broker.cluster.image import BrokerRegistration
from pykafka_broker.controller.core.placement import place_replicas
from pykafka_broker.protocol.errors import KafkaError


def broker(
    broker_id: int, rack: str | None = None, *, fenced: bool = False, **fields: Any
) -> BrokerRegistration:
    return BrokerRegistration(broker_id, 0, bytes(16), {}, rack, fenced, **fields)


def test_each_broker_leads_in_turn() -> None:
    brokers = [broker(n) for n in range(4)]
    placed = place_replicas(brokers, 8, 3, seed=5)
    assert Counter(replicas[0] for replicas in placed) == dict.fromkeys(range(4), 2)


def test_replicas_are_spread_over_the_racks() -> None:
    brokers = [broker(n, rack="abc"[n % 3]) for n in range(6)]
    for replicas in place_replicas(brokers, 12, 3, seed=1):
        assert {replica % 3 for replica in replicas} == {0, 1, 2}


def test_fenced_brokers_may_follow_but_not_lead() -> None:
    brokers = [broker(0), broker(1, fenced=True), broker(2, fenced=True)]
    placed = place_replicas(brokers, 4, 3, seed=9)
    assert {replicas[0] for replicas in placed} == {0}
    assert all(sorted(replicas) == [0, 1, 2] for replicas in placed)


def test_a_broker_that_is_leaving_gets_nothing() -> None:
    brokers = [broker(0), broker(1, in_controlled_shutdown=True)]
    assert place_replicas(brokers, 2, 1, seed=3) == [(0,), (0,)]


def test_a_broker_that_has_left_in_order_may_follow_again() -> None:
    brokers = [broker(1), broker(2, fenced=True, in_controlled_shutdown=True)]
    assert place_replicas(brokers, 2, 2, seed=1) == [(1, 2), (1, 2)]


def test_brokers_without_a_rack_are_a_rack_of_their_own() -> None:
    brokers = [broker(1), broker(2), broker(3, rack=""), broker(4, rack="")]
    for replicas in place_replicas(brokers, 8, 2, seed=3):
        assert len({replica > 2 for replica in replicas}) == 2, replicas


def test_a_broker_whose_directories_are_all_cordoned_gets_nothing() -> None:
    cordoned = broker(1, directories=(b"d" * 16,), cordoned_directories=(b"d" * 16,))
    assert place_replicas([broker(0), cordoned], 2, 1, seed=3) == [(0,), (0,)]
    with pytest.raises(KafkaError, match=r"only 1 broker\(s\) are registered or some brokers have all"):
        place_replicas([broker(0), cordoned], 1, 2, seed=3)


@pytest.mark.parametrize(
    "brokers, factor, reason",
    [
        ([broker(0)], 0, "Invalid replication factor 0: the replication factor must be positive."),
        ([], 1, "All brokers are currently fenced."),
        ([broker(0, fenced=True)], 1, "All brokers are currently fenced."),
        ([broker(0)], 2, "The target replication factor of 2 cannot be reached because only 1 broker"),
    ],
)
def test_what_cannot_be_placed_is_refused_with_the_reason(
    brokers: list[BrokerRegistration], factor: int, reason: str
) -> None:
    with pytest.raises(KafkaError) as refused:
        place_replicas(brokers, 1, factor, seed=0)
    assert refused.value.message.startswith(reason)


clusters = st.lists(
    st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=9
).filter(lambda cluster: not all(fenced for _, fenced in cluster))


@given(clusters, st.integers(1, 20), st.integers(0, 2**64), st.data())
def test_every_placement_is_valid_even_and_repeatable(
    cluster: list[tuple[str | None, bool]], partitions: int, seed: int, data: st.DataObject
) -> None:
    brokers = [broker(n, rack, fenced=fenced) for n, (rack, fenced) in enumerate(cluster)]
    factor = data.draw(st.integers(1, len(brokers)))

    placed = place_replicas(brokers, partitions, factor, seed)

    assert placed == place_replicas(brokers, partitions, factor, seed)
    assert len(placed) == partitions
    assert all(len(set(replicas)) == factor for replicas in placed)
    assert not any(brokers[replicas[0]].fenced for replicas in placed)
