"""One of several nodes is killed in the middle of the scenarios that stand it, and the result says so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self, cast

from interop.clients.client import Client
from interop.run import KILLED, Results, Scenario, load_matrix, run_matrix
from interop.world import World

PATIENCE_S = 30


class Nodes:
    """Three nodes, of which one is killed and started."""

    folder = Path()
    address = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"
    pid = 1
    is_running = True

    def __init__(self) -> None:
        self.told: list[str] = []
        self.is_back = threading.Event()

    def kill(self) -> None:
        self.told.append("killed")

    def start(self) -> float:
        self.told.append("started")
        self.is_back.set()
        return 0

    def restart(self) -> None:
        raise AssertionError("nothing restarts it")

    def log_tail(self) -> str:
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None: ...


class Anyone:
    """A client whose topics can be used at once."""

    name = "anyone"

    def __init__(self) -> None:
        self.replication_factors: list[int] = []

    def can(self, _ability: str) -> bool:
        return True

    def create_topic(
        self, _name: str, _partitions: int, *, configs: dict[str, str], replication_factor: int
    ) -> None:
        self.replication_factors.append(replication_factor)

    def partitions(self, _topic: str) -> int:
        return 1

    def end(self, _topic: str, _partition: int) -> int:
        return 0


def ran(
    run: Callable[[World, Client], None],
    *,
    is_killed: bool = True,
    kills: bool = True,
    spared: Mapping[str, str] | None = None,
) -> tuple[str, Nodes, Results]:
    """The cell of a scenario, the nodes that it had, and the rest of the result."""
    nodes, client = Nodes(), cast("Client", Anyone())
    scenario = Scenario("data.it_runs", run, {}, is_killed=is_killed, spared=spared or {})
    results = run_matrix(World(nodes, {client.name: client}), [scenario], lambda _: None, kills=kills)
    return results.cells["data.it_runs"]["anyone"], nodes, results


def goes_on(world: World, client: Client) -> None:
    """Goes on while the node is killed and started, which happens once."""
    world.topic(client)
    assert cast("Nodes", world.broker).is_back.wait(PATIENCE_S)
    world.topic(client)


def test_a_node_is_killed_and_started_once_as_soon_as_the_first_topic_can_be_used() -> None:
    cell, nodes, results = ran(goes_on)

    assert cell == f"pass: {KILLED}"
    assert nodes.told == ["killed", "started"]
    assert results.failures == []


def test_scenarios_and_clients_that_do_not_stand_it_and_runs_without_kills_have_all_nodes() -> None:
    def makes_a_topic(world: World, client: Client) -> None:
        world.topic(client)
        assert cast("Anyone", client).replication_factors == [3]

    spared = {"anyone": "it is old"}
    for is_killed, kills, without in ((False, True, None), (True, False, None), (True, True, spared)):
        cell, nodes, _ = ran(makes_a_topic, is_killed=is_killed, kills=kills, spared=without)
        assert (cell, nodes.told) == ("pass", [])


def test_a_scenario_that_fails_meanwhile_is_told_with_the_kill() -> None:
    def fails(world: World, client: Client) -> None:
        world.topic(client)
        raise AssertionError("a record is lost")

    cell, nodes, results = ran(fails)

    assert cell == "fails: a record is lost"
    assert nodes.told == ["killed", "started"]
    [failure] = results.failures
    assert failure.startswith("it runs with anyone, a node killed meanwhile: a record is lost\n")


def test_a_scenario_without_a_middle_fails() -> None:
    cell, nodes, _ = ran(lambda world, client: None)

    assert cell == "fails: it has created no topic: no node was killed"
    assert nodes.told == []


def test_some_scenarios_of_the_matrix_stand_a_kill() -> None:
    stand_it = {scenario.name for scenario in load_matrix()[1] if scenario.is_killed}

    assert "groups.members_share_partitions_as_they_come_and_go" in stand_it
    assert not any(name.startswith("durability.") for name in stand_it), "they kill a node themselves"


def test_only_clients_of_the_matrix_are_spared_where_others_are_not() -> None:
    clients, scenarios = load_matrix()
    sparing = [scenario for scenario in scenarios if scenario.spared]

    assert sparing
    for scenario in sparing:
        assert scenario.is_killed, scenario.name
        assert set(scenario.spared) <= set(clients) - set(scenario.lacks), scenario.name
        assert all(scenario.spared.values()), scenario.name
