"""The lane `security`: its ways, and one client in each of them."""

from __future__ import annotations

import urllib.error
from dataclasses import replace

import pytest

from interop import secured_lane
from interop.clients.login import OAUTHBEARER, Login
from interop.run import load_matrix
from interop.secured import WAYS
from interop.secured_lane import denial, run, ways
from pykafka_broker.testing.issuer import issuing


def test_there_is_a_listener_for_each_way_and_no_unknown_client_lacks_one() -> None:
    assert [way.name for way in ways()] == list(WAYS)
    clients = set(load_matrix()[0])
    assert all(set(way.lacks) < clients for way in (*ways(), denial()))


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 3])
def test_a_client_finds_each_way_that_it_has_into_our_nodes(
    monkeypatch: pytest.MonkeyPatch, nodes: int
) -> None:
    """And is denied the topic of others in each: a client that was not would be a failure. With a wrong
    password or a foreign certificate it is let into none.
    """
    monkeypatch.setattr(secured_lane, "PATIENCE_S", 2.0)
    found = run("ours", ["confluent-kafka"], "", lambda line: None, nodes)
    assert found.failures == []
    [version] = found.result.versions
    assert version == "confluent-kafka"
    outcomes = [cells["confluent-kafka"].partition(":")[0] for cells in found.result.cells.values()]
    assert outcomes == ["pass"] * 6 + ["lacks"] + ["pass"] * 3


def test_the_issuer_gives_tokens_for_passwords_alone() -> None:
    with issuing({"alice": "secret"}) as issuer:
        login = Login("", mechanism=OAUTHBEARER, user="alice", token_endpoint=issuer.token_endpoint)
        assert replace(login, password="secret").bearer_token().count(".") == 2
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            replace(login, password="guessed").bearer_token()
        refused.value.close()
