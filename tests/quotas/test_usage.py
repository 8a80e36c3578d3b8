"""Accounts are remembered while they are used, and not too many."""

from __future__ import annotations

from pykafka_broker.quotas.usage import IDLE_MS, Usage


def test_an_account_keeps_its_measure_until_it_was_idle_for_an_hour() -> None:
    usage: Usage[list[int]] = Usage(list)
    measure = usage.of("a", 0)
    measure.append(1)

    assert usage.of("a", IDLE_MS - 1) is measure
    assert usage.of("a", 2 * IDLE_MS - 2) is measure
    assert usage.of("a", 3 * IDLE_MS) == []


def test_idle_accounts_are_forgotten_when_others_are_used() -> None:
    usage: Usage[list[int]] = Usage(list)
    usage.of("idle", 0)
    usage.of("used", 0)
    usage.of("used", IDLE_MS - 1)

    usage.of("new", IDLE_MS)

    assert len(usage) == 2


def test_of_too_many_accounts_the_one_that_was_idle_longest_goes() -> None:
    usage: Usage[list[int]] = Usage(list, max_accounts=2)
    for account in ("a", "b", "a", "c"):
        usage.of(account, 0).append(1)

    assert [usage.of(account, 0) for account in ("a", "c")] == [[1, 1], [1]]
    assert len(usage) == 2
