"""Whether the requests of clients go to another node's active controller, and its answers.

The handlers' port `Forwarding` (`apis/ports/forwarding.py`); the envelopes are `apis/forwarding.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pykafka_broker.controller.channel import LedHere
from pykafka_broker.controller.role import ControllerRole
from pykafka_broker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from pykafka_broker.raft.quorum_description import QuorumDescription

if TYPE_CHECKING:
    from pykafka_broker.controller.leader_connection import LeaderConnection


class NoForwarding:
    """The active controller is always in this process, because the node is the only voter."""

    is_needed = False

    def lost_quorum(self) -> None:
        """None, because this node alone is a majority."""
        return

    async def ask(self, envelope: EnvelopeRequest) -> EnvelopeResponse:
        """Raises LedHere."""
        raise LedHere


class ForwardingConnection:
    """The active controller may be on another node, at the other end of `connection`.

    `lost_quorum` describes the quorum if it has lost its leader.
    """

    def __init__(
        self,
        role: ControllerRole | None,
        connection: LeaderConnection,
        lost_quorum: Callable[[], QuorumDescription | None],
    ) -> None:
        self._role = role
        self._connection = connection
        self.lost_quorum = lost_quorum

    @property
    def is_needed(self) -> bool:
        """Whether the active controller is not in this process."""
        return self._role is None or not self._role.is_active

    async def ask(self, envelope: EnvelopeRequest) -> EnvelopeResponse:
        """The controller's answer."""
        answer: EnvelopeResponse = await self._connection.ask(envelope)
        return answer
