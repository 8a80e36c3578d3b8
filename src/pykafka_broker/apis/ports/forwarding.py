"""The port of handlers to the active controller of another node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pykafka_broker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
    from pykafka_broker.raft.quorum_description import QuorumDescription


class Forwarding(Protocol):
    """Passes requests of clients on to the active controller."""

    @property
    def is_needed(self) -> bool:
        """Whether the active controller is not in this process."""
        ...

    def lost_quorum(self) -> QuorumDescription | None:
        """What this node knows of the quorum if it is sure that there is no leader: too few controllers are
        left, or none has answered for a session timeout; else None.
        """
        ...

    async def ask(self, envelope: EnvelopeRequest) -> EnvelopeResponse:
        """The controller's answer, NOT_CONTROLLER excepted.

        Raises:
            LedHere: the active controller is in this process now.
            KafkaError: REQUEST_TIMED_OUT, no controller has answered in time; UNSUPPORTED_VERSION, the
                controller does not know Envelope; NOT_CONTROLLER, this node is stopping.
        """
        ...
