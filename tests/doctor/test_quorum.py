"""The quorum, judged from what its leader tells, and from what is left where none leads."""

from __future__ import annotations

import socket

import pytest

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.client.quorum import LostQuorum, QuorumStatus
from pykafka_broker.doctor import quorum
from pykafka_broker.doctor.findings import Level, ok
from pykafka_broker.doctor.quorum import Source, judge, silent_voters, told_of_loss
from tests.cli.test_main import unused_address
from tests.doctor.test_reach import serving

BROKER = Source("kafka-3:9092", 1_234)
LOST = LostQuorum(3, 35_900, 7, {1: [Address("kafka-1", 9093)], 2: [Address("kafka-2", 9093)], 3: []})


def test_a_leader_is_named_with_its_voters() -> None:
    found = QuorumStatus(2, 7, [1, 2, 3], 0)
    assert judge(found, BROKER) == ok("quorum", "kafka-3:9092", "Node 2 leads the quorum (voters 1, 2, 3).")


def test_without_a_leader_it_is_said_from_whom_and_from_when_all_is() -> None:
    finding = judge(LOST, BROKER, [1, 2])
    assert finding.level is Level.PROBLEM
    assert finding.message.startswith(
        "No quorum: no controller leads, and none has answered broker 3 at kafka-3:9092 for 35 s. What it "
        "tells of brokers and topics is from then (metadata offset 1,234). Of the voters (1, 2, 3) these do "
        "not answer from here: 1, 2. "
    )
    assert finding.remedy.startswith("Start the controllers that are down (1, 2): ")


def test_voters_that_all_answer_may_not_reach_each_other() -> None:
    assert told_of_loss(LOST, BROKER, []).endswith(
        "All voters (1, 2, 3) answer from here: do they reach each other?"
    )


def test_a_broker_that_does_not_tell_the_age_is_not_given_one() -> None:
    text = told_of_loss(LostQuorum(), Source("kafka-3:9092"), None)
    assert text.endswith("is from before; how old it is, it does not tell.")


def test_a_voter_is_silent_where_nothing_serves_at_its_addresses_nor_its_broker_answers() -> None:
    host, port = unused_address().split(":")
    away = [Address(host, int(port))]
    assert silent_voters(LostQuorum(3, 0, 7, {1: away, 2: away, 3: []}), answering={2}) == [1, 3]
    assert silent_voters(LostQuorum(), answering={2}) is None


@pytest.mark.parametrize("greeting", [b"\x15\x03\x03\x00\x02\x02\x28", b""])
def test_a_controller_that_asks_for_tls_or_hangs_up_is_not_silent(greeting: bytes) -> None:
    with serving(lambda connection: connection.sendall(greeting)) as address:
        assert silent_voters(LostQuorum(3, 0, 7, {1: [Address(*address)]}), answering=()) == []


def test_a_controller_that_hangs_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quorum, "VOTER_WITHIN_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        address = Address(*hanging.getsockname())
        assert silent_voters(LostQuorum(3, 0, 7, {1: [address]}), answering=()) == [1]
