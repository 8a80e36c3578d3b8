"""Hundreds of classic groups rebalance at once, over sockets of their own, in a broker that is a process."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.storm import GROUPS, MEMBERS_PER_GROUP, storm
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.testing.processes import PykafkaBroker
from pykafka_broker.testing.user import User

#: So long that a busy machine does not make a member late: what is lost then is the broker's fault.
SESSION_MS = 600_000
#: A connection for each member, and what else a process has open.
FILES = GROUPS * MEMBERS_PER_GROUP + 200


@pytest.fixture
def enough_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FILES), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
@pytest.mark.usefixtures("enough_files")
async def test_a_storm_of_300_groups_costs_no_member_its_place(tmp_path: Path) -> None:
    with PykafkaBroker({"group.initial.rebalance.delay.ms": "500"}, tmp_path) as broker:
        seen = await storm(broker.address, "orders", prefix="storm", session_ms=SESSION_MS)

        assert seen.lost == 0
        groups = [f"storm-{number}" for number in range(GROUPS)]
        async with await User.connect(broker.address) as user:
            answer = await user.send(DescribeGroupsRequest(groups=groups), 5)
        assert [(each.group_id, each.group_state, len(each.members)) for each in answer.groups] == [
            (group, "Stable", MEMBERS_PER_GROUP) for group in groups
        ]
