"""Three nodes under load whose network is divided, from one seed: a node is cut off from the others, in both
directions or in one, two do not reach each other while both reach the third, links are slow, or drop.

Clients reach every node all the time, also one that is cut off: what it acknowledges then counts as well.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable, Mapping
from itertools import permutations
from pathlib import Path

import pytest

from pykafka_broker.testing.processes import free_port
from tests.torture.clients import Load
from tests.torture.links import Link, Links
from tests.torture.tortured_cluster import (
    NODES,
    RECORDS_A_ROUND,
    ROUNDS,
    SEED,
    Fault,
    TorturedCluster,
    TorturedNode,
    torture,
)

#: Shorter than any time limit, longer than a session, and longer than all.
CUT_S = (0.5, 4.0, 9.0)
#: So long producers may take until they have found the leaders that are not cut off.
PATIENCE_S = 30


class LinkedNode(TorturedNode):
    """A node that other nodes reach through links alone."""

    def link(self, links: Links) -> None:
        """Give other nodes the ports of the links, and listen behind them."""
        controllers, brokers, brokers_behind = free_port(), free_port(), free_port()
        links.open(self.node_id, self.controller_port, controllers)
        links.open(self.node_id, brokers, brokers_behind)
        clients = f"PLAINTEXT://{self.address}"
        self.properties |= {
            "listeners": f"{clients},NODES://127.0.0.1:{brokers_behind},CONTROLLER://127.0.0.1:{controllers}",
            "advertised.listeners": f"{clients},NODES://127.0.0.1:{brokers},"
            f"CONTROLLER://{self.controller_address}",
            "inter.broker.listener.name": "NODES",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,NODES:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }


class DividedCluster(TorturedCluster):
    """What is done to the links."""

    node_class = LinkedNode

    def __init__(self, folder: Path, dice: random.Random, links: Links) -> None:
        super().__init__(folder, dice)
        self.links = links
        for node in self.nodes:
            assert isinstance(node, LinkedNode)
            node.link(links)

    @property
    def faults(self) -> Mapping[str, Fault]:
        return {
            "cut the leader off": lambda load: self.cut(load, both_ways(self.leader())),
            "cut a follower off": lambda load: self.cut(load, both_ways(self.follower())),
            "cut the controller off": lambda load: self.cut(load, both_ways(self.nodes.leader())),
            "the leader hears nothing": lambda load: self.cut(load, to(self.leader())),
            "the leader is not heard": lambda load: self.cut(load, of(self.leader())),
            "a follower hears nothing": lambda load: self.cut(load, to(self.follower())),
            "a follower is not heard": lambda load: self.cut(load, of(self.follower())),
            "the controller hears nothing": lambda load: self.cut(load, to(self.nodes.leader())),
            "the controller is not heard": lambda load: self.cut(load, of(self.nodes.leader())),
            "two do not reach each other": self.divide_two,
            "a leader that is cut off is killed": self.cut_and_kill,
            "links are slow": self.slow_down,
            "connections drop": self.drop,
        }

    def heal(self) -> None:
        self.links.mend()
        super().heal()

    def cut(self, load: Load, links: Iterable[Link]) -> None:
        """The others go on meanwhile, if there is time for it."""
        cut_s = self.dice.choice(CUT_S)
        self.links.cut(links)
        time.sleep(cut_s)
        if cut_s == max(CUT_S):
            self.go_on(load)
        self.links.mend()
        load.wait_for(RECORDS_A_ROUND)

    def go_on(self, load: Load) -> None:
        """Others lead by now, and producers find them. A producer that stays with the broker that is cut off
        is counted, and not an error: it asks in its own time, and loses nothing.
        """
        deadline = time.monotonic() + PATIENCE_S
        load.wait_for(RECORDS_A_ROUND, until=lambda: time.monotonic() > deadline)
        if time.monotonic() > deadline:
            self.notes["producers that stayed with a broker that was cut off"] += 1

    def divide_two(self, load: Load) -> None:
        one, other = self.dice.sample(NODES, 2)
        self.cut(load, [(one, other), (other, one)])

    def cut_and_kill(self, load: Load) -> None:
        """What it alone had is gone when it comes back."""
        leader = self.leader()
        self.links.cut(both_ways(leader))
        self.go_on(load)
        self.nodes[leader].kill()
        self.links.mend()
        load.wait_for(RECORDS_A_ROUND)

    def slow_down(self, load: Load) -> None:
        self.links.slow_down(self.dice.choice((0.02, 0.2)))
        load.wait_for(RECORDS_A_ROUND)

    def drop(self, load: Load) -> None:
        for _ in range(5):
            self.links.drop()
            load.wait_for(RECORDS_A_ROUND // 5)


def of(node_id: int) -> list[Link]:
    """The links from a node to all others."""
    return [link for link in permutations(NODES, 2) if link[0] == node_id]


def to(node_id: int) -> list[Link]:
    """The links to a node from all others."""
    return [link for link in permutations(NODES, 2) if link[1] == node_id]


def both_ways(node_id: int) -> list[Link]:
    return [*of(node_id), *to(node_id)]


@pytest.mark.skipif("TORTURE_ROUNDS" not in os.environ, reason="make torture runs it")
@pytest.mark.timeout(600 + 120 * ROUNDS)
def test_a_divided_network_costs_nothing_that_was_acknowledged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Links(lambda: cluster.pids) as links:
        cluster = DividedCluster(tmp_path, random.Random(SEED), links)
        assert torture(cluster, cluster.faults, capsys) == {}
