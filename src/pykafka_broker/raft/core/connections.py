"""Which replicas are asked something now: one request at a time each, and a pause after one that failed.

A request that is not answered in time counts as failed, and its late answer as never come: answers are known
by the number of their request. How replicas took the last request is known by their addresses, for a
bootstrap server may be a voter under another id.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.raft.core.quorum import Address
from pykafka_broker.system.named_tuple import NamedTuple


class Connection(NamedTuple):
    """Busy until `until_ms`: a request waits for its answer, or (`request_id` None) the next one waits."""

    until_ms: int
    request_id: int | None = None
    #: Where the request went.
    address: Address = ("", 0)


class Connections(NamedTuple):
    """The busy ones by node id; `next_id` numbers the requests.

    `silent` has the addresses of which the last request got no answer, until when others are asked first;
    `refused` those at which nothing listens, as far as this role has seen.
    """

    next_id: int = 1
    busy: Mapping[int, Connection] = {}
    silent: Mapping[Address, int] = {}
    refused: frozenset[Address] = frozenset()

    def is_ready(self, node_id: int) -> bool:
        """Whether a request may be sent now."""
        return node_id not in self.busy

    def is_waiting(self) -> bool:
        """Whether any request waits for its answer."""
        return any(connection.request_id is not None for connection in self.busy.values())

    def expects(self, node_id: int, request_id: int) -> bool:
        """Whether this answer has been waited for."""
        connection = self.busy.get(node_id)
        return connection is not None and connection.request_id == request_id

    def is_silent(self, address: Address, now_ms: int) -> bool:
        """Whether others are asked first."""
        return self.silent.get(address, now_ms) > now_ms

    def sent(self, node_id: int, address: Address, until_ms: int) -> Connections:
        """A request with the id `next_id` is on its way."""
        connection = Connection(until_ms, self.next_id, address)
        return self._replace(next_id=self.next_id + 1, busy={**self.busy, node_id: connection})

    def heard(self, node_id: int) -> Connections:
        """The replica that was asked has answered."""
        address = self.busy[node_id].address
        silent = self.silent
        if address in silent:
            silent = {other: until_ms for other, until_ms in silent.items() if other != address}
        return self._replace(silent=silent, refused=self.refused - {address})

    def refused_by(self, node_id: int) -> Connections:
        """Nothing listens where a replica was asked."""
        return self._replace(refused=self.refused | {self.busy[node_id].address})

    def unheard(self, node_id: int, now_ms: int, silence_ms: int) -> Connections:
        """The connection to a replica broke, or it said nothing in time: others are asked first now."""
        address = self.busy[node_id].address
        silent = {other: until_ms for other, until_ms in self.silent.items() if until_ms > now_ms}
        silent[address] = now_ms + silence_ms
        return self._replace(silent=silent, refused=self.refused - {address})

    def freed(self, node_id: int) -> Connections:
        """The next request may follow."""
        return self._replace(busy={node: busy for node, busy in self.busy.items() if node != node_id})

    def paused(self, node_id: int, until_ms: int) -> Connections:
        """The next request has to wait."""
        return self._replace(busy={**self.busy, node_id: Connection(until_ms)})

    def at(self, now_ms: int, retry_backoff_ms: int, silence_ms: int) -> Connections:
        """What has become of them by now: pauses are over; requests are given up, and a pause follows."""
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
        """No answer is waited for any more: it would be one to another role."""
        return Connections(self.next_id, silent=self.silent)
