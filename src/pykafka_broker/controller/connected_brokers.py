"""Which brokers are connected to the controller of this node.

A connection counts as a broker's once it carries a heartbeat or a fetch of the metadata log. A node that does
not lead notes connections as well, because the next election may make it the leader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol


class NotedConnection(Protocol):
    """A connection of a listener of controllers."""

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is lost."""
        ...


class ConnectedBrokers:
    """`tell(node_id, is_connected)` is called when the first connection of a node comes, and when its last
    one ends.
    """

    def __init__(self, tell: Callable[[int, bool], None]) -> None:
        self._tell = tell
        self._open: dict[int, set[NotedConnection]] = {}

    @property
    def node_ids(self) -> Iterable[int]:
        """The nodes that are connected now."""
        return tuple(self._open)

    def note(self, node_id: int, connection: NotedConnection) -> None:
        """A request of this node has come in on the connection; readers with an id below 0 are not nodes."""
        if node_id < 0:
            return
        known = self._open.get(node_id)
        if known is None:
            self._open[node_id] = {connection}
            self._tell(node_id, True)
        elif connection in known:
            return
        else:
            known.add(connection)
        connection.on_close(partial(self._on_close, node_id, connection))

    def _on_close(self, node_id: int, connection: NotedConnection) -> None:
        known = self._open[node_id]
        known.discard(connection)
        if not known:
            del self._open[node_id]
            self._tell(node_id, False)
