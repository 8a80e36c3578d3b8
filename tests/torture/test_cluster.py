"""Three nodes, processes of their own, under load, and faults of nodes at random from one seed.

Nodes are killed, frozen, slowed down, restarted one after the other, lose their disk or its space, and two of
three are down at once.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from tests.torture.clients import Load
from tests.torture.history import Value
from tests.torture.minority import Minority
from tests.torture.security import Security
from tests.torture.stranger import ATTEMPTS, Stranger, wrong_answers
from tests.torture.streams_application import copy_anomalies
from tests.torture.tortured_cluster import (
    MARKS,
    NODES,
    RECORDS_A_ROUND,
    SEED,
    Fault,
    TorturedCluster,
    share_of,
    torture,
)
from tests.torture.transfers import transfer_anomalies


class FaultyNodes(TorturedCluster):
    """What is done to the nodes."""

    @property
    def faults(self) -> Mapping[str, Fault]:
        return {
            "kill the leader": lambda load: self.kill(load, self.leader()),
            "kill a follower": lambda load: self.kill(load, self.follower()),
            "kill the controller": lambda load: self.kill(load, self.nodes.leader()),
            "freeze the leader": lambda load: self.freeze(load, self.leader()),
            "freeze a follower": lambda load: self.freeze(load, self.follower()),
            "freeze the controller": lambda load: self.freeze(load, self.nodes.leader()),
            "restart all in turn": self.restart_in_turn,
            "two of three down": self.two_down,
            "empty a disk": self.empty_disk,
            "fill a disk": self.fill_disk,
            "slow a node down": self.slow_down,
        }

    def kill(self, load: Load, node_id: int) -> None:
        self.nodes[node_id].kill()
        load.wait_for(RECORDS_A_ROUND)

    def freeze(self, load: Load, node_id: int) -> None:
        """Longer than its session, or shorter."""
        node = self.nodes[node_id]
        assert node.process is not None
        node.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(self.dice.choice((0.2, 1.0, 4.0)))
        finally:
            node.process.send_signal(signal.SIGCONT)
        load.wait_for(RECORDS_A_ROUND)

    def restart_in_turn(self, load: Load) -> None:
        self.restart_all()
        load.wait_for(RECORDS_A_ROUND)

    def two_down(self, load: Load) -> None:
        """The third acknowledges nothing that is sent then, and everything goes on afterwards."""
        *others, third = self.dice.sample(NODES, len(NODES))
        alone = Minority(self.addresses, self.node(third), self.users)
        for node_id in others:
            self.nodes[node_id].kill()
        self.notes["writes refused by one of three"] += alone.refuses_to_write()
        time.sleep(self.dice.uniform(0.2, 2.0))
        self.heal()
        load.wait_for(RECORDS_A_ROUND)

    def empty_disk(self, load: Load) -> None:
        """Its replicas begin anew, and get their records from their leaders."""
        node = self.node(self.dice.choice(NODES))
        node.kill()
        load.wait_for(RECORDS_A_ROUND)
        node.lose_disk()
        node.start()
        load.wait_for(RECORDS_A_ROUND)

    def fill_disk(self, load: Load) -> None:
        node = self.node(self.dice.choice(NODES))
        node.full.touch()
        try:
            load.wait_for(RECORDS_A_ROUND)
            time.sleep(1)
        finally:
            node.full.unlink()
        load.wait_for(RECORDS_A_ROUND)

    def slow_down(self, load: Load) -> None:
        """It runs for a tenth of the time."""
        process = self.nodes[self.dice.choice(NODES)].process
        assert process is not None
        for _ in range(20):
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.09)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
        load.wait_for(RECORDS_A_ROUND)


class SecuredNodes(FaultyNodes):
    """What is done to nodes that ask who comes."""

    NEW_SECRETS = "new certificates and passwords"
    security: Security

    def __init__(self, folder: Path, dice: random.Random) -> None:
        super().__init__(folder, dice, security=Security(folder, NODES))

    @property
    def faults(self) -> Mapping[str, Fault]:
        return {**share_of(super().faults, 1), self.NEW_SECRETS: self.change_secrets}

    def change_secrets(self, load: Load) -> None:
        """Who is connected goes on; who connects to the leader when it is back comes with what is new."""
        self.security.replace_certificates(self.nodes)
        load.wait_for(RECORDS_A_ROUND)
        self.security.change_passwords(self.nodes)
        load.wait_for(RECORDS_A_ROUND)
        self.kill(load, self.leader())


class TestFaultsOfNodes:
    pytestmark = MARKS

    def test_they_cost_nothing_that_was_acknowledged(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        cluster = FaultyNodes(tmp_path, random.Random(SEED))
        assert torture(cluster, share_of(cluster.faults, 0), capsys) == {}

    def test_a_secured_cluster_loses_nothing_either_and_a_stranger_gets_nothing(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        cluster = SecuredNodes(tmp_path, random.Random(SEED))
        addresses = {node.node_id: node.address for node in cluster.nodes}
        with Stranger(cluster.security, addresses) as stranger:
            assert torture(cluster, cluster.faults, capsys, first=cluster.NEW_SECRETS) == {}
        assert wrong_answers(NODES, stranger.answers) == {}


def test_whole_transactions_are_right() -> None:
    found = {0: [1, 3], 1: [1, 3]}
    assert transfer_anomalies({1: "committed", 2: "aborted", 3: "unknown", 4: "unknown"}, found) == {}


def test_each_wrong_outcome_of_a_transaction_is_named() -> None:
    outcomes = {1: "committed", 2: "aborted", 3: "committed", 4: "committed"}
    found = {0: [2, 3, 3, 4, 9], 1: [2, 3]}
    assert transfer_anomalies(outcomes, found) == {  # type: ignore[arg-type]
        "lost": [1],
        "not aborted": [2],
        "twice": [3],
        "half": [4],
        "phantom": [9],
    }


def test_a_copy_holds_each_acknowledged_record_once_and_perhaps_others() -> None:
    first, second, unknown = Value(0, 0), Value(0, 1), Value(1, 0)
    assert copy_anomalies([first, second], Counter([first, second, unknown])) == {}
    assert copy_anomalies([first, second], Counter([second, second])) == {
        "missed": [first],
        "twice": [second],
    }


def test_a_stranger_who_is_refused_everything_everywhere_is_right() -> None:
    refused = ((node_id, attempt.__name__, code) for node_id in NODES for attempt, code in ATTEMPTS.items())
    assert wrong_answers(NODES, refused) == {}


def test_what_a_stranger_gets_and_what_was_never_refused_is_named() -> None:
    refused = [(1, attempt.__name__, code) for attempt, code in ATTEMPTS.items()]
    assert wrong_answers([1], [*refused[1:], (1, "write", ErrorCode.NONE)]) == {
        "answered": [(1, "write", ErrorCode.NONE)],
        "never refused": [(1, "write", ErrorCode.TOPIC_AUTHORIZATION_FAILED)],
    }
