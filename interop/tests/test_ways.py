"""The lane `security`: its ways, and one client in each of them."""

from __future__ import annotations

import urllib.error
from dataclasses import replace

import pytest

from interop import secured_lane
from interop.clients.login import OAUTHBEARER, Login
from interop.run import load_matrix
from interop.secured import WAYS
from interop.secured_lane import allowed, row_of, run, scenarios, titles, ways
from pykafka_broker.testing.issuer import issuing

CLIENTS = set(load_matrix()[0])


def test_there_is_a_listener_for_each_way_and_no_unknown_client_lacks_one() -> None:
    assert [way.name for way in ways()] == list(WAYS)
    assert all(set(way.lacks) < CLIENTS for way in ways())


def test_what_a_user_may_do_is_scenarios_of_the_matrix_of_which_a_client_lacks_what_it_lacks_there() -> None:
    matrix = {scenario.name: scenario for scenario in load_matrix()[1]}
    for scenario in allowed():
        assert scenario.run is matrix[scenario.name].run
        assert matrix[scenario.name].lacks.items() <= scenario.lacks.items()
    assert all(set(scenario.lacks) < CLIENTS for scenario in scenarios())


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 3])
def test_a_client_does_in_each_way_what_its_user_may_and_is_refused_the_rest(
    monkeypatch: pytest.MonkeyPatch, nodes: int
) -> None:
    """With a wrong password or a foreign certificate it is let into none of our nodes."""
    monkeypatch.setattr(secured_lane, "PATIENCE_S", 2.0)
    name = "confluent-kafka"
    found = run("ours", [name], "", lambda line: None, nodes)
    assert found.failures == []
    assert set(found.result.versions) == {name}
    lacking = [row_of(way) for way in ways() if name in way.lacks]
    lacking += [scenario.name for scenario in scenarios() if name in scenario.lacks]
    assert {title: cells[name].partition(":")[0] for title, cells in found.result.cells.items()} == {
        title: "lacks" if title in lacking else "pass" for title in titles()
    }


def test_the_issuer_gives_tokens_for_passwords_alone() -> None:
    with issuing({"alice": "secret"}) as issuer:
        login = Login("", mechanism=OAUTHBEARER, user="alice", token_endpoint=issuer.token_endpoint)
        assert replace(login, password="secret").bearer_token().count(".") == 2
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            replace(login, password="guessed").bearer_token()
        refused.value.close()
