"""The log of connections: who came, who logged in, and why each connection was closed."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from pykafka_broker.apis import APIS
from pykafka_broker.apis.broker_loggers import logger_levels
from pykafka_broker.apis.ports.connection import Software
from pykafka_broker.cli.logging_setup import JsonFormatter
from pykafka_broker.client.core.frames import request_frame
from pykafka_broker.network.connection_lines import logger
from pykafka_broker.network.dispatch import Dispatch
from pykafka_broker.network.sasl_authentication import Sasl
from pykafka_broker.network.shared import Shared
from pykafka_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka_broker.sasl.exchange import OfferedMechanism
from pykafka_broker.sasl.plain import PlainServer, plain_token
from pykafka_broker.testing.clock import VirtualClock, settle
from tests.support.serving import API_VERSIONS, Served, serve_api_versions

NAME = "PLAINTEXT-10.0.0.7:50123"


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == logger.name]


@pytest.fixture(autouse=True)
def _detailed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger.name)


def tell_software(request: Any, ctx: Any) -> Any:
    ctx.connection.software = Software(request.client_software_name, request.client_software_version)
    return serve_api_versions(request, ctx)


def disconnects(served: Served) -> None:
    served.transport.disconnect(ConnectionResetError("Connection reset by peer"))


def closes(served: Served) -> None:
    served.connection.eof_received()
    served.transport.close()


def is_idle(served: Served) -> None:
    served.connection.check(served.clock.monotonic_ms())
    served.clock.advance(600_000)
    served.connection.check(served.clock.monotonic_ms())


def sends_garbage(served: Served) -> None:
    served.transport.feed(b"\0\0\0\1x")


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        (closes, "its peer closed it"),
        (disconnects, "Connection reset by peer"),
        (is_idle, "it was idle"),
        (sends_garbage, "A request header does not fit into 1 bytes"),
        (lambda served: served.connection.finish(), "this node closed it"),
    ],
)
async def test_a_connection_is_told_of_when_it_opens_and_with_the_reason_when_it_closes(
    ends: Callable[[Served], None], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    served = Served(api_versions=tell_software)
    served.send(API_VERSIONS)
    ends(served)
    await settle()
    assert lines(caplog) == [
        f"Accepted connection {NAME} of 'User:ANONYMOUS'",
        f"Closed connection {NAME} of 'User:ANONYMOUS', client 'tester' with test 1, after 1 request: "
        f"{reason}",
    ]
    told = json.loads(JsonFormatter().format(caplog.records[-1]))
    assert (told["connection"], told["listener"], told["requests"], told["reason"]) == (
        NAME,
        "PLAINTEXT",
        1,
        reason,
    )


async def test_a_login_and_its_renewal_name_the_user_the_mechanism_and_the_software(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = VirtualClock()
    served = asking(Shared(clock))
    log_in(served)
    clock.advance(1_000)
    log_in(served)
    served.connection.finish()
    await settle()
    assert lines(caplog) == [
        f"Accepted connection {NAME} of a peer that has to log in",
        f"Authenticated connection {NAME} as 'User:alice' by PLAIN",
        f"Authenticated connection {NAME} again as 'User:alice' by PLAIN",
        f"Closed connection {NAME} of 'User:alice', client 'shop' with unknown unknown, after 4 requests: "
        "this node closed it",
    ]
    assert "secret" not in caplog.text


async def test_a_connection_whose_peer_cannot_log_in_says_so_when_it_closes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    served = asking(Shared(VirtualClock()))
    log_in(served, "hunter2")
    await served.clock.pass_time(0)
    await settle()
    assert [line.rpartition(" requests: ")[2] for line in lines(caplog)[1:]] == [
        "its peer could not log in: Authentication failed: Invalid username or password"
    ]
    assert "hunter2" not in caplog.text


async def test_connections_are_logged_at_debug_alone_by_a_logger_that_clients_can_set(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger.name)
    served = Served()
    served.connection.finish()
    await settle()
    assert caplog.messages == []
    assert logger_levels()[logger.name] == "INFO"


def asking(shared: Shared) -> Served:
    """A peer of a listener with SASL."""
    offer = {"PLAIN": OfferedMechanism(lambda: PlainServer({"alice": "secret"}), 10_000)}
    sasl = Sasl(offer, shared.clock, shared.faults, max_receive_bytes=10_000, failure_delay_ms=0)
    assert isinstance(shared.clock, VirtualClock)
    return Served(shared.clock, shared=shared, dispatch=Dispatch(APIS), authentication=sasl)


def log_in(served: Served, password: str = "secret") -> None:
    token = plain_token("alice", password)
    for request, version in (
        (SaslHandshakeRequest(mechanism="PLAIN"), 1),
        (SaslAuthenticateRequest(auth_bytes=token), 2),
    ):
        served.transport.feed(request_frame(request, version, client_id="shop"))
