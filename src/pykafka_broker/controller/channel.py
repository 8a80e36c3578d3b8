"""Requests of a cluster's nodes to the active controller, whichever node that is.

A request is an event of the controller (`controller/core/events.py`), its answer the result of the event.
`ControllerChannel` has what a node asks for itself: its broker's registration and heartbeats, producer ids,
topics on demand. `controller/role.py` is the controller of this very node, `remote_channel.py` beside this
file asks the one of another node over its connection, and `controller/nearest_channel.py` whichever of the
two is active; callers see no difference. `ClusterAdministration` has what clients ask for: only the active
controller in this process implements it, for requests of clients are forwarded as a whole where it is
elsewhere (`apis/forwarding.py`).

Every answer of a local controller comes when the change is committed and this node has published it, so a
client that asks the same node next sees it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol, Union

from pykafka_broker.controller.core.events import Event
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.raft.core.messages import AddVoter, ChangeAnswer, RemoveVoter
from pykafka_broker.raft.quorum_description import QuorumDescription
from pykafka_broker.system.named_tuple import NamedTuple


class Requester(NamedTuple):
    """The client that asks for a change: its principal, as "User:alice", and its address."""

    principal: str
    host: str

    def __str__(self) -> str:
        return f"{self.principal} at {self.host}"


class ControllerChannel(Protocol):
    """Asks the active controller for what a node wants for itself."""

    async def ask(self, event: Event, timeout_ms: int | None = None) -> Any:
        """The result of an event, as its class describes it.

        Raises:
            KafkaError: the event was refused as a whole, no controller is active (NOT_CONTROLLER), or
                `timeout_ms` have passed (REQUEST_TIMED_OUT): the change may still happen then, unless no time
                was left from the beginning.
        """
        ...


class ClusterAdministration(Protocol):
    """The controller of this node, for what clients ask."""

    async def ask(
        self, event: Event, timeout_ms: int | None = None, requester: Requester | None = None
    ) -> Any:
        """As in `ControllerChannel`; the log of the controller names the requester."""
        ...

    async def change_voters(self, request: Union[AddVoter, RemoveVoter]) -> ChangeAnswer:
        """The answer of the leader to a change of the voters, which may be a refusal."""
        ...

    async def describe_quorum(self) -> QuorumDescription:
        """The metadata quorum as its leader sees it now."""
        ...


class LedHere(Exception):
    """The active controller is in this process now: it is asked without a connection."""


async def each_result(event: Any, asked: Awaitable[Any]) -> Any:
    """The results of an event that has one for each item, from `ask`: those of `event.refused` where it was
    refused as a whole.
    """
    try:
        return await asked
    except KafkaError as error:
        return event.refused(error)
