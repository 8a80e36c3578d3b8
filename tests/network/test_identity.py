"""Who a connection goes by: from its transport to an identity, and from one identity to the next."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pykafka_broker.apis import APIS
from pykafka_broker.client.core.frames import request_frame
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.identity import Identifiable, Identity
from pykafka_broker.network.sasl_authentication import Sasl
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.transports import TransportPeer
from pykafka_broker.protocol.messages.heartbeat import HeartbeatResponse
from pykafka_broker.protocol.messages.list_groups import ListGroupsResponse
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka_broker.sasl.exchange import OfferedMechanism
from pykafka_broker.sasl.plain import PlainServer, plain_token
from pykafka_broker.system.repeated_lines import MOST_LINES
from pykafka_broker.testing.clock import VirtualClock
from tests.support.serving import HEARTBEAT, LIST_GROUPS, Served, apis, frame


class StepByStep:
    """Lets a peer ask for one thing only until it is told who the peer is."""

    def __init__(self, before: Dispatch[Any]) -> None:
        self.begun: list[tuple[Dispatch[Any], TransportPeer]] = []
        self.connection: Identifiable
        self._before = before

    def begin(self, connection: Identifiable, dispatch: Dispatch[Any], peer: TransportPeer) -> Identity:
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

    user = account = None

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


def fails(shared: Shared, token: bytes, mechanism: str = "PLAIN", host: str = "10.0.0.7") -> None:
    """A peer asks to log in, in vain."""
    offer = {"PLAIN": OfferedMechanism(lambda: PlainServer({"alice": "secret"}))}
    sasl = Sasl(offer, shared.clock, shared.faults, max_receive_bytes=10_000, failure_delay_ms=0)
    assert isinstance(shared.clock, VirtualClock)
    client = Served(shared.clock, shared=shared, dispatch=Dispatch(APIS), authentication=sasl)
    client.connection.peer_host = host
    client.transport.feed(request_frame(SaslHandshakeRequest(mechanism=mechanism), 0))
    client.transport.feed(frame(token))


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log says of logins, without the addresses."""
    lines = [r.getMessage() for r in caplog.records if r.name == "org.apache.kafka.common.network.Selector"]
    return [re.sub(r" with \S+-(\S+):\d+", r" with \1", line) for line in lines]


async def test_a_failed_login_names_the_user_the_mechanism_and_the_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shared = Shared(VirtualClock())
    fails(shared, plain_token("alice", "wrong"))
    fails(shared, plain_token("bob", "hunter2"), host="10.0.0.8")
    fails(shared, b"no token")
    fails(shared, b"", mechanism="GSSAPI")

    why = "Authentication failed: Invalid username or password"
    assert told(caplog) == [
        f"Failed authentication with 10.0.0.7 as user alice by PLAIN ({why})",
        f"Failed authentication with 10.0.0.8 as user bob by PLAIN ({why})",
        "Failed authentication with 10.0.0.7 as an unknown user by PLAIN "
        "(Invalid SASL/PLAIN response: expected 3 tokens, got 1)",
        "Failed authentication with 10.0.0.7 as an unknown user by GSSAPI (Unsupported SASL mechanism)",
    ]
    assert "hunter2" not in caplog.text


async def test_a_login_that_fails_again_and_again_is_a_line_with_a_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = VirtualClock()
    shared = Shared(clock)
    for _ in range(5):
        fails(shared, plain_token("alice", "wrong"))
    clock.advance(10_000)
    fails(shared, plain_token("alice", "wrong"))
    assert len(told(caplog)) == 2
    assert told(caplog)[1].endswith("(4 more of these since the last such line)")


async def test_names_that_a_peer_makes_up_neither_break_a_line_nor_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = VirtualClock()
    shared = Shared(clock)
    fails(shared, plain_token("\n[2026-01-01] FATAL" + "x" * 5_000, "wrong"))
    assert r"as user \n[2026-01-01] FATALxx" in told(caplog)[0] and len(told(caplog)[0]) < 400
    for number in range(MOST_LINES + 6):
        fails(shared, plain_token(f"user{number}", "wrong"))
    assert len(told(caplog)) == MOST_LINES
    clock.advance(10_000)
    fails(shared, plain_token("alice", "wrong"))
    assert told(caplog)[-2] == "7 more authentications have failed, which are not logged one by one"


async def test_a_peer_is_told_of_all_that_its_listener_serves_before_it_may_use_it() -> None:
    served = Dispatch(apis(heartbeat=lambda request, ctx: HeartbeatResponse(error_code=0)))

    client = Served(dispatch=served, authentication=StepByStep(Dispatch(apis())))

    assert [api.name for api in client.connection.listed_apis] == ["ApiVersions", "Heartbeat"]
