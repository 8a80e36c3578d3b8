"""Names the leader of a partition that this node does not lead, in the refusal (KIP-951).

Shared by Produce, Fetch, ShareFetch and ShareAcknowledge, each of whose messages declares the same two
structs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.apis.context import RequestContext

Leader = TypeVar("Leader")
Endpoint = TypeVar("Endpoint")


class Refused(Protocol[Leader]):
    """A partition's answer, which can name the leader."""

    current_leader: Leader | None


class RefusedOfShares(Protocol[Leader]):
    """The same for messages in which `current_leader` cannot be null."""

    current_leader: Leader


class LeaderHints(NamedTuple, Generic[Leader, Endpoint]):
    """`LeaderIdAndEpoch` and `NodeEndpoint` of one message."""

    leader: Callable[..., Leader]
    endpoint: Callable[..., Endpoint]

    def add(
        self,
        refused: Iterable[tuple[str | None, int, Refused[Leader] | RefusedOfShares[Leader]]],
        ctx: RequestContext,
    ) -> list[Endpoint]:
        """Set the leader in each answer, by topic and partition; return the endpoints of these leaders.

        A node that is cut off refuses partitions that it believes it leads
        (`LeadingReplica.check_controller`). It names no leader, so that clients ask other nodes.
        """
        endpoints: dict[int, Endpoint] = {}
        image = ctx.node.metadata.image
        for name, index, answer in refused:
            topic = image.topics.get(name) if name else None
            registration = topic.partitions.get(index) if topic else None
            if registration is None or name is None:
                continue
            led = ctx.node.partitions.led(name, index)
            if led is not None and led.is_cut_off:
                continue
            answer.current_leader = self.leader(
                leader_id=registration.leader, leader_epoch=registration.leader_epoch
            )
            address = ctx.node.metadata.advertised(registration.leader, ctx.connection)
            if address is not None:
                endpoints[registration.leader] = self.endpoint(
                    node_id=registration.leader, host=address[0], port=address[1]
                )
        return list(endpoints.values())
