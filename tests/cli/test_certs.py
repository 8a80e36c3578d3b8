"""`certs`: an authority, and keys and certificates that brokers and clients can use."""

from __future__ import annotations

import json
import ssl
import subprocess
from pathlib import Path

import pytest

from pykafka_broker.tls.stores import StoreSettings, read_key_store
from tests.cli.conftest import RunningBroker, run_command


def made(folder: Path, *words: str) -> dict[str, bool]:
    """File -> whether it was made now."""
    done = run_command("certs", str(folder), *words, "--json")
    assert done.status == 0, done.err
    return {Path(one["file"]).name: one["is_new"] for one in json.loads(done.out)["files"]}


def test_a_broker_and_its_clients_trust_each_other(tmp_path: Path) -> None:
    assert all(made(tmp_path, "--client", "alice").values())
    settings = {
        "listeners": "CLIENTS://127.0.0.1:0,INSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
    }
    client = tmp_path / "alice.properties"
    client.write_text(
        "security.protocol=SSL\nssl.truststore.type=PEM\nssl.keystore.type=PKCS12\n"
        f"ssl.truststore.location={tmp_path / 'ca.pem'}\nssl.keystore.location={tmp_path / 'alice.p12'}\n"
        "ssl.keystore.password=changeit\nssl.key.password=changeit\n"
    )
    with RunningBroker(
        tmp_path / "data", None, [f"{key}={value}" for key, value in settings.items()]
    ) as broker:
        words = ("-b", broker.address, "--command-config", str(client))
        assert run_command("topics", "create", "t", *words).out == "Created topic t.\n"


def test_what_there_is_stays_and_more_clients_are_added(tmp_path: Path) -> None:
    made(tmp_path, "--client", "alice")
    before = (tmp_path / "server.pem").read_bytes()

    again = made(tmp_path, "--client", "alice", "--client", "bob")
    assert {name for name, is_new in again.items() if is_new} == {"bob.pem", "bob.p12"}
    assert (tmp_path / "server.pem").read_bytes() == before

    renewed = made(tmp_path, "--renew")
    assert {name for name, is_new in renewed.items() if is_new} == {"server.pem", "server.p12"}
    assert (tmp_path / "server.pem").read_bytes() != before


def test_files_that_an_interrupted_command_has_not_made_are_not_said_to_be_kept(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "server.p12").unlink()
    again = made(tmp_path)
    assert {name for name, is_new in again.items() if is_new} == {"server.pem", "server.p12"}
    assert (tmp_path / "server.p12").exists()


def test_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    made(tmp_path, "--client", "alice")
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes.pop("ca.pem") & 0o044
    assert set(modes.values()) == {0o600}


def test_a_certificate_names_the_hosts_that_were_given(tmp_path: Path) -> None:
    made(tmp_path, "--host", "kafka.example.org", "--host", "10.0.0.7")
    [key] = read_key_store(StoreSettings("PKCS12", str(tmp_path / "server.p12"), "changeit"))
    (tmp_path / "one.pem").write_bytes(key.certificates)
    shown = ssl._ssl._test_decode_cert(str(tmp_path / "one.pem"))  # type: ignore[attr-defined]
    assert shown["subjectAltName"] == (("DNS", "kafka.example.org"), ("IP Address", "10.0.0.7"))


def test_openssl_accepts_the_chain(tmp_path: Path) -> None:
    made(tmp_path, "--client", "alice")
    for name in ("server", "alice"):
        command = ["openssl", "verify", "-x509_strict", "-CAfile", "ca.pem", f"{name}.pem"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stdout == f"{name}.pem: OK\n", done.stderr


@pytest.mark.parametrize("user", ["", "ca", "server", "a/b"])
def test_a_user_whose_files_would_be_others_is_refused(tmp_path: Path, user: str) -> None:
    refused = run_command("certs", str(tmp_path), "--client", user)
    assert (refused.status, "cannot be the name of its files" in refused.err) == (2, True)


def test_an_authority_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "ca.key").write_text("no key")
    refused = run_command("certs", str(tmp_path), "--client", "alice")
    assert (refused.status, refused.err.startswith("Error: The authority cannot be read: ")) == (1, True)
