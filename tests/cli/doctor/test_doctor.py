"""`doctor` beside a running broker: what it says, and its exit status."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from pykafka_broker.cli.cluster import Cluster
from pykafka_broker.cli.doctor import shown
from pykafka_broker.cli.doctor.examination import CHECKS, Question, examine
from pykafka_broker.cli.output import Form, Output
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import commit_offsets
from pykafka_broker.doctor import topics
from pykafka_broker.doctor.findings import Finding, Level, ok, problem
from pykafka_broker.doctor.refusals import guarded
from pykafka_broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pykafka_broker.testing.processes import free_port
from tests.apis.streaming import beating, reading
from tests.cli.conftest import Run, RunningBroker, run_command
from tests.cli.test_main import unused_address
from tests.cli.test_share_groups import Member as ShareMember
from tests.doctor.test_reach import serving


@pytest.fixture
def client(broker: str) -> Iterator[Client]:
    with Client(broker) as connected:
        yield connected


def findings(run: Run, *arguments: str) -> list[dict[str, Any]]:
    """What is said with `--json`; groups are watched for a moment only."""
    result = run("doctor", "--watch", "0.1", *arguments, "--json")
    found = [json.loads(line) for line in result.out.splitlines()]
    assert result.status == any(finding["level"] == "problem" for finding in found)
    assert all(set(finding) == set(Finding._fields) and finding["check"] in CHECKS for finding in found)
    return found


def said(found: list[dict[str, Any]], check: str, subject: str) -> tuple[str, str]:
    """The level and the message of the one finding about a subject."""
    (finding,) = [f for f in found if f["check"] == check and f["subject"] == subject]
    return finding["level"], finding["message"]


def test_a_broker_without_fault_is_examined_in_every_respect(run: Run, broker: str) -> None:
    run("topics", "create", "fine")
    result = run("doctor", broker, "--topic", "fine")
    assert result.status == 0
    assert [line.partition(" ")[0] for line in result.out.splitlines()] == ["ok"] * 6
    assert f"{broker} speaks Kafka's protocol." in result.out
    assert "Topic 'fine' has 1 partition and 0 offsets to read." in result.out


def test_without_a_broker_it_says_so_and_how_to_start_one() -> None:
    address = unused_address()
    result = run_command("doctor", address)
    assert result.status == 1
    assert f"PROBLEM No process listens at {address}." in result.out
    assert f"pykafka-broker start --listen {address}" in result.out
    assert "skipped" in result.out


def test_a_bad_address_is_wrong_usage() -> None:
    assert run_command("doctor", "localhost").status == 2
    assert run_command("doctor", "-b", "localhost").status == 2
    assert run_command("doctor", "-b", "localhost:9092", "localhost:9092").status == 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_process_that_has_the_port_instead_of_a_broker_is_named() -> None:
    with serving(lambda connection: None) as (host, port):
        result = run_command("doctor", f"{host}:{port}")
    assert f"closes it without an answer (this very process ({os.getpid()}))." in result.out


def test_of_several_addresses_the_first_that_answers_is_used(run: Run, broker: str) -> None:
    away = unused_address()
    found = findings(run, f"{away},{broker}")
    assert [f["level"] for f in found if f["check"] == "connection"] == ["problem", "ok"]
    assert said(found, "brokers", "broker 1")[0] == "ok"


def test_an_advertised_address_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    port = free_port()
    advertised = "advertised.listeners=PLAINTEXT://kafka-1.invalid:9092"
    with RunningBroker(tmp_path, port, [advertised]):
        cluster = Cluster(f"127.0.0.1:{port}", timeout_s=20.0)
        found = list(examine(Question([("127.0.0.1", port)], cluster, ("orders",), (), watch_s=0.1)))
    (missing,) = [finding for finding in found if finding.subject == "orders"]
    assert "Topic 'orders' does not exist. The brokers create it" in missing.message, (
        "this needs metadata only"
    )
    (about_broker,) = [finding for finding in found if finding.check == "brokers"]
    assert about_broker.level is Level.PROBLEM
    assert "advertises kafka-1.invalid:9092, a host name that is not known here" in about_broker.message
    assert found[-1].level is Level.SKIPPED


def test_a_topic_that_is_missing_is_compared_with_those_there_are(run: Run) -> None:
    run("topics", "create", "clickstream")
    level, message = said(findings(run, "--topic", "clickstraem"), "topics", "clickstraem")
    assert level == "warning"
    assert "does not exist. The brokers create it" in message
    assert "Did you mean 'clickstream'?" in run("doctor", "--topic", "clickstraem").out


def test_records_that_retention_removed_are_told_from_a_topic_that_never_had_any(
    run: Run, client: Client
) -> None:
    from pykafka_broker.protocol.messages.delete_records import (
        DeleteRecordsPartition,
        DeleteRecordsRequest,
        DeleteRecordsTopic,
    )

    run("topics", "create", "short-lived")
    run("produce", "short-lived", "a", "b")
    partition = DeleteRecordsPartition(partition_index=0, offset=2)
    client.send(
        DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name="short-lived", partitions=[partition])], timeout_ms=10_000
        ),
        1,
    )
    level, message = said(findings(run, "--topic", "short-lived"), "topics", "short-lived")
    assert level == "warning"
    assert "holds no record any more: the first 2 offsets were removed" in message


def test_an_open_transaction_is_named(run: Run, broker: str) -> None:
    run("topics", "create", "payments")
    producer = Producer({"bootstrap.servers": broker, "transactional.id": "billing"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("payments", b"unconfirmed")
    producer.flush()
    level, message = said(findings(run), "topics", "payments-0")
    producer.abort_transaction()
    # Closed now: what a command keeps of its end holds this frame until the garbage collector comes, and the
    # producer would log to standard error that the broker is gone.
    del producer
    assert level == "warning"
    assert "stop at offset 0 of payments-0, 1 offset before its end: the transaction of 'billing'" in message


def test_to_ask_about_a_group_creates_nothing(tmp_path: Path) -> None:
    with RunningBroker(tmp_path) as running:
        run_command("doctor", running.address, "--group", "no-such")
        with Client(running.address) as client:
            assert client.metadata(None).topics == []


def test_a_group_without_members_is_told_from_one_that_does_not_exist(run: Run, client: Client) -> None:
    run("topics", "create", "left-alone")
    run("produce", "left-alone", "a", "b", "c")
    commit_offsets(client, client.coordinator("leavers"), "leavers", {("left-alone", 0): 1})
    found = findings(run, "--group", "leavers", "--group", "leaver")
    level, message = said(found, "groups", "leavers")
    assert (level, "2 offsets wait in 1 partition" in message) == ("warning", True)
    level, message = said(found, "groups", "leaver")
    assert (level, message) == (
        "problem",
        "Group 'leaver' does not exist: it has neither members nor committed offsets. "
        "Did you mean 'leavers'?",
    )


def test_a_partition_beyond_those_that_are_asked_for_is_not_said_to_be_gone(
    run: Run, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "MOST_PARTITIONS", 1)
    run("topics", "create", "wide", "--partitions", "2")
    commit_offsets(client, client.coordinator("beyond"), "beyond", {("wide", 0): 0, ("wide", 1): 0})

    assert said(findings(run, "--group", "beyond"), "groups", "beyond")[0] == "ok"


def test_a_member_that_does_not_commit_is_found_by_a_second_look(run: Run, client: Client) -> None:
    run("topics", "create", "watched")
    run("produce", "watched", "a", "b", "c")
    commit_offsets(client, client.coordinator("sleepers"), "sleepers", {("watched", 0): 1})
    request = ConsumerGroupHeartbeatRequest(
        group_id="sleepers",
        member_id="m1",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["watched"],
        topic_partitions=[],
    )
    joined = client.send(request, client.coordinator("sleepers"))
    assert joined.error_code == 0
    level, message = said(findings(run, "--group", "sleepers"), "groups", "sleepers")
    assert level == "problem"
    assert message.startswith(
        "Group 'sleepers' has not moved in watched-0 for 0.1 s, though 2 offsets wait there"
    )


def test_groups_of_every_kind_are_looked_at(run: Run, broker: str, client: Client) -> None:
    run("topics", "create", "read-by-all")
    run("produce", "read-by-all", "a", "b", "c")
    commit_offsets(client, client.coordinator("simple"), "simple", {("read-by-all", 0): 1})
    setting = ("--topic", "read-by-all:0", "--to-offset", "1", "--execute")
    assert run("share-groups", "reset-offsets", "sharers", *setting).status == 0
    joining = beating("m", group="application", topology=reading("no-such-topic"))
    assert not client.send(joining, client.coordinator("application")).error_code

    found = findings(run)
    level, message = said(found, "groups", "simple")
    assert (level, "2 offsets wait in 1 partition" in message) == ("warning", True)
    level, message = said(found, "groups", "sharers")
    assert (level, "has no members: 2 records wait in 1 partition" in message) == ("warning", True)
    level, message = said(found, "groups", "application")
    assert (level, "is NotReady" in message) == ("problem", True)

    member = ShareMember(broker, "sharers", "read-by-all").join()
    level, message = said(findings(run, "--group", "sharers"), "groups", "sharers")
    member.leave()
    assert level == "problem"
    assert "has not moved in read-by-all-0 for 0.1 s, and no fewer records wait there" in message


def test_a_check_that_the_cluster_does_not_answer_is_a_problem_of_that_check() -> None:
    fine = ok("topics", "orders", "Fine.")

    def failing() -> Iterator[Finding]:
        yield fine
        raise ConnectionError("127.0.0.1:9092 closed the connection")

    first, failed = guarded("topics", failing())
    assert first == fine
    assert (failed.level, failed.message) == (
        Level.PROBLEM,
        "The cluster does not answer about its topics: 127.0.0.1:9092 closed the connection.",
    )


def test_a_topic_without_a_name_is_wrong_usage(run: Run) -> None:
    assert run("doctor", "--topic", "").status == 2


LONG = problem(
    "topics",
    "x",
    "The topic does not exist, and is not created.",
    "Create it:\n  pykafka-broker topics create " + "x" * 30,
)


def said_by(form: Form, finding: Finding, width: int | None) -> str:
    """What is written to standard output."""
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        Output(form).show(finding, shown(finding, width))
    return written.getvalue()


def test_on_a_terminal_sentences_are_folded_and_commands_are_not() -> None:
    assert said_by(Form.TABLES, LONG, 40).splitlines() == [
        "PROBLEM The topic does not exist, and is",
        "        not created.",
        "        Create it:",
        "          pykafka-broker topics create " + "x" * 30,
    ]
    assert said_by(Form.LINES, LONG, None).splitlines()[0] == (
        "PROBLEM The topic does not exist, and is not created."
    )


def test_only_the_level_is_coloured_and_what_a_terminal_obeys_is_escaped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    hostile = ok("groups", "g", "Group \x1b[2J is fine.")
    assert said_by(Form.TABLES, hostile, 80) == ("\x1b[32m\x1b[1mok      \x1b[0mGroup \\x1b[2J is fine.\n")
