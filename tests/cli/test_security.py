"""Commands that talk to brokers with SASL and TLS: `--command-config`, `--user` and `--ca`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from javaproperties import join_key_value

from pykafka_broker import Broker, Security, load_config
from pykafka_broker.cli import cli
from pykafka_broker.cli.cluster import Cluster
from pykafka_broker.testing.apache.tools import run_tool
from tests.cli.conftest import run_command
from tests.cli.secured import PLAIN_LOGIN, config_of_bob, make_certificates, secured_broker


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with secured_broker(folder) as address:
        yield address


@pytest.fixture(autouse=True)
def asked(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYKAFKA_BROKER_BOOTSTRAP_SERVER", address)


def told(*words: str) -> tuple[int, str]:
    """The status and the error."""
    done = run_command(*words)
    return done.status, done.err


def test_a_file_of_client_properties_says_who_asks(folder: Path) -> None:
    of_bob = ("--command-config", config_of_bob(folder))
    assert run_command("topics", "create", "of-bob", *of_bob).out == "Created topic of-bob.\n"
    assert "of-bob" in run_command("topics", "list", *of_bob).out.split()


def test_a_user_and_an_authority_are_enough(folder: Path) -> None:
    """SCRAM is tried first; the broker says that it has PLAIN alone."""
    of_bob = ("--user", "bob:bob-secret", "--ca", str(folder / "ca.pem"))
    assert run_command("topics", "create", "short", *of_bob).status == 0
    alice = ("--user", "alice:alice-secret", "--ca", str(folder / "ca.pem"))
    assert told("topics", "create", "of-alice", *alice) == (1, "Error: Authorization failed.\n")


def test_a_password_need_not_stand_in_the_list_of_processes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYKAFKA_BROKER_PASSWORD", "bob-secret")
    assert told("topics", "list", "--user", "bob", "--ca", str(folder / "ca.pem")) == (0, "")


def test_other_programs_get_the_same_security_in_the_keys_of_kafkas_clients(
    folder: Path, address: str
) -> None:
    """Such as Spark: with the mechanism that the broker offers, and the authority itself."""
    cluster = Cluster(address, 30.0, login="bob:bob-secret", ca=str(folder / "ca.pem"))
    properties = cluster.client_properties()
    assert "BEGIN CERTIFICATE" in properties.pop("ssl.truststore.certificates")
    module = properties.pop("sasl.jaas.config")
    assert module.endswith('required username="bob" password="bob-secret";')
    assert properties == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "ssl.truststore.type": "PEM",
    }
    assert Cluster(address, 30.0).client_properties() == {}


def test_commands_about_users_call_the_own_one_login(folder: Path) -> None:
    words = ("quotas", "describe", "--user", "carol", "--login", "bob:bob-secret")
    assert told(*words, "--ca", str(folder / "ca.pem")) == (0, "")


def test_a_wrong_password_is_told_as_the_broker_tells_it(folder: Path) -> None:
    text = "Error: Authentication failed: Invalid username or password\n"
    assert told("topics", "list", "--command-config", config_of_bob(folder, "wrong")) == (1, text)


def test_a_user_of_another_mechanism_than_the_strongest_is_told_how_to_say_so(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    of_bob = ("--user", "bob:bob-secret", "--ca", str(tmp_path / "ca.pem"))
    (tmp_path / "plain.properties").write_text("sasl.mechanism=PLAIN\n")
    with secured_broker(tmp_path, "PLAIN,SCRAM-SHA-512") as address:
        assert told("topics", "list", "-b", address, *of_bob) == (
            1,
            "Error: Authentication failed during authentication due to invalid credentials with SASL "
            "mechanism SCRAM-SHA-512; SCRAM-SHA-512 was used; where the user has a password for PLAIN, say "
            "so with sasl.mechanism in --command-config\n",
        )
        plain = ("--command-config", str(tmp_path / "plain.properties"))
        assert told("topics", "list", "-b", address, *of_bob, *plain) == (0, "")
        wrong = ("--user", "bob:wrong", "--ca", of_bob[-1], *plain)
        status, error = told("topics", "list", "-b", address, *wrong)
        assert (status, "sasl.mechanism" in error) == (1, False), "the mechanism was given"


def test_a_certificate_that_nothing_vouches_for_ends_the_command(folder: Path) -> None:
    status, error = told("topics", "list", "--user", "bob:x", "--ca", str(folder / "another.pem"))
    assert status == 1
    assert "is not trusted: " in error


def test_who_names_no_user_is_told_the_option(folder: Path) -> None:
    status, error = told("topics", "list", "--ca", str(folder / "ca.pem"))
    assert status == 1
    assert error.endswith("a broker with SASL or TLS needs --user, or --command-config\n")


#: Its visitors sign in: it has no user of its own.
WITH_SIGN_IN = {"console"}
#: The commands that talk to no broker, or to those of a cluster on this machine.
LOCAL = {
    "start",
    *(f"cluster {name}" for name in ("add-node", "kill", "nodes", "pause", "resume", "start", "stop")),
    "format",
    "certs",
    "dump-log",
    *(f"log {name}" for name in ("dump", "repair", "stats", "verify")),
    *(f"spark {name}" for name in ("compact", "conf", "dead-letters", "jars")),
    "version",
    "completion",
}


def test_every_command_that_talks_to_a_cluster_takes_its_security() -> None:
    commands = dict(leaves(cli))
    secured = {name for name, command in commands.items() if is_secured(command)}
    assert commands.keys() - secured == LOCAL | WITH_SIGN_IN
    with_brokers = {
        name
        for name, command in commands.items()
        if any(option.startswith("--bootstrap") for parameter in command.params for option in parameter.opts)
    }
    assert with_brokers - secured == WITH_SIGN_IN


def leaves(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """The commands that are no groups, by their words."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for word in command.list_commands(context):
        inner = command.get_command(context, word)
        assert inner is not None
        yield from leaves(inner, f"{name} {word}".strip())


