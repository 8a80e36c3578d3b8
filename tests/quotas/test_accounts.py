"""Which quota applies to a client, of the eight kinds."""

from __future__ import annotations

from math import inf

import pytest

from pykafka_broker.cluster.image import QuotaEntity
from pykafka_broker.quotas.accounts import Names, account_of, limits_of

#: From the most specific on, with the account of alice with the client id app.
ORDER: list[tuple[Names, tuple[str, str]]] = [
    (("alice", "app"), ("alice", "app")),
    (("alice", None), ("alice", "app")),
    (("alice", ""), ("alice", "")),
    ((None, "app"), ("alice", "app")),
    ((None, None), ("alice", "app")),
    ((None, ""), ("alice", "")),
    (("", "app"), ("", "app")),
    (("", None), ("", "app")),
]
ALL = {names: float(place) for place, (names, _) in enumerate(ORDER)}


@pytest.mark.parametrize("place", range(len(ORDER)))
def test_the_most_specific_quota_applies(place: int) -> None:
    without_better_ones = {names: bound for names, bound in ALL.items() if bound >= place}

    assert account_of(without_better_ones, "alice", "app") == (ORDER[place][1], float(place))


def test_where_no_quota_applies_there_is_no_bound() -> None:
    others: dict[Names, float] = {
        ("bob", ""): 1.0,
        ("bob", "app"): 1.0,
        ("", "other"): 1.0,
        (None, "other"): 1.0,
    }

    assert account_of(others, "alice", "app") == (("", "app"), inf)


@pytest.mark.parametrize(
    ("limits", "account", "bound"),
    [
        (ALL, ("alice", ""), ALL["alice", ""]),
        ({(None, ""): 7.0, (None, None): 1.0, ("", None): 2.0}, ("alice", ""), 7.0),
        ({(None, None): 1.0, ("alice", None): 2.0, ("", None): 3.0}, ("", ""), inf),
    ],
)
def test_a_client_without_an_id_has_the_quota_of_its_user(
    limits: dict[Names, float], account: tuple[str, str], bound: float
) -> None:
    assert account_of(limits, "alice", "") == (account, bound)


def test_the_limits_of_a_key_come_from_the_entities_that_have_it() -> None:
    quotas: dict[QuotaEntity, dict[str, float]] = {
        (("user", "alice"),): {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0},
        (("client-id", None), ("user", None)): {"producer_byte_rate": 3.0},
        (("client-id", "app"),): {"consumer_byte_rate": 4.0},
        (("ip", "10.0.0.1"),): {"producer_byte_rate": 5.0},
    }

    assert limits_of(quotas, "producer_byte_rate") == {("alice", ""): 1.0, (None, None): 3.0}
