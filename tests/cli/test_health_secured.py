"""`health` of secured brokers: as a user, and as a stranger who has their server.properties."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pykafka_broker.cli.health import DEGRADED_STATUS
from pykafka_broker.testing.processes import free_port
from tests.cli.conftest import Result, RunningBroker, run_command
from tests.cli.secured import PLAIN_LOGIN, config_of_bob, make_certificates

SECURED = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners={listeners},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=CLIENTS:{protocol},INSIDE:{inside},CONTROLLER:PLAINTEXT
inter.broker.listener.name=INSIDE
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.clients.plain.sasl.jaas.config={login} user_bob="bob-secret";
listener.name.inside.plain.sasl.jaas.config={login} username="bob" password="x" user_bob="x";
ssl.keystore.type=PEM
ssl.keystore.location={folder}/server.pem
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:bob;User:ANONYMOUS
log.dirs={folder}/data
"""


class Secured:
    """A broker with a secured listener, and the file that it was started with."""

    def __init__(self, folder: Path, protocol: str, inside: str = "", more: str = "") -> None:
        make_certificates(folder)
        ports = free_port(), free_port()
        self.address, self.inside = (f"127.0.0.1:{port}" for port in ports)
        self.certified = ""
        self.file = folder / "server.properties"
        listeners = f"CLIENTS://{self.address},INSIDE://{self.inside}"
        text = SECURED.format(
            controller=free_port(),
            listeners=listeners,
            protocol=protocol,
            inside=inside or protocol,
            login=PLAIN_LOGIN,
            folder=folder,
        )
        self.file.write_text(text + more)

    @contextmanager
    def running(self) -> Iterator[None]:
        overrides = [line for line in self.file.read_text().splitlines() if line]
        with RunningBroker(self.file.parent / "data", None, overrides):
            yield

    def health(self, *options: str) -> Result:
        return run_command("health", "--config", str(self.file), *options)


def checked(result: Result) -> str:
    assert result.status == 0, result.err
    return str(json.loads(result.out)["checked"])


def test_without_a_user_a_listener_with_sasl_is_asked_for_its_versions(tmp_path: Path) -> None:
    """It was closed by the broker, and a container with a secured broker was never healthy."""
    secured = Secured(tmp_path, "SASL_SSL")
    assert secured.health().status == 1
    with secured.running():
        told = (
            f"healthy: a broker at {secured.address}, which tells no more without --user or --command-config"
        )
        assert secured.health() == (0, f"{told}\n", "")
        assert secured.health("--alive").status == 0
        assert secured.health("--ready").status == DEGRADED_STATUS, "a stranger is not told"
        assert checked(secured.health("--json")) == "versions"


def test_a_user_is_told_all(tmp_path: Path) -> None:
    secured = Secured(tmp_path, "SASL_SSL")
    file = config_of_bob(tmp_path)
    short = ("--user", "bob:bob-secret", "--ca", str(tmp_path / "ca.pem"))
    with secured.running():
        for login in (("--command-config", file), short):
            assert checked(secured.health("--json", *login)) == "metadata"
            assert checked(run_command("health", secured.address, "--json", *login)) == "metadata"
        refused = secured.health("--user", "bob:wrong", *short[2:])
        assert refused.status == DEGRADED_STATUS, "it answers"
        first, second = refused.out.splitlines()
        assert first == f"degraded: a broker or controller answers at {secured.address}"
        assert second.startswith("  it tells this command no more: ")
        assert secured.health("--user", "bob:bob-secret") == (
            1,
            "",
            "Error: No listener of this broker has SASL_PLAINTEXT: they have SASL_SSL\n",
        )


