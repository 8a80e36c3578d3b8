"""A node is connected from its first connection on, until its last one ends."""

from __future__ import annotations

from collections.abc import Callable

from pykafka_broker.controller.connected_brokers import ConnectedBrokers


class Connection:
    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []

    def on_close(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def end(self) -> None:
        for callback in self._callbacks:
            callback()


def test_the_first_connection_and_the_end_of_the_last_one_are_told() -> None:
    told: list[tuple[int, bool]] = []
    connections = ConnectedBrokers(lambda node_id, is_connected: told.append((node_id, is_connected)))
    heartbeats, fetches = Connection(), Connection()

    for connection in (heartbeats, fetches, heartbeats):
        connections.note(2, connection)
    assert (told, connections.node_ids) == ([(2, True)], (2,))

    heartbeats.end()
    assert told == [(2, True)]
    fetches.end()
    assert (told, connections.node_ids) == ([(2, True), (2, False)], ())

    connections.note(2, Connection())
    assert told[2:] == [(2, True)]


def test_nodes_are_counted_apart_on_a_connection_that_two_of_them_use() -> None:
    told: list[tuple[int, bool]] = []
    connections = ConnectedBrokers(lambda node_id, is_connected: told.append((node_id, is_connected)))
    shared = Connection()
    connections.note(2, shared)
    connections.note(3, shared)
    shared.end()
    assert told == [(2, True), (3, True), (2, False), (3, False)]
