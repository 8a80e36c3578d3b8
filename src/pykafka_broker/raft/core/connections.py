"""Which replicas are asked something now: one request at a time each, and a pause after one that failed.

A request that is not answered in time counts as failed, and its late answer as never come: answers are known
by the number of their request.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykafka_broker.system.named_tuple import NamedTuple


class Connection(NamedTuple):
    """Busy until `until_ms`: a request waits for its answer, or (`request_id` None) the next one waits."""

    until_ms: int
    request_id: int | None


class Connections(NamedTuple):
    """The busy ones by node id; `next_id` numbers the requests."""

    next_id: int = 1
    busy: Mapping[int, Connection] = {}

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

    def sent(self, node_id: int, until_ms: int) -> Connections:
        """A request with the id `next_id` is on its way."""
        return Connections(self.next_id + 1, {**self.busy, node_id: Connection(until_ms, self.next_id)})

    def answered(self, node_id: int) -> Connections:
        """The next request may follow."""
        return self._replace(busy={node: busy for node, busy in self.busy.items() if node != node_id})

    def failed(self, node_id: int, retry_ms: int) -> Connections:
        """The next request has to wait."""
        return self._replace(busy={**self.busy, node_id: Connection(retry_ms, None)})

    def at(self, now_ms: int, retry_backoff_ms: int) -> Connections:
        """What has become of them by now: pauses are over; requests are given up, and a pause follows."""
        if all(connection.until_ms > now_ms for connection in self.busy.values()):
            return self
        busy = {}
        for node_id, connection in self.busy.items():
            if connection.until_ms > now_ms:
                busy[node_id] = connection
            elif connection.request_id is not None:
                busy[node_id] = Connection(now_ms + retry_backoff_ms, None)
        return self._replace(busy=busy)

    def all_closed(self) -> Connections:
        """No answer is waited for any more: it would be one to another role."""
        return Connections(self.next_id)
