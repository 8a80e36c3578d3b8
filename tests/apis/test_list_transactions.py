"""ListTransactions (66): the transactional ids this broker coordinates."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka_broker.apis.list_transactions import list_transactions
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.list_transactions import ListTransactionsRequest
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import every
from tests.apis.transacting import Producer


async def listed(user: User, version: int = 2, **filters: Any) -> list[str]:
    answer = await ask(user, version, **filters)
    assert answer.error_code == 0
    return sorted(line.transactional_id for line in answer.transaction_states)


async def ask(user: User, version: int = 2, **filters: Any) -> Any:
    request = ListTransactionsRequest(**{"state_filters": [], "producer_id_filters": [], **filters})
    return await user.send(request, version)


async def some(user: User) -> dict[str, Producer]:
    """Three transactional ids, in three states."""
    await user.create_topic("t")
    producers = {name: await Producer.of(user, name) for name in ("idle", "busy-1", "busy-2")}
    await producers["busy-1"].write("t", b"v")
    await producers["busy-2"].write("t", b"v")
    await producers["busy-2"].end()
    return producers


@pytest.mark.parametrize("version", every(list_transactions))
async def test_all_are_listed_with_producer_and_state(user: User, version: int) -> None:
    producers = await some(user)

    answer = await ask(user, version)
    lines = {
        line.transactional_id: (line.producer_id, line.transaction_state)
        for line in answer.transaction_states
    }
    assert lines == {
        "idle": (producers["idle"].id, "Empty"),
        "busy-1": (producers["busy-1"].id, "Ongoing"),
        "busy-2": (producers["busy-2"].id, "CompleteCommit"),
    }


async def test_filters_by_state_name_those_that_do_not_exist(user: User) -> None:
    await some(user)

    assert await listed(user, state_filters=["Ongoing", "Empty"]) == ["busy-1", "idle"]
    answer = await ask(user, state_filters=["Ongoing", "Sleeping"])
    assert [line.transactional_id for line in answer.transaction_states] == ["busy-1"]
    assert answer.unknown_state_filters == ["Sleeping"]
    answer = await ask(user, state_filters=["ongoing", "Ongoing", "Asleep", "ongoing"])
    assert answer.unknown_state_filters == ["ongoing", "Asleep"]


async def test_filters_by_producer_id_and_all_filters_together(user: User) -> None:
    producers = await some(user)
    ids = [producers["idle"].id, producers["busy-1"].id]

    assert await listed(user, producer_id_filters=ids) == ["busy-1", "idle"]
    assert await listed(user, producer_id_filters=ids, state_filters=["Ongoing"]) == ["busy-1"]


async def test_filters_by_duration(home: Home, user: User) -> None:
    producers = await some(user)
    await home.pass_time(5_000)
    await producers["busy-2"].write("t", b"w")

    assert await listed(user, duration_filter=4_999, state_filters=["Ongoing"]) == ["busy-1"]
    assert await listed(user, duration_filter=5_000, state_filters=["Ongoing"]) == []


async def test_filters_by_a_pattern_of_the_whole_id(user: User) -> None:
    await some(user)

    assert await listed(user, transactional_id_pattern="busy-.*") == ["busy-1", "busy-2"]
    assert await listed(user, transactional_id_pattern="busy") == []
    assert await listed(user, transactional_id_pattern="") == ["busy-1", "busy-2", "idle"]


@pytest.mark.parametrize("pattern", ["(", r"(.)\1"], ids=["broken", "not RE2"])
async def test_a_pattern_that_is_none_is_refused(user: User, pattern: str) -> None:
    answer = await ask(user, transactional_id_pattern=pattern)

    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


async def test_before_there_are_transactions_the_list_is_empty(user: User) -> None:
    assert await listed(user) == []
