"""New connections of an address, against its quota or the default one."""

from __future__ import annotations

from pykafka_broker.quotas.address_rates import AddressRates


def test_without_a_quota_every_connection_may_come() -> None:
    rates = AddressRates()

    assert not rates.is_active
    assert [rates.record("10.0.0.1", 0) for _ in range(1_000)] == [0] * 1_000


def test_those_of_a_window_may_come_at_once_and_the_next_waits_a_sample_at_most() -> None:
    rates = AddressRates()
    rates.apply({"10.0.0.1": 2.0})

    assert [rates.record("10.0.0.1", 0) for _ in range(22)] == [0] * 20 + [500, 500]
    assert rates.record("10.0.0.2", 0) == 0


def test_a_connection_that_comes_too_early_does_not_count() -> None:
    rates = AddressRates()
    rates.apply({None: 0.1})
    assert rates.record("10.0.0.1", 0) == 0

    assert [rates.record("10.0.0.1", 0) for _ in range(100)] == [1_000] * 100
    assert rates.record("10.0.0.1", 10_999) == 1_000
    assert rates.record("10.0.0.1", 21_999) == 0


def test_the_quota_of_an_address_goes_before_the_default() -> None:
    rates = AddressRates()
    rates.apply({None: 0.1, "10.0.0.1": 1.0})

    assert [rates.record("10.0.0.1", 0) for _ in range(10)] == [0] * 10
    assert [rates.record("10.0.0.2", 0) for _ in range(2)] == [0, 1_000]
