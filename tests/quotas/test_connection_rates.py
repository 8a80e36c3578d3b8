"""New connections of addresses, each against its own quota or the default one.

`interop/tests/test_connection_rates.py` compares the waits with Apache Kafka's.
"""

from __future__ import annotations

from pykafka_broker.quotas.connection_rates import AddressRates
from pykafka_broker.quotas.rates import Window


def test_without_a_quota_every_connection_may_come() -> None:
    rates = AddressRates(Window())

    assert not rates.is_active
    assert [rates.count("10.0.0.1", 0) for _ in range(1_000)] == [0] * 1_000


def test_addresses_count_apart_and_their_own_quotas_go_before_the_default() -> None:
    rates = AddressRates(Window())
    rates.apply({None: 0.1, "10.0.0.1": 1.0})

    assert [rates.count("10.0.0.1", 0) for _ in range(11)] == [0] * 10 + [1_000]
    assert [rates.count("10.0.0.2", 0) for _ in range(2)] == [0, 1_000]
    assert rates.count("10.0.0.3", 0) == 0
