"""The keys of the nodes of a local cluster."""

from __future__ import annotations

import pytest

from pykafka_broker.local_cluster.layout import Layout, fixed_ports, layout_of, properties


def test_internal_topics_have_as_many_replicas_as_there_are_brokers_up_to_three() -> None:
    def replicas(layout: Layout) -> set[tuple[str, str]]:
        nodes = list(layout.roles())
        keys = properties(layout, fixed_ports(9092, nodes), {node: f"/{node}" for node in nodes}, {})
        return {
            (
                of_one["transaction.state.log.replication.factor"],
                of_one["transaction.state.log.min.isr"],
            )
            for of_one in keys.values()
        }

    assert replicas(Layout(combined=1)) == {("1", "1")}
    assert replicas(Layout(combined=2)) == {("2", "2")}
    assert replicas(Layout(controllers=3, brokers=5)) == {("3", "2")}


def test_brokers_and_controllers_may_be_apart() -> None:
    layout = Layout(controllers=1, brokers=2)
    keys = properties(
        layout, fixed_ports(9092, [1, 2, 3]), {1: "/a", 2: "/b", 3: "/c"}, {"num.partitions": "4"}
    )
    assert [(one["process.roles"], one["listeners"]) for one in keys.values()] == [
        ("controller", "CONTROLLER://127.0.0.1:9192"),
        ("broker", "PLAINTEXT://127.0.0.1:9093"),
        ("broker", "PLAINTEXT://127.0.0.1:9094"),
    ]
    assert {one["controller.quorum.bootstrap.servers"] for one in keys.values()} == {"127.0.0.1:9192"}
    assert {one["num.partitions"] for one in keys.values()} == {"4"}


def test_what_is_asked_for_is_one_kind_of_nodes_or_two() -> None:
    assert layout_of(None, None, None) is None
    assert layout_of(3, None, None) == Layout(combined=3)
    assert layout_of(None, 2, 3) == Layout(controllers=3, brokers=2)
    for nodes, brokers, controllers in ((3, 2, None), (3, None, 3), (None, 2, None), (1, 2, 3)):
        with pytest.raises(ValueError, match="either nodes, or both brokers and controllers"):
            layout_of(nodes, brokers, controllers)
    for number in (0, -1, 101):
        with pytest.raises(ValueError, match=f"has 1 to 100 nodes of a kind, not {number}"):
            layout_of(number, None, None)
