"""Plans of `reassign`: what moves, and as little as possible of it; and the files that say so."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from pykafka_broker.cli.reassign import plan_file
from pykafka_broker.cli.reassign.planning import PlanError, copied, plan, throttled_replicas
from pykafka_broker.protocol.topic_partition import TopicPartition

Replicas = dict[TopicPartition, tuple[int, ...]]


def orders(*replicas: tuple[int, ...]) -> Replicas:
    return {TopicPartition("orders", index): each for index, each in enumerate(replicas)}


def without_racks(*brokers: int) -> dict[int, str | None]:
    return dict.fromkeys(brokers)


def test_a_placement_that_is_even_already_stays() -> None:
    assert plan(orders((1, 2), (2, 3), (3, 1)), without_racks(1, 2, 3)) == {}


def test_a_broker_that_goes_is_replaced_where_it_stood_and_nothing_else_moves() -> None:
    current = orders((1, 2), (2, 3), (3, 4), (4, 1))

    changed = plan(current, without_racks(1, 2, 4))

    assert set(changed) == {TopicPartition("orders", 1), TopicPartition("orders", 2)}
    assert all(3 not in replicas for replicas in changed.values())


def test_a_new_broker_gets_its_share() -> None:
    current = orders(*[(1, 2), (2, 1)] * 6)

    wanted = {**current, **plan(current, without_racks(1, 2, 3))}

    assert sorted(Counter(broker for replicas in wanted.values() for broker in replicas).values()) == [
        8,
        8,
        8,
    ]
    assert sorted(Counter(replicas[0] for replicas in wanted.values()).values()) == [4, 4, 4]
    assert sum(len(copied(current[one], wanted[one])) for one in current) == 8


def test_preferred_leaders_become_even_by_orders_alone() -> None:
    current = orders(*[(1, 2, 3)] * 6)

    changed = plan(current, without_racks(1, 2, 3))

    assert sorted(Counter(({**current, **changed})[one][0] for one in current).values()) == [2, 2, 2]
    assert all(copied(current[one], replicas) == [] for one, replicas in changed.items())


def test_a_replica_more_goes_to_a_rack_that_the_partition_does_not_stand_in() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "a", 4: "b"}

    assert plan(orders((1,)), racks, replication_factor=2) == orders((1, 4))


def test_a_replica_fewer_is_the_last_one_or_one_that_has_to_go() -> None:
    assert plan(orders((1, 2, 3)), without_racks(1, 2, 3), replication_factor=2) == orders((1, 2))
    assert plan(orders((9, 2, 3)), without_racks(2, 3), replication_factor=2) == orders((2, 3))


def test_more_replicas_than_brokers_are_refused() -> None:
    with pytest.raises(PlanError) as refused:
        plan(orders((1, 2)), without_racks(1, 2), replication_factor=3)
    assert str(refused.value) == (
        "orders-0 is to have 3 replicas, and there are 2 brokers: start another one first, or plan with "
        "fewer (--replication-factor)."
    )


def racks_of(replicas: Sequence[int], racks: dict[int, str | None]) -> int:
    return len({racks[broker] for broker in replicas})


@pytest.mark.parametrize("seed", range(60))
def test_any_cluster_becomes_even_and_no_partition_loses_a_rack(seed: int) -> None:
    chance = random.Random(seed)
    brokers = list(range(1, chance.randint(2, 9)))
    racks = {broker: chance.choice(["a", "b", "c"]) for broker in brokers}
    factor = chance.randint(1, min(3, len(brokers)))
    current = orders(*(tuple(chance.sample(brokers, factor)) for _ in range(chance.randint(1, 40))))

    wanted = {**current, **plan(current, dict(racks))}

    assert all(len(set(replicas)) == factor for replicas in wanted.values())
    assert all(racks_of(wanted[one], dict(racks)) >= racks_of(current[one], dict(racks)) for one in current)
    assert plan(wanted, dict(racks)) == {}
    if len(set(racks.values())) == 1:
        held = Counter(broker for replicas in wanted.values() for broker in replicas)
        assert max(held.values()) - min(held[broker] for broker in brokers) <= 1


def test_replicas_of_now_send_slowly_and_new_ones_receive_slowly() -> None:
    current, wanted = orders((1, 2), (2, 3)), orders((1, 3), (3, 2))

    assert throttled_replicas(current, wanted) == ({"orders": ["0:1", "0:2"]}, {"orders": ["0:3"]})


def test_a_plan_is_written_as_kafkas_tool_writes_it_and_read_again() -> None:
    wanted = orders((1, 2), (3,))

    text = plan_file.written(wanted)

    assert text == (
        '{"version":1,"partitions":['
        '{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["any","any"]},'
        '{"topic":"orders","partition":1,"replicas":[3],"log_dirs":["any"]}]}'
    )
    assert plan_file.parsed(text) == wanted


def test_directories_that_are_null_are_not_named() -> None:
    entry = '{"topic":"orders","partition":0,"replicas":[1],"log_dirs":null}'
    assert plan_file.parsed(f'{{"partitions":[{entry}]}}') == orders((1,))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "it is no JSON: "),
        ("[" * 100_000, "it is no JSON: "),
        ("[]", 'it has no list "partitions"'),
        ('{"version":2,"partitions":[]}', "its version is 2, and only 1 is known"),
        ('{"partitions":[]}', "it has no partitions"),
        ('{"partitions":[{"topic":"a"}]}', 'this is no partition with its replicas: {"topic": "a"}'),
        ('{"partitions":[{"topic":"a","partition":0,"replicas":["1"]}]}', "this is no partition with"),
        ('{"partitions":[{"topic":"a","partition":0,"replicas":[]}]}', "a-0 has no replicas"),
        ('{"partitions":[{"topic":"a","partition":0,"replicas":[2,2]}]}', "a-0 has a replica twice: 2,2"),
        (
            '{"partitions":[{"topic":"a","partition":0,"replicas":[1]},'
            '{"topic":"a","partition":0,"replicas":[2]}]}',
            "a-0 comes twice",
        ),
        (
            '{"partitions":[{"topic":"a","partition":0,"replicas":[1],"log_dirs":["/data"]}]}',
            "a-0 names log_dirs, and brokers choose theirs",
        ),
    ],
)
def test_what_is_no_plan_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(plan_file.PlanFileError) as refused:
        plan_file.parsed(text)
    assert str(refused.value).startswith(why)
