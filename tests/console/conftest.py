"""A broker for the pages of the console, and a browser that reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.security import security_of
from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from pykafka_broker.console.settings import Settings
from pykafka_broker.testing.processes import free_port
from tests.cli.conftest import RunningBroker
from tests.cli.secured import make_certificates, secured_broker
from tests.console.browser import Browser


def overrides() -> list[str]:
    """The properties of a broker that has ACLs and tells its history."""
    return [
        f"authorizer.class.name={STANDARD_AUTHORIZER}",
        "super.users=User:ANONYMOUS",
        f"metrics.listeners=http://127.0.0.1:{free_port()}",
    ]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker that the tests of a file share; each uses topics and groups of its own."""
    with RunningBroker(tmp_path_factory.mktemp("data"), overrides=overrides()) as running:
        yield running.address


@pytest.fixture
def client(broker: str) -> Iterator[Client]:
    with Client(broker) as connected:
        yield connected


@pytest.fixture
def reader(broker: str) -> Iterator[Browser]:
    """A visitor of a console that shows only."""
    with Browser(Settings(broker)) as browser:
        yield browser


@pytest.fixture
def writer(broker: str) -> Iterator[Browser]:
    """A visitor of a console that may write."""
    with Browser(Settings(broker, write=True)) as browser:
        yield browser


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A console of a broker with SASL over TLS: bob is a super user, alice may do nothing."""
    folder: Path = tmp_path_factory.mktemp("secured")
    make_certificates(folder)
    properties = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
    }
    listener = f"metrics.listeners=http://127.0.0.1:{free_port()}"
    with secured_broker(folder, "PLAIN,SCRAM-SHA-512", [listener]) as address:
        yield Settings(address, security=security_of(properties), write=True)
