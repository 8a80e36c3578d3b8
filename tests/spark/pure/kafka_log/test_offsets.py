"""Positions of streams are kept as Spark's own source keeps them, and caps are shared out as it does."""

from __future__ import annotations

import json

from pykafka_broker.protocol.topic_partition import TopicPartition
from pykafka_broker.spark.kafka_log.offsets import Positions, capped, from_json, to_json

ORDERS = [TopicPartition("orders", number) for number in range(12)]


def test_positions_are_kept_with_the_ids_of_their_topics() -> None:
    offsets = {ORDERS[10]: 3, ORDERS[2]: 7, TopicPartition("a", 0): 0}
    positions = Positions(offsets, {"orders": "6i3DKK83S0uVTqjfAHNxxA"})

    kept = json.dumps(to_json(positions))

    assert kept == '{"a": {"0": 0}, "orders": {"id": "6i3DKK83S0uVTqjfAHNxxA", "2": 7, "10": 3}}'
    assert from_json(json.loads(kept)) == positions


def test_a_cap_is_shared_in_proportion_and_leaves_no_partition_out() -> None:
    begins = dict.fromkeys(ORDERS[:3], 100)
    ends = {ORDERS[0]: 201, ORDERS[1]: 111, ORDERS[2]: 101}

    assert capped(begins, ends, 10) == {ORDERS[0]: 108, ORDERS[1]: 101, ORDERS[2]: 101}
    assert capped(begins, ends, 113) == ends
    assert capped(begins, ends, None) == ends


def test_where_nothing_is_to_be_read_nothing_moves() -> None:
    assert capped({ORDERS[0]: 5}, {ORDERS[0]: 5}, 10) == {ORDERS[0]: 5}