@pytest.fixture(scope="module")
def in_each_way(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with two listeners for users, and one for those who show a certificate."""
    folder = tmp_path_factory.mktemp("secured")
    secured = Secured(folder, "SASL_SSL", inside="SASL_PLAINTEXT")
    secured.certified = f"127.0.0.1:{free_port()}"
    text = secured.file.read_text()
    text = text.replace("\nlisteners=", f"\nlisteners=CERTIFIED://{secured.certified},")
    text = text.replace("protocol.map=", "protocol.map=CERTIFIED:SSL,")
    secured.file.write_text(f"{text}listener.name.certified.ssl.client.auth=required\n")
    with secured.running():
        yield secured


@pytest.mark.parametrize("listener", ["address", "inside", "certified"])
def test_a_broker_that_lets_nobody_in_is_alive(
    in_each_way: Secured, listener: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A liveness probe restarted every broker after its user's password was changed."""
    address = getattr(in_each_way, listener)
    ca = str(in_each_way.file.parent / "ca.pem")
    unread = tmp_path / "unread.properties"
    unread.write_text("security.protocol=NONE\nssl.keystore.location=/nowhere\n")
    distrusting = str(in_each_way.file.parent / "another.pem")
    wrong = config_of_bob(in_each_way.file.parent, "wrong")
    checked_by = "handshake" if listener == "certified" else "versions"
    for file in ("", wrong, str(unread)):
        for options in ((), ("--user", "bob:wrong"), ("--user", "bob"), ("--ca", ca), ("--ca", distrusting)):
            with monkeypatch.context() as patch:
                if file:
                    patch.setenv("PYKAFKA_BROKER_COMMAND_CONFIG", file)
                assert checked(run_command("health", address, "--alive", "--json", *options)) == checked_by
                assert in_each_way.health("--alive", *options).status == 0


@pytest.mark.parametrize("stage", [(), ("--serving",), ("--ready",)], ids=" ".join)
@pytest.mark.parametrize(
    "credentials", [(), ("--ca", "another.pem"), ("--user", "bob:wrong", "--ca", "ca.pem")], ids=" ".join
)
def test_a_broker_that_does_not_let_the_command_in_is_no_more_than_alive(
    in_each_way: Secured, stage: tuple[str, ...], credentials: tuple[str, ...]
) -> None:
    folder = in_each_way.file.parent
    options = [str(folder / word) if word.endswith(".pem") else word for word in credentials]
    result = run_command("health", in_each_way.address, "--json", *stage, *options)
    assert (result.status, result.err) == (DEGRADED_STATUS, "")
    shown = json.loads(result.out)
    assert (shown["status"], shown["stage"], shown["checked"]) == ("degraded", "alive", "versions")
    [problem] = shown["problems"]
    assert problem["problem"] == "not told"
    assert problem["text"].startswith("it tells this command no more: ")


@pytest.mark.parametrize("options", [(), ("--ca", "ca.pem")], ids=" ".join)
def test_what_accepts_connections_and_says_nothing_is_not_alive(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    make_certificates(tmp_path)
    paths = [str(tmp_path / word) if word.endswith(".pem") else word for word in options]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        assert run_command("health", address, "--alive", "--timeout", "0.2", *paths).status == 1
    assert run_command("health", address, "--alive", *paths).status == 1


def test_a_listener_without_security_is_asked_first(tmp_path: Path) -> None:
    secured = Secured(tmp_path, "SASL_SSL", inside="PLAINTEXT")
    with secured.running():
        result = secured.health("--json")
        assert checked(result) == "metadata"
        assert json.loads(result.out)["address"] == secured.inside


def test_with_tls_alone_a_stranger_is_told_all(tmp_path: Path) -> None:
    secured = Secured(tmp_path, "SSL")
    with secured.running():
        assert checked(secured.health("--json")) == "metadata"


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_where_a_certificate_is_required_the_handshake_is_enough(tmp_path: Path, version: str) -> None:
    asks = f"ssl.client.auth=required\nssl.enabled.protocols={version}\n"
    secured = Secured(tmp_path, "SSL", more=asks)
    with secured.running():
        assert checked(secured.health("--json")) == "handshake"
    with socket.create_server(("127.0.0.1", int(secured.address.rpartition(":")[2]))):
        silent = secured.health("--timeout", "0.2")
    assert (silent.status, silent.err) == (
        1,
        f"Error: {secured.address} does not answer a handshake of TLS\n",
    )


def test_the_health_check_of_a_container_finds_a_secured_broker_healthy(tmp_path: Path) -> None:
    """docker/health, with the file where a container has it."""
    secured = Secured(tmp_path, "SASL_SSL")
    script = Path("docker/health").read_text().replace("/mnt/shared/config", str(tmp_path))
    commands = tmp_path / "bin"
    commands.mkdir()
    command = commands / "pykafka-broker"
    command.write_text(f'#!/bin/bash\nexec {sys.executable} -m pykafka_broker "$@"\n')
    command.chmod(0o755)
    with secured.running():
        done = subprocess.run(
            ["bash", "-c", f"PATH={commands}:$PATH; {script}"], capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"healthy: a broker at {secured.address}, ")
