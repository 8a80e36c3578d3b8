"""Who a connection goes by: from its transport to an identity, and from one identity to the next."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis import APIS
from pykafka_broker.client.frames import request_frame
from pykafka_broker.network.authentication import Identifiable, Identity
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.sasl import Sasl
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.transports import TransportPeer
from pykafka_broker.protocol.messages.heartbeat import HeartbeatResponse
from pykafka_broker.protocol.messages.list_groups import ListGroupsResponse
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka_broker.sasl.exchange import OfferedMechanism
from pykafka_broker.testing.clock import VirtualClock
from tests.support.serving import HEARTBEAT, LIST_GROUPS, Served, apis, frame


class StepByStep:
    """Lets a peer ask for one thing only until it is told who the peer is."""

    def __init__(self, before: Dispatch) -> None:
        self.begun: list[tuple[Dispatch, TransportPeer]] = []
        self.connection: Identifiable
        self._before = before

    def begin(self, connection: Identifiable, dispatch: Dispatch, peer: TransportPeer) -> Identity:
        self.begun.append((dispatch, peer))
        self.connection = connection
        return Identity("User:unauthenticated", self._before)


async def test_authentication_begins_when_the_transport_opens_with_what_that_knows_of_the_peer() -> None:
    served = Dispatch(apis())
    authentication = StepByStep(Dispatch([]))

    client = Served(dispatch=served, authentication=authentication)

    assert authentication.begun == [(served, TransportPeer(certificate=None))]
    assert client.connection.principal == "User:unauthenticated"


async def test_a_peer_uses_the_routes_of_its_identity_and_the_next_request_those_of_the_next() -> None:
    principals: list[str] = []

    def log_in(request: Any, ctx: Any) -> HeartbeatResponse:
        principals.append(ctx.principal)
        authentication.connection.identify(Identity("User:alice", served))
        return HeartbeatResponse(error_code=0)

    def list_groups(request: Any, ctx: Any) -> ListGroupsResponse:
        principals.append(ctx.principal)
        return ListGroupsResponse(error_code=0, groups=[])

    authentication = StepByStep(Dispatch(apis(heartbeat=log_in)))
    served = Dispatch(apis(list_groups=list_groups))
    client = Served(dispatch=served, authentication=authentication)

    client.send(HEARTBEAT, LIST_GROUPS)

    assert client.answered() == [1, 2]
    assert principals == ["User:unauthenticated", "User:alice"]


async def test_a_peer_that_asks_for_more_than_its_identity_allows_loses_its_connection() -> None:
    served = Dispatch(apis(list_groups=lambda request, ctx: ListGroupsResponse(error_code=0, groups=[])))
    client = Served(dispatch=served, authentication=StepByStep(Dispatch(apis())))

    client.send(LIST_GROUPS)

    assert client.answered() == []
    assert client.transport.closing


class Broken:
    """A mechanism with a fault of ours."""

    account = None

    def respond(self, token: bytes) -> bytes:
        raise ZeroDivisionError


async def test_a_fault_while_a_bare_token_is_read_costs_its_connection_and_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = VirtualClock()
    shared = Shared(clock)
    offer = {"BROKEN": OfferedMechanism(Broken)}
    sasl = Sasl(offer, shared.clock, shared.faults, max_receive_bytes=1_000, failure_delay_ms=100)
    dispatch: Dispatch[Any] = Dispatch(APIS)
    for _ in range(3):
        client = Served(clock, shared=shared, dispatch=dispatch, authentication=sasl)
        client.transport.feed(request_frame(SaslHandshakeRequest(mechanism="BROKEN"), 0))
        answered = len(client.transport.written)
        client.transport.feed(frame(b"a token"))
        client.clock.advance(100)
        assert (len(client.transport.written), client.transport.closing) == (answered, True)

    assert shared.counters.handler_failures == 3
    assert [record.exc_info is not None for record in caplog.records] == [True]


async def test_a_peer_is_told_of_all_that_its_listener_serves_before_it_may_use_it() -> None:
    served = Dispatch(apis(heartbeat=lambda request, ctx: HeartbeatResponse(error_code=0)))

    client = Served(dispatch=served, authentication=StepByStep(Dispatch(apis())))

    assert [api.name for api in client.connection.served_apis] == ["ApiVersions", "Heartbeat"]
