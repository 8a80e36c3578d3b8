"""Requests of a cluster's nodes to the active controller.

A request is an event of the controller (`controller/core/events.py`), its answer the result of the event.
`ControllerChannel` is for a node's own requests: its broker's registration and heartbeats, producer ids,
topics created on demand. `role.py` implements it for the controller of this node, `remote_channel.py` for a
controller on another node, and `nearest_channel.py` chooses between the two. `ClusterAdministration` is for
the requests of clients. Only the active controller in this process implements it: if the active controller
is on another node, requests of clients are forwarded as a whole (`apis/forwarding.py`).

`PublishedImages` is the metadata that these requests go by.

The local controller answers when the change is committed and this node has published it, so the next request
to this node sees the change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, Union

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.controller.core.events import Event
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.raft.core.messages import AddVoter, ChangeAnswer, RemoveVoter
from pykafka_broker.raft.quorum_description import QuorumDescription
from pykafka_broker.system.named_tuple import NamedTuple


class ChangeRequester(NamedTuple):
    """The client that asks for a change: its principal, as "User:alice", and its address."""

    principal: str
    host: str

    def __str__(self) -> str:
        return f"{self.principal} at {self.host}"


class ControllerChannel(Protocol):
    """Sends a node's own requests to the active controller."""

    async def ask(self, event: Event, timeout_ms: int | None = None) -> Any:
        """The result of an event, as its class describes it.

        Raises:
            KafkaError: the event was refused as a whole, no controller is active (NOT_CONTROLLER), or
                `timeout_ms` have passed (REQUEST_TIMED_OUT). After a timeout the change may still happen,
                unless `timeout_ms` was 0 or less.
        """
        ...


class ClusterAdministration(Protocol):
    """The controller of this node, for the requests of clients."""

    @property
    def is_active(self) -> bool:
        """Whether it decides: this node leads the metadata log, and has read what earlier leaders wrote."""
        ...

    async def ask(
        self, event: Event, timeout_ms: int | None = None, requester: ChangeRequester | None = None
    ) -> Any:
        """As in `ControllerChannel`; the log of the controller names the requester."""
        ...

    async def change_voters(self, request: Union[AddVoter, RemoveVoter]) -> ChangeAnswer:
        """The answer of the leader to a change of the voters, which may be a refusal."""
        ...

    async def describe_quorum(self) -> QuorumDescription:
        """The metadata quorum as its leader sees it now."""
        ...


class PublishedImages(Protocol):
    """The metadata that this node has published."""

    @property
    def image(self) -> ClusterImage:
        """The newest committed metadata."""
        ...

    def subscribe(self, subscriber: Callable[[ClusterImage, ClusterImage], None]) -> Callable[[], None]:
        """Call `subscriber(old, new)` whenever an image is published. Returns how to unsubscribe."""
        ...


class LedHere(Exception):
    """The active controller is in this process now: it is asked without a connection."""


async def each_result(event: Any, asked: Awaitable[Any]) -> Any:
    """The results of an event, one for each item: those of `event.refused` if `asked` raises KafkaError."""
    try:
        return await asked
    except KafkaError as error:
        return event.refused(error)
