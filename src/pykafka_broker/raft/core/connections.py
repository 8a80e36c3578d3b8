"""The connections to other replicas: one request at a time each, and a pause after a failed one.

A request without an answer in time has failed; a late answer is ignored, because answers carry the id of
their request. Silence and refusals are kept by address, because a bootstrap server may be a voter under
another id.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.raft.core.quorum import Address
from pykafka_broker.system.named_tuple import NamedTuple


class BusyConnection(NamedTuple):
    """Busy until `until_ms`: waiting for an answer, or pausing if `request_id` is None."""

    until_ms: int
    request_id: int | None = None
    #: Where the request went.
    address: Address = ("", 0)


class Connections(NamedTuple):
    """The busy connections by node id; `next_id` numbers the requests.

    `silent` has the addresses whose last request got no answer, each with the time until which other servers
    are asked first. `refused` has the addresses that refused connections during this role.
    """

    next_id: int = 1
    busy: Mapping[int, BusyConnection] = {}
    silent: Mapping[Address, int] = {}
    refused: frozenset[Address] = frozenset()

    def is_ready(self, node_id: int) -> bool:
        """Whether a request may be sent now."""
        return node_id not in self.busy

    def is_waiting(self) -> bool:
        """Whether any request waits for its answer."""
        return any(connection.request_id is not None for connection in self.busy.values())

    def expects(self, node_id: int, request_id: int) -> bool:
        """Whether this request still waits for its answer."""
        connection = self.busy.get(node_id)
        return connection is not None and connection.request_id == request_id

    def is_silent(self, address: Address, now_ms: int) -> bool:
        """Whether other servers are asked before the one at this address."""
        return self.silent.get(address, now_ms) > now_ms

    def sent(self, node_id: int, address: Address, until_ms: int) -> Connections:
        """A request with the id `next_id` is on its way."""
        connection = BusyConnection(until_ms, self.next_id, address)
        return self._replace(next_id=self.next_id + 1, busy={**self.busy, node_id: connection})

    def heard(self, node_id: int) -> Connections:
        """The replica that was asked has answered."""
        address = self.busy[node_id].address
        silent = self.silent
        if address in silent:
            silent = {other: until_ms for other, until_ms in silent.items() if other != address}
        return self._replace(silent=silent, refused=self.refused - {address})

    def refused_by(self, node_id: int) -> Connections:
        """The replica's address refused the connection."""
        return self._replace(refused=self.refused | {self.busy[node_id].address})

    def unheard(self, node_id: int, now_ms: int, silence_ms: int) -> Connections:
        """The connection to a replica broke, or no answer came in time: other servers are asked first now."""
        address = self.busy[node_id].address
        silent = {other: until_ms for other, until_ms in self.silent.items() if until_ms > now_ms}
        silent[address] = now_ms + silence_ms
        return self._replace(silent=silent, refused=self.refused - {address})

    def freed(self, node_id: int) -> Connections:
        """The next request may follow."""
        return self._replace(busy={node: busy for node, busy in self.busy.items() if node != node_id})

    def paused(self, node_id: int, until_ms: int) -> Connections:
        """The next request has to wait."""
        return self._replace(busy={**self.busy, node_id: BusyConnection(until_ms)})

    def at(self, now_ms: int, retry_backoff_ms: int, silence_ms: int) -> Connections:
        """The connections at `now_ms`: pauses have ended, and timed-out requests have turned into pauses."""
        connections = self
        for node_id, connection in self.busy.items():
            if connection.until_ms > now_ms:
                continue
            if connection.request_id is None:
                connections = connections.freed(node_id)
            else:
                connections = connections.unheard(node_id, now_ms, silence_ms)
                connections = connections.paused(node_id, now_ms + retry_backoff_ms)
        return connections

    def all_closed(self) -> Connections:
        """The connections of a new role: no request waits, because answers would be to the former role."""
        return Connections(self.next_id, silent=self.silent)
