"""One node and two on one host under the same load, and how many partitions a killed node leads."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.scale import FAILOVER_PARTITIONS, PARTITIONS_OF_A_TOPIC, VOTERS, load_host
from pykafka_broker.cluster.image import BrokerRegistration
from pykafka_broker.controller.core.placement import place_replicas


@pytest.mark.parametrize("restarted", VOTERS)
def test_each_of_two_nodes_leads_at_least_5000_partitions_after_the_third_has_restarted(
    restarted: int,
) -> None:
    brokers = [BrokerRegistration(node_id, 0, bytes(16), {}, fenced=False) for node_id in VOTERS]
    led = Counter(
        next(node_id for node_id in replicas if node_id != restarted)
        for seed in range(FAILOVER_PARTITIONS // PARTITIONS_OF_A_TOPIC)
        for replicas in place_replicas(brokers, PARTITIONS_OF_A_TOPIC, len(VOTERS), seed)
    )
    assert len(led) == 2
    assert min(led.values()) >= 5_000


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2])
def test_the_load_reaches_all_nodes_of_the_host(nodes: int) -> None:
    figures = load_host("ours", nodes, 0.02)

    assert figures.keys() == {"acks_per_s", "acks_p99_ms", "mb_s", "s_per_gb", "memory_mb"}
    assert all(value > 0 for value in figures.values())