def is_secured(command: click.Command) -> bool:
    options = {option for parameter in command.params for option in parameter.opts}
    return {"--command-config", "--ca"} <= options and bool({"--user", "--login"} & options)


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        (
            "security.protocol=SSH",
            "security.protocol SSH is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        (
            "security.protocol=SASL_SSL",
            "sasl.mechanism GSSAPI is none of SCRAM-SHA-512, SCRAM-SHA-256, PLAIN, OAUTHBEARER",
        ),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN", "sasl.jaas.config is missing"),
        (
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={PLAIN_LOGIN};",
            "sasl.jaas.config has no username and password",
        ),
    ],
)
def test_properties_that_cannot_be_had_are_named(tmp_path: Path, properties: str, text: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(properties)
    assert told("topics", "list", "--command-config", str(file)) == (1, f"Error: {file}: {text}\n")


@pytest.fixture
def file_of_alice(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The address of a broker, and a file of the properties that its object tells for a user."""
    users = {"alice": 'qu"ot\\ed, =;é'}
    config = load_config(data_dir=tmp_path / "data", listen="127.0.0.1:0")
    with Broker(config, security=Security(users, super_users=users, tls=True)) as broker:
        properties = broker.client_settings("alice").java
        assert all(len(value.splitlines()) == 1 for value in properties.values())
        file = tmp_path / "alice.properties"
        file.write_text("\n".join(join_key_value(key, value) for key, value in properties.items()))
        yield broker.bootstrap_servers, str(file)


def test_the_properties_of_a_secured_broker_are_a_command_config(file_of_alice: tuple[str, str]) -> None:
    address, file = file_of_alice
    done = run_command("topics", "create", "orders", "-b", address, "--command-config", file)
    assert (done.status, done.out) == (0, "Created topic orders.\n")


@pytest.mark.slow
def test_apaches_tools_take_them_too(file_of_alice: tuple[str, str]) -> None:
    address, file = file_of_alice
    created = run_tool(
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", address, "--command-config", file, "--create", "--topic", "orders"),
    )
    assert created == "Created topic orders.\n"
