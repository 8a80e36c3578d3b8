"""The quotas of clients over what they have used."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import pytest

from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.cluster.image import QuotaEntity
from pykafka_broker.machine.history import Decision, Kind
from pykafka_broker.quotas.client_quotas import ClientQuotas
from pykafka_broker.quotas.throttles import SLOW_DOWN
from pykafka_broker.testing.clock import VirtualClock

ALICE: QuotaEntity = (("user", "alice"),)
APP: QuotaEntity = (("client-id", "app"),)


class Client:
    """Who asks."""

    def __init__(self, principal: str = "User:alice", client_id: str | None = "app") -> None:
        self.principal = principal
        self.client_id = client_id

    @property
    def api_key(self) -> int:
        raise AssertionError("quotas do not depend on the API")

    @property
    def client_host(self) -> str:
        return "/10.0.0.5"

    @property
    def log_fields(self) -> Mapping[str, object]:
        raise AssertionError("quotas are not logged")


def quotas_of(clock: VirtualClock, *, entity: QuotaEntity = ALICE, **values: float) -> ClientQuotas:
    quotas = ClientQuotas(clock, lambda: 42)
    quotas.apply({entity: values})
    return quotas


def test_without_a_quota_nothing_is_counted_and_no_time_is_taken() -> None:
    quotas = ClientQuotas(VirtualClock(), lambda: 42)

    assert not quotas.is_active
    assert quotas.record(Quota.PRODUCE, Client(), 10**12) == 0
    assert quotas.most_bytes_fetched(Client()) == inf
    assert quotas.processing_ns() == 0


@pytest.mark.parametrize(
    ("quota", "key"), [(Quota.PRODUCE, "producer_byte_rate"), (Quota.FETCH, "consumer_byte_rate")]
)
async def test_bytes_are_a_rate(quota: Quota, key: str) -> None:
    clock = VirtualClock()
    quotas = ClientQuotas(clock, lambda: 42)
    quotas.apply({ALICE: {key: 100.0}})

    assert quotas.record(quota, Client(), 1_000) == 0
    assert quotas.record(quota, Client(), 100) == 1_000
    assert quotas.record(quota, Client(), -100) == 0
    assert quotas.record(Quota.REQUEST, Client(), 10**12) == 0


async def test_a_wait_is_over_when_it_said_so() -> None:
    clock = VirtualClock()
    quotas = quotas_of(clock, producer_byte_rate=100.0)
    assert quotas.record(Quota.PRODUCE, Client(), 1_100) == 1_000

    await clock.pass_time(999)
    assert quotas.record(Quota.PRODUCE, Client(), 0) > 0
    await clock.pass_time(10_001)
    assert quotas.record(Quota.PRODUCE, Client(), 0) == 0


async def test_the_waits_of_an_account_are_averaged_over_the_window() -> None:
    clock = VirtualClock()
    quotas = quotas_of(clock, producer_byte_rate=100.0)
    for amount in (1_000, 100, 100):
        quotas.record(Quota.PRODUCE, Client(), amount)

    assert quotas.waits_ms(Quota.PRODUCE) == [(("alice", ""), 1_500)]
    await clock.pass_time(11_000)
    assert quotas.waits_ms(Quota.PRODUCE) == [(("alice", ""), 0)]


def test_processing_time_is_a_percentage_and_its_wait_at_most_a_sample() -> None:
    quotas = quotas_of(VirtualClock(), request_percentage=10.0)

    assert quotas.processing_ns() == 42
    # Ten seconds of window at 10 % are one second.
    assert quotas.record(Quota.REQUEST, Client(), 1_000_000_000) == 0
    assert quotas.record(Quota.REQUEST, Client(), 50_000_000) == 500
    assert quotas.record(Quota.REQUEST, Client(), 5_000_000_000) == 1_000


async def test_controller_mutations_are_tokens() -> None:
    clock = VirtualClock()
    quotas = quotas_of(clock, controller_mutation_rate=2.0)

    assert quotas.record(Quota.CONTROLLER_MUTATION, Client(), 22) == 0
    assert quotas.record(Quota.CONTROLLER_MUTATION, Client(), 3) == 1_500
    assert quotas.record(Quota.CONTROLLER_MUTATION, Client(), 0) == 1_500
    assert quotas.record(Quota.CONTROLLER_MUTATION, Client("User:bob"), 10**9) == 0
    assert quotas.used(Quota.CONTROLLER_MUTATION) == [(("alice", ""), -3)]

    await clock.pass_time(1_000)
    assert quotas.used(Quota.CONTROLLER_MUTATION) == [(("alice", ""), -1)]


def test_all_clients_of_a_user_share_its_quota() -> None:
    quotas = quotas_of(VirtualClock(), producer_byte_rate=100.0)
    quotas.record(Quota.PRODUCE, Client(client_id="one"), 1_000)

    assert quotas.record(Quota.PRODUCE, Client(client_id=None), 100) == 1_000
    assert quotas.record(Quota.PRODUCE, Client("User:bob"), 100_000) == 0


def test_all_users_share_the_quota_of_a_client_id() -> None:
    quotas = quotas_of(VirtualClock(), entity=APP, producer_byte_rate=100.0)
    quotas.record(Quota.PRODUCE, Client("User:bob"), 1_000)

    assert quotas.record(Quota.PRODUCE, Client(), 100) == 1_000
    assert quotas.record(Quota.PRODUCE, Client(client_id="other"), 100_000) == 0


def test_another_quota_looks_at_what_was_used_before() -> None:
    quotas = quotas_of(VirtualClock(), producer_byte_rate=1_000.0)
    quotas.record(Quota.PRODUCE, Client(), 5_000)

    quotas.apply({ALICE: {"producer_byte_rate": 100.0}})
    assert quotas.record(Quota.PRODUCE, Client(), 0) == 40_000

    quotas.apply({})
    assert not quotas.is_active
    quotas.apply({ALICE: {"producer_byte_rate": 100.0}})
    assert quotas.record(Quota.PRODUCE, Client(), 0) == 0


def test_a_consumer_may_fetch_at_once_what_a_whole_window_allows() -> None:
    quotas = quotas_of(VirtualClock(), consumer_byte_rate=100.0)

    assert quotas.most_bytes_fetched(Client()) == 1_000
    assert quotas.most_bytes_fetched(Client("User:bob")) == inf


async def test_a_throttled_client_is_told_of_with_the_quota_that_applied() -> None:
    told: list[Decision] = []
    quotas = ClientQuotas(VirtualClock(), lambda: 42, tell=told.append)
    quotas.apply({(("user", "alice"), ("client-id", None)): {"producer_byte_rate": 100.0}})

    assert quotas.record(Quota.PRODUCE, Client(), 1_000) == 0
    assert told == []
    assert quotas.record(Quota.PRODUCE, Client(), 100) == 1_000

    assert told == [
        Decision(
            Kind.REQUEST,
            ("app", "User:alice", "alice"),
            "Client app (User:alice, 10.0.0.5) was throttled by the quota producer_byte_rate of user alice, "
            "the default client id: 100 bytes per second.",
            SLOW_DOWN.format("--user alice --client-id-defaults producer_byte_rate"),
            " It is to wait 1 s.",
        )
    ]
