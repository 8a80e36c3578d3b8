"""`doctor` beside a broker with SASL and TLS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import run_command
from tests.cli.secured import config_of_bob, make_certificates, secured_broker

BOB, ALICE = ("--user", "bob:bob-secret"), ("--user", "alice:alice-secret")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with secured_broker(folder) as address:
        yield address


@pytest.fixture
def ca(folder: Path) -> tuple[str, str]:
    return "--ca", str(folder / "ca.pem")


def found(address: str, *words: str) -> list[tuple[str, str, str]]:
    """Level, check and message of each finding."""
    result = run_command("doctor", address, "--watch", "0.1", *words, "--json")
    findings = [json.loads(line) for line in result.out.splitlines()]
    assert result.status == any(finding["level"] == "problem" for finding in findings), result.err
    return [(finding["level"], finding["check"], finding["message"]) for finding in findings]


def only_problem(address: str, *words: str) -> str:
    (said,) = [message for level, _, message in found(address, *words) if level == "problem"]
    return said


def test_a_user_with_tls_sees_what_others_see_without(
    folder: Path, address: str, ca: tuple[str, str]
) -> None:
    for chosen in (("--command-config", config_of_bob(folder)), (*BOB, *ca)):
        assert run_command("topics", "create", "fine", "-b", address, *chosen, "--if-not-exists").status == 0
        checked = found(address, "--topic", "fine", *chosen)
        assert [(level, check) for level, check, _ in checked] == [
            ("ok", "connection"),
            ("ok", "quorum"),
            ("ok", "brokers"),
            ("ok", "topics"),
            ("ok", "topics"),
            ("ok", "disks"),
        ]


def test_what_keeps_a_client_out_is_told_apart(folder: Path, address: str, ca: tuple[str, str]) -> None:
    assert only_problem(address).startswith(f"{address} speaks TLS (this very process (")
    untrusted = only_problem(address, *BOB, "--ca", str(folder / "another.pem"))
    assert untrusted.startswith(f"{address} shows a certificate (this very process (")
    assert only_problem(address, *ca) == (
        f"{address} closes the connection as soon as it is asked for metadata: it wants the client to "
        "authenticate first (SASL), or refuses it."
    )
    assert only_problem(address, "--user", "bob:wrong", *ca) == (
        f"{address} does not let this user in: Authentication failed: Invalid username or password."
    )


def test_a_mechanism_that_the_broker_does_not_offer_is_named(
    address: str, ca: tuple[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("sasl.mechanism=SCRAM-SHA-256\n")
    assert only_problem(address, "--command-config", str(file), *BOB, *ca) == (
        f"{address} does not let this user in: The broker offers PLAIN, and not SCRAM-SHA-256."
    )


def test_tls_and_a_user_for_a_listener_without_are_told_apart(
    broker: str, folder: Path, ca: tuple[str, str]
) -> None:
    assert only_problem(broker, *BOB, *ca) == (
        f"{broker} speaks Kafka's protocol without TLS, and this client is to use TLS."
    )
    assert only_problem(broker, *BOB).startswith(f"{broker} does not let this user in: ")


def test_a_user_without_rights_is_told_which(address: str, ca: tuple[str, str]) -> None:
    checked = found(address, *ALICE, *ca)
    assert ("ok", "connection", f"{address} speaks Kafka's protocol.") in checked
    assert all(level != "problem" or "uthoriz" in message for level, _, message in checked), checked


def test_passwords_are_not_shown(folder: Path, address: str, ca: tuple[str, str]) -> None:
    for words in (("--user", "bob:bob-secreT"), ("--command-config", config_of_bob(folder, "bob-secreT"))):
        result = run_command("doctor", address, *words, *ca, "--json")
        assert result.status == 1
        assert "secreT" not in result.out + result.err
