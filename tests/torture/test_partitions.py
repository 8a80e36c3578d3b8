"""Three nodes under load whose network is divided, from one seed: a node is cut off from the others, in both
directions or in one, two do not reach each other while both reach the third, links are slow, or drop.

Clients reach a node that is cut off: what it acknowledges then counts as well. It is asked to write a record
with acks=all, too, and must not acknowledge it.

This happens on machines of their own (`network.py`) whose packets are lost, where that can be had, and behind
proxies (`links.py`), where bytes wait and connections can be reset. In the long form nodes behind proxies are
also secured: they show each other certificates, and clients log in.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from itertools import permutations
from pathlib import Path

import pytest

from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.testing.processes import free_port
from tests.torture.clients import Load
from tests.torture.harness import tell
from tests.torture.links import Link, Links
from tests.torture.minority import Minority
from tests.torture.network import IN_LONG_FORM, OUTSIDE, Network, why_not
from tests.torture.security import Security
from tests.torture.tortured_cluster import (
    MARKS,
    NODES,
    RECORDS_A_ROUND,
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
        """Give other nodes the ports of the links, and listen behind them. A secured node has its listeners,
        and the name of that for nodes, already.
        """
        self.properties = {
            "listeners": f"PLAINTEXT://{self.address},NODES://127.0.0.1:{free_port()},"
            f"CONTROLLER://{self.controller_address}",
            "inter.broker.listener.name": "NODES",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,NODES:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            **self.properties,
        }
        told = self.properties["listeners"]
        behind = dict(listener.split("://") for listener in told.split(","))
        for name in ("NODES", "CONTROLLER"):
            port, port_behind = parse_address(behind[name]).port, free_port()
            links.open(self.node_id, port, port_behind)
            behind[name] = f"127.0.0.1:{port_behind}"
        self.properties["listeners"] = ",".join(f"{name}://{address}" for name, address in behind.items())
        self.properties["advertised.listeners"] = told


class DividedCluster(TorturedCluster):
    """What is done to links of any kind."""

    links: Links | Network

    @property
    def faults(self) -> dict[str, Fault]:
        return {
            "cut the leader off": lambda load: self.cut_off(load, self.leader(), both_ways),
            "cut a follower off": lambda load: self.cut_off(load, self.follower(), both_ways),
            "cut the controller off": lambda load: self.cut_off(load, self.nodes.leader(), both_ways),
            "the leader hears nothing": lambda load: self.cut_off(load, self.leader(), to),
            "the leader is not heard": lambda load: self.cut_off(load, self.leader(), of),
            "a follower hears nothing": lambda load: self.cut_off(load, self.follower(), to),
            "a follower is not heard": lambda load: self.cut_off(load, self.follower(), of),
            "the controller hears nothing": lambda load: self.cut_off(load, self.nodes.leader(), to),
            "the controller is not heard": lambda load: self.cut_off(load, self.nodes.leader(), of),
            "two do not reach each other": self.divide_two,
            "a leader that is cut off is killed": self.cut_and_kill,
        }

    def heal(self) -> None:
        self.links.mend()
        super().heal()

    def cut_off(self, load: Load, node_id: int, links_of: Callable[[int], list[Link]]) -> None:
        """Have a node hear nothing, not be heard, or both."""
        alone = Minority(self.addresses, self.node(node_id), self.users)
        self.cut(load, links_of(node_id), alone)

    def cut(self, load: Load, links: Iterable[Link], alone: Minority | None = None) -> None:
        """The others go on meanwhile, if there is time for it."""
        cut_s = self.dice.choice(CUT_S)
        self.links.cut(links)
        mend_at = time.monotonic() + cut_s
        if alone:
            self.notes["writes refused by a node that was cut off"] += alone.refuses_to_write()
        time.sleep(max(0, mend_at - time.monotonic()))
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


class ProxiedCluster(DividedCluster):
    """Its nodes reach each other through proxies."""

    node_class = LinkedNode
    links: Links

    def __init__(
        self, folder: Path, dice: random.Random, links: Links, security: Security | None = None
    ) -> None:
        super().__init__(folder, dice, security=security)
        self.links = links
        for node in self.nodes:
            assert isinstance(node, LinkedNode)
            node.link(links)

    @property
    def faults(self) -> dict[str, Fault]:
        return {**super().faults, "links are slow": self.slow_down, "connections drop": self.drop}

    def slow_down(self, load: Load) -> None:
        self.links.slow_down(self.dice.choice((0.02, 0.2)))
        load.wait_for(RECORDS_A_ROUND)

    def drop(self, load: Load) -> None:
        for _ in range(5):
            self.links.drop()
            load.wait_for(RECORDS_A_ROUND // 5)


class RoutedCluster(DividedCluster):
    """Its nodes are on hosts of their own."""

    links: Network

    def __init__(self, folder: Path, dice: random.Random, network: Network) -> None:
        super().__init__(folder, dice, network)
        self.links = network

    @property
    def faults(self) -> dict[str, Fault]:
        return {
            **super().faults,
            "the links of a node are slow": self.slow_down,
            "followers do not reach their leader": self.keep_followers_away,
            "clients do not reach the leader": self.keep_clients_away,
        }

    def slow_down(self, load: Load) -> None:
        """Others put it out of sync, or wait for it."""
        bits_per_s = self.dice.choice((50_000, 1_000_000))
        for source, target in both_ways(self.dice.choice(NODES)):
            self.links.slow(source, target, bits_per_s)
        time.sleep(self.dice.choice(CUT_S))
        self.links.mend()
        load.wait_for(RECORDS_A_ROUND)

    def keep_followers_away(self, load: Load) -> None:
        """The controllers hear of the leader, so it stays leader; but without followers it may not write."""
        leader = self.leader()
        alone = Minority(self.addresses, self.node(leader), self.users)
        for source, target in to(leader):
            self.links.drop(source, target, self.node(leader).port)
        self.notes["writes refused by a leader without followers"] += alone.refuses_to_write()
        time.sleep(self.dice.choice(CUT_S))
        self.links.mend()
        load.wait_for(RECORDS_A_ROUND)

    def keep_clients_away(self, load: Load) -> None:
        self.links.drop(OUTSIDE, self.leader())
        time.sleep(self.dice.choice(CUT_S))
        self.links.mend()
        load.wait_for(RECORDS_A_ROUND)


def of(node_id: int) -> list[Link]:
    """The links from a node to all others."""
    return [link for link in permutations(NODES, 2) if link[0] == node_id]


def to(node_id: int) -> list[Link]:
    """The links to a node from all others."""
    return [link for link in permutations(NODES, 2) if link[1] == node_id]


def both_ways(node_id: int) -> list[Link]:
    return [*of(node_id), *to(node_id)]


class TestADividedNetworkCostsNothingThatWasAcknowledged:
    pytestmark = MARKS

    @IN_LONG_FORM
    def test_where_packets_are_lost(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        if reason := why_not():
            tell(capsys, f"no packets are lost here, and the proxies alone are tried: {reason}")
            pytest.skip(reason)
        with Network(NODES) as network:
            cluster = RoutedCluster(tmp_path, random.Random(SEED), network)
            assert torture(cluster, cluster.faults, capsys) == {}

    def test_behind_proxies(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with Links(lambda: cluster.pids) as links:
            cluster = ProxiedCluster(tmp_path, random.Random(SEED), links)
            assert torture(cluster, cluster.faults, capsys) == {}

    @IN_LONG_FORM
    def test_behind_proxies_between_secured_nodes(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        security = Security(tmp_path, NODES)
        with Links(lambda: cluster.pids) as links:
            cluster = ProxiedCluster(tmp_path, random.Random(SEED), links, security)
            assert torture(cluster, cluster.faults, capsys) == {}

    @IN_LONG_FORM
    def test_a_leader_that_is_not_alone_and_writes_is_found(self, tmp_path: Path) -> None:
        cluster = TorturedCluster(tmp_path, random.Random(SEED))
        with cluster.nodes:
            minorities = [Minority(cluster.addresses, node) for node in cluster.nodes]
            with pytest.raises(AssertionError, match="was alone, and wrote"):
                for one in minorities:
                    one.refuses_to_write()
