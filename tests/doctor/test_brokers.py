"""Advertised addresses, judged from what was found at them."""

from __future__ import annotations

import pytest

from pykafka_broker.doctor.brokers import Advertised, Cluster, Standing, judge, judge_address, judge_standing
from pykafka_broker.doctor.findings import Finding, Level, ok
from pykafka_broker.doctor.reach import Address, Answer, Kind

BOOTSTRAP = ("10.0.0.5", 9092)
HERE = Advertised(Answer(Kind.KAFKA), "cluster-a")


def judged(address: Address, found: Advertised, bootstrap: Address = BOOTSTRAP) -> Finding:
    (finding,) = judge(bootstrap, Cluster("cluster-a", 1, {1: address}), {1: found})
    return finding


def test_a_broker_that_answers_where_it_says_is_fine() -> None:
    assert judged(("kafka", 9092), HERE) == ok(
        "brokers", "broker 1", "Broker 1 advertises kafka:9092, and answers there."
    )


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.KAFKA])
def test_an_address_that_leads_nowhere_makes_clients_wait(kind: Kind) -> None:
    finding = judged(("kafka-1", 9093), Advertised(Answer(kind)))
    assert (finding.level, finding.subject) == (Level.PROBLEM, "broker 1")
    assert "Broker 1 advertises kafka-1:9093, wh" in finding.message or "not known here" in finding.message
    assert "advertised.listeners=PLAINTEXT://10.0.0.5:9092" in finding.remedy


DOWN = {Kind.REFUSED, Kind.TIMED_OUT, Kind.UNREACHABLE, Kind.CLOSES, Kind.SILENT}


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.KAFKA])
def test_beside_a_broker_that_answers_no_other_is_told_to_advertise_its_address(kind: Kind) -> None:
    cluster = Cluster("cluster-a", 1, {1: ("10.0.0.4", 9092), 2: BOOTSTRAP})
    finding, other = judge(BOOTSTRAP, cluster, {1: Advertised(Answer(kind)), 2: HERE})
    assert (finding.level, other.level) == (Level.PROBLEM, Level.OK)
    assert "10.0.0.5" not in finding.remedy
    assert ("Is it running?" in finding.remedy) == (kind in DOWN)
    assert finding.message.startswith("Broker 1 does not answer at 10.0.0.4:9092, ") == (kind in DOWN)
    assert ("advertised.listeners=PLAINTEXT://HOST:PORT" in finding.remedy) == (kind not in DOWN)


def test_where_no_broker_answers_as_advertised_none_is_taken_for_dead() -> None:
    refused = Advertised(Answer(Kind.REFUSED))
    cluster = Cluster("cluster-a", 1, {1: ("localhost", 9092), 2: ("localhost", 9093)})
    for finding in judge(BOOTSTRAP, cluster, {1: refused, 2: refused}):
        assert "advertised.listeners=PLAINTEXT://HOST:PORT" in finding.remedy


def test_several_brokers_on_one_host_are_told_ports_of_their_own() -> None:
    cluster = Cluster("cluster-a", 1, {1: ("localhost", 9092), 2: ("localhost", 9093)})
    first, second = judge(BOOTSTRAP, cluster, {1: HERE, 2: HERE})
    assert "PLAINTEXT://10.0.0.5:9092" in first.remedy
    assert "PLAINTEXT://10.0.0.5:9093" in second.remedy


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_a_broker_that_advertises_this_machine_to_others_is_a_warning(host: str) -> None:
    finding = judged((host, 9092), HERE)
    assert finding.level is Level.WARNING
    assert "it works from this machine only" in finding.message


def test_a_broker_on_this_machine_may_advertise_this_machine() -> None:
    assert judged(("localhost", 9092), HERE, ("127.0.0.1", 9092)).level is Level.OK


def test_an_advertised_address_that_leads_to_another_cluster_is_a_problem() -> None:
    finding = judged(("localhost", 9092), Advertised(Answer(Kind.KAFKA), "cluster-b"))
    assert finding.level is Level.PROBLEM
    assert "a broker of another cluster answers: cluster-b instead of cluster-a" in finding.message


@pytest.mark.parametrize("kind", Kind)
def test_an_address_beside_one_that_answers_is_told_whose_it_is(kind: Kind) -> None:
    local, remote = ("localhost", 9093), ("10.0.0.6", 9092)
    known = {("127.0.0.1", 9093): 2, BOOTSTRAP: 1}
    of_broker = judge_address(local, Answer(kind), BOOTSTRAP, known)
    stranger = judge_address(remote, Answer(kind), BOOTSTRAP, known)
    assert "pykafka-broker start" not in of_broker.remedy + stranger.remedy
    is_told = "It is the address of broker 2, as the broker at 10.0.0.5:9092 tells; " in of_broker.message
    is_unknown = "The broker at 10.0.0.5:9092 knows no broker at this address." in stranger.message
    assert (is_told, is_unknown) == (kind in DOWN, kind in DOWN)


def test_a_broker_that_answers_and_is_no_part_of_the_cluster_is_a_problem() -> None:
    unregistered = judge_standing(BOOTSTRAP, Standing(None, is_registered=False))
    assert unregistered is not None
    assert unregistered.message.startswith(
        "The broker at 10.0.0.5:9092 is not registered: it leads no partition"
    )
    fenced = judge_standing(BOOTSTRAP, Standing(1, is_registered=True, is_fenced=True))
    assert fenced is not None
    assert fenced.message.startswith("Broker 1 at 10.0.0.5:9092 is fenced: it leads no partition")
    for fine in (Standing(1, is_registered=True), Standing(None)):
        assert judge_standing(BOOTSTRAP, fine) is None


def test_a_cluster_without_brokers_is_still_starting() -> None:
    (finding,) = judge(BOOTSTRAP, Cluster("cluster-a", 1, {}), {})
    assert finding.message == "10.0.0.5:9092 knows no broker, not even itself."


def test_a_cluster_without_a_controller_cannot_create_topics() -> None:
    _, finding = judge(BOOTSTRAP, Cluster("cluster-a", -1, {1: BOOTSTRAP}), {1: HERE})
    assert finding.level is Level.PROBLEM
    assert finding.message.startswith("The cluster has no active controller")
