"""The quotas of addresses, as they follow the metadata."""

from __future__ import annotations

import asyncio

import pytest

from pykafka_broker.broker import quota_following
from pykafka_broker.broker.quota_following import QuotaFollower
from pykafka_broker.cluster.image import ClusterImage, QuotaEntity
from pykafka_broker.machine.clock import processing_ns
from pykafka_broker.quotas.client_quotas import ClientQuotas
from pykafka_broker.quotas.connection_rates import AddressRates
from pykafka_broker.quotas.rates import Window
from pykafka_broker.testing.clock import VirtualClock, settle

HOST: QuotaEntity = (("ip", "client.example"),)
OTHER: QuotaEntity = (("ip", "other.example"),)


async def test_the_quota_of_a_host_stays_in_force_while_another_host_is_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was lifted with each change of any quota, until its host was looked up again."""
    looked_up = asyncio.Event()
    looked_up.set()

    async def address_of(host: str) -> str:
        await looked_up.wait()
        return {"client.example": "192.0.2.1", "other.example": "192.0.2.2"}[host]

    monkeypatch.setattr(quota_following, "address_of", address_of)
    rates = AddressRates(Window())

    def refused() -> list[bool]:
        return [rates.count(address, 0) > 0 for address in ("192.0.2.1", "192.0.2.2")]

    follower = QuotaFollower(ClientQuotas(VirtualClock(), processing_ns), rates)
    quota = {"connection_creation_rate": 0.0}
    follower.published(ClusterImage(), ClusterImage(client_quotas={HOST: quota}))
    await settle()
    assert refused() == [True, False]

    looked_up.clear()
    follower.published(ClusterImage(), ClusterImage(client_quotas={HOST: quota, OTHER: quota}))
    await settle()
    assert refused() == [True, False]
    looked_up.set()
    await settle()
    assert refused() == [True, True]

    follower.published(ClusterImage(), ClusterImage(client_quotas={OTHER: quota}))
    assert refused() == [False, True]
