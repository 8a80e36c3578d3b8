"""A broker for the pages of the console, and a browser that reads them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pykafka_broker.client.blocking import Client
from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from pykafka_broker.console.settings import Settings
from pykafka_broker.testing.processes import free_port
from tests.cli.conftest import RunningBroker
from tests.console.browser import Browser


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker that the tests of a file share; each uses topics and groups of its own. It
    tells its history.
    """
    overrides = [
        f"authorizer.class.name={STANDARD_AUTHORIZER}",
        "super.users=User:ANONYMOUS",
        f"metrics.listeners=http://127.0.0.1:{free_port()}",
    ]
    with RunningBroker(tmp_path_factory.mktemp("data"), overrides=overrides) as running:
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
