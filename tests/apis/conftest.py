"""A broker that has just started, and a user connected to it, for every test here.

Files are in memory and time stands still: what a test waits for must happen without time, or the test moves
the clock of `home` itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.support.controllers import combined_home, controller_address

OVERRIDES = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}


@pytest.fixture
def home() -> Home:
    """Where the broker lives; a test may change `overrides` before it starts a broker."""
    return Home(OVERRIDES)


@pytest.fixture
async def user(home: Home) -> AsyncIterator[User]:
    """A client of the broker at `home`."""
    async with home.running() as user:
        yield user


@pytest.fixture
async def another(home: Home, user: User) -> AsyncIterator[User]:
    """A second client of the same broker, on its own connection."""
    async with await User.connect(home.broker.bootstrap_servers, "another-client") as another:
        yield another


@pytest.fixture
def combined() -> Home:
    """Where a broker lives that has a listener of controllers."""
    return combined_home(OVERRIDES)


@pytest.fixture
async def controllers(combined: Home) -> AsyncIterator[User]:
    """A client of the listener of controllers of the broker at `combined`."""
    async with combined.new_broker() as broker, await User.connect(controller_address(broker)) as controllers:
        yield controllers
