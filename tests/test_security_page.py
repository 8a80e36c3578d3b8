"""docs/security.md is typed from its top to its end, in one shell, and its programs are run; docs/tokens.md
and docs/oauth.md are followed in this process.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from pykafka_broker import Broker, Security
from pykafka_broker.config.authorizer import AUTHORIZER_KEYS
from pykafka_broker.config.broker import BROKER_KEYS, DYNAMIC_ONLY_KEYS
from pykafka_broker.config.keys import ACTS, UNHEEDED
from pykafka_broker.config.sasl_listeners import LOGIN_MODULES
from pykafka_broker.config.sources import load_config
from pykafka_broker.config.topic import TOPIC_KEYS
from pykafka_broker.testing.issuer import issuing
from pykafka_broker.testing.processes import free_port
from tests.cli.conftest import RunningBroker, run_command
from tests.support.pages import ADDRESS, blocks, commands, matches, run, shown_output
from tests.test_cluster_page import PORTS, Shell, free_ports

PAGE = "docs/security.md"
TOKENS = "docs/tokens.md"
OAUTH = "docs/oauth.md"
#: Returns when each node of the cluster of the page knows the user and the ACLs: any may be asked next.
KNOWN_TO_ALL = (
    f"for n in 1 2 3; do until pykafka-broker acls list --bootstrap-server 127.0.0.1:{PORTS}$n "
    "| grep -q User:writer; do :; done; done"
)


def named_files(page: str) -> dict[str, str]:
    """The properties files of the page, each below its name."""
    return dict(
        re.findall(r"`([a-z]+\.properties)`:\n\n```properties\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    )


def settings(text: str, folder: Path) -> dict[str, str]:
    """The keys and values of a block, whose /etc/kafka is the folder."""
    lines = text.replace("/etc/kafka", str(folder)).splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def trusting(folder: Path) -> str:
    """The properties of a client that trusts the authority in the folder."""
    return f"ssl.truststore.type=PEM\nssl.truststore.location={folder / 'ca.pem'}\n"


def test_the_commands_of_the_page_do_what_it_shows(tmp_path: Path) -> None:
    ports = free_ports()
    page = Path(PAGE).read_text()
    files = named_files(page)
    assert sorted(files) == ["admin.properties", "cluster.properties", "server.properties"]
    for name, text in files.items():
        (tmp_path / name).write_text(text.replace(PORTS, ports))
    shell = Shell(tmp_path)
    try:
        for language, block in re.findall(r"```(console|python)\n(.*?)```", page, re.DOTALL):
            if language == "python":
                if PORTS in block:
                    program = [sys.executable, "-c", block.replace(PORTS, ports)]
                    assert run(program, ADDRESS, tmp_path).splitlines() == shown_output(block)
                continue
            for line, shown in commands(block):
                printed = shell.type(line.replace(PORTS, ports))
                assert not shown or matches(printed, shown), f"$ {line}\n{printed}\nis not\n{shown}"
                if "acls add" in line and "payments" in line:
                    shell.type(KNOWN_TO_ALL.replace(PORTS, ports))
            for log in re.findall(r"pykafka-broker start .* > (\S+)", block):
                shell.type(
                    f"for log in {log.replace('$n', '?')}; do "
                    "until grep -q 'Kafka Server started' $log; do sleep 0.1; done; done"
                )
        assert shell.type("find data -perm /077") == "", "the umask keeps the data folder from others"
    finally:
        shell.end()


def test_the_program_with_a_secured_broker_prints_what_its_comments_say(tmp_path: Path) -> None:
    _, program = blocks(PAGE, "python")
    printed = run([sys.executable, "-c", program], ADDRESS, tmp_path)
    assert printed.splitlines() == shown_output(program)


def test_the_command_of_the_page_opens_a_listener_that_has_shut_out_clients_without_certificates(
    tmp_path: Path,
) -> None:
    [command] = re.findall(r"`pykafka-broker (configs alter [^`]*ssl\.client\.auth)`", Path(PAGE).read_text())
    assert run_command("certs", str(tmp_path), "--client", "alice").status == 0
    with_certificate = tmp_path / "alice.properties"
    with_certificate.write_text(
        f"security.protocol=SSL\n{trusting(tmp_path)}"
        f"ssl.keystore.type=PEM\nssl.keystore.location={tmp_path / 'alice.pem'}\n"
    )
    overrides = {
        "listeners": "CLIENTS://127.0.0.1:0,INSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
    }
    data = tmp_path / "data"
    with RunningBroker(data, None, [f"{key}={value}" for key, value in overrides.items()]) as broker:
        without = ("-b", broker.address, "--ca", str(tmp_path / "ca.pem"))
        shutting = command.replace("--delete", "--set") + "=required"
        assert run_command(*shlex.split(shutting), *without).status == 0
        assert run_command("topics", "list", *without).status == 1
        alice = ("-b", broker.address, "--command-config", str(with_certificate))
        deleted = run_command(*shlex.split(command), *alice)
        assert deleted.status == 0, deleted.err
        assert run_command("topics", "list", *without).status == 0


def test_a_job_logs_in_with_a_token_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_broker, of_job = blocks(TOKENS, "properties")
    [create] = blocks(TOKENS, "shell")
    (tmp_path / "secrets.properties").write_text("tokens=the key of tokens\n")
    config = load_config(
        data_dir=tmp_path / "data", listen="127.0.0.1:0", overrides=settings(of_broker, tmp_path)
    )
    alice, job = tmp_path / "alice.properties", tmp_path / "job.properties"
    with Broker(config, security=Security({"alice": "alice-secret"}, tls=True)) as broker:
        monkeypatch.setenv("PYKAFKA_BROKER_BOOTSTRAP_SERVER", broker.bootstrap_servers)
        of_alice = broker.client_settings("alice")
        (tmp_path / "ca.pem").write_text(of_alice.authority or "")
        alice.write_text(
            f"security.protocol=SASL_SSL\nsasl.mechanism={of_alice.mechanism}\n"
            f"sasl.jaas.config={of_alice.java['sasl.jaas.config']}\n{trusting(tmp_path)}"
        )
        words = shlex.split(create.replace(alice.name, str(alice)))[1:]
        created = run_command(*words, "--json")
        assert created.status == 0, created.err
        [token] = json.loads(created.out)["tokens"]
        assert (token["owner"], token["renewers"]) == ("User:alice", ["User:spark"])

        login = of_job.replace("TOKENID", token["token_id"]).replace("HMAC", token["hmac"])
        job.write_text(login + trusting(tmp_path))
        done = run_command("topics", "create", "orders", "--command-config", str(job))
        assert done.out == "Created topic orders.\n", done.err
        another = run_command("tokens", "create", "--command-config", str(job))
        assert another.status == 1, "who has logged in with a token gets no other"


def test_a_command_logs_in_with_a_token_of_an_identity_provider_as_the_page_says(tmp_path: Path) -> None:
    of_listener, of_nodes = blocks(OAUTH, "properties")
    assert run_command("certs", str(tmp_path)).status == 0
    (tmp_path / "secrets.properties").write_text("client.secret=node-secret\n")
    client = tmp_path / "client.properties"
    with issuing({"node": "node-secret"}) as issuer:
        broker_keys = settings(of_listener.replace("https://issuer.example", issuer.url), tmp_path) | {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(tmp_path / "server.pem"),
        }
        broker_keys["listeners"] = re.sub(r":\d+", lambda _: f":{free_port()}", broker_keys["listeners"])
        node_keys = settings(of_nodes.replace("https://issuer.example", issuer.url), tmp_path)
        nodes = load_config(overrides={**broker_keys, **node_keys, "inter.broker.listener.name": "CLIENTS"})
        assert nodes.values["sasl.oauthbearer.client.credentials.client.secret"] == "node-secret"

        login = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
        client.write_text(
            "".join(f"{key}={value}\n" for key, value in node_keys.items())
            + "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
            + f"sasl.jaas.config={login}\n{trusting(tmp_path)}"
        )
        overrides = [f"{key}={value}" for key, value in broker_keys.items()]
        with RunningBroker(tmp_path / "data", None, overrides) as broker:
            as_node = ("-b", broker.address, "--command-config", str(client))
            done = run_command("topics", "create", "orders", *as_node)
            assert done.out == "Created topic orders.\n", done.err


def test_the_keys_of_the_table_have_an_effect() -> None:
    """`sasl.login.*` and `leader.` stand for all keys that begin so, `.scope` for those that end so. Keys
    that name classes are left out: some classes are refused, as code for Java.
    """
    keys = (*BROKER_KEYS, *DYNAMIC_ONLY_KEYS, *TOPIC_KEYS, *AUTHORIZER_KEYS)
    handling = {key.name: key.handling for key in keys}
    table = Path(PAGE).read_text().partition("## What the keys do")[2].partition("\nA key with")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) > 20
    without_effect = {}
    for name in re.findall(r"`([^`]+)`", "".join(rows)):
        pattern = f"*{name}" if name.startswith(".") else f"{name}*" if name.endswith(".") else name
        meant = {key for key in handling if fnmatch(key, pattern) and not key.endswith(".class")}
        if {handling[key] for key in meant} != {ACTS}:
            without_effect[name] = meant
    assert without_effect == {}


def test_what_is_said_to_be_missing_is_not_served() -> None:
    missing = Path(PAGE).read_text().partition("## What is missing")[2]
    assert "Kerberos" in missing and "GSSAPI" not in LOGIN_MODULES
    assert "`sasl.oauthbearer.assertion.*`" in missing
    assert {key.handling for key in BROKER_KEYS if key.name.startswith("sasl.oauthbearer.assertion.")} == {
        UNHEEDED
    }
    mechanisms = [name for name in LOGIN_MODULES if name not in Path(PAGE).read_text()]
    assert mechanisms == [], "the page tells how users log in by them"


def test_the_properties_of_a_cluster_are_accepted(tmp_path: Path) -> None:
    text = next(block for block in blocks(PAGE, "properties") if "INTERNAL" in block)
    (tmp_path / "secrets.properties").write_text("node=node-secret\n")
    clients = settings(named_files(Path(PAGE).read_text())["server.properties"], tmp_path)
    listeners = {"listeners": "CLIENTS://:19091,INTERNAL://:19092,CONTROLLER://:19093"}
    config = load_config(overrides={**clients, **settings(text, tmp_path), **listeners})
    assert config.authorizer is not None
    assert config.authorizer.super_users == {"User:node", "User:admin"}
