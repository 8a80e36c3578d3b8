"""docs/security.md is typed from its top to its end, in one shell."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pykafka_broker.config.broker import BROKER_KEYS
from pykafka_broker.config.keys import UNHEEDED
from pykafka_broker.config.sasl_listeners import LOGIN_MODULES
from pykafka_broker.config.sources import load_config
from tests.support.pages import ADDRESS, blocks, commands, matches, run, shown_output
from tests.test_cluster_page import PORTS, Shell, free_ports

PAGE = "docs/security.md"
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


def test_the_commands_of_the_page_do_what_it_shows(tmp_path: Path) -> None:
    ports = free_ports()
    files = named_files(Path(PAGE).read_text())
    assert sorted(files) == ["admin.properties", "cluster.properties", "server.properties"]
    for name, text in files.items():
        (tmp_path / name).write_text(text.replace(PORTS, ports))
    shell = Shell(tmp_path)
    try:
        for session in blocks(PAGE, "console"):
            for line, shown in commands(session):
                printed = shell.type(line.replace(PORTS, ports))
                assert not shown or matches(printed, shown), f"$ {line}\n{printed}\nis not\n{shown}"
                if "acls add" in line and "payments" in line:
                    shell.type(KNOWN_TO_ALL.replace(PORTS, ports))
            for log in re.findall(r"pykafka-broker start .* > (\S+)", session):
                shell.type(
                    f"for log in {log.replace('$n', '?')}; do "
                    "until grep -q 'Kafka Server started' $log; do sleep 0.1; done; done"
                )
        consumer, _ = blocks(PAGE, "python")
        compile(consumer, PAGE, "exec")
    finally:
        shell.end()


def test_the_program_with_a_secured_broker_prints_what_its_comments_say(tmp_path: Path) -> None:
    _, program = blocks(PAGE, "python")
    printed = run([sys.executable, "-c", program], ADDRESS, tmp_path)
    assert printed.splitlines() == shown_output(program)


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
    own = dict(line.split("=", 1) for line in text.replace("/etc/kafka", str(tmp_path)).splitlines())
    clients = dict(
        line.split("=", 1)
        for line in named_files(Path(PAGE).read_text())["server.properties"].splitlines()
        if "=" in line
    )
    listeners = {"listeners": "CLIENTS://:19091,INTERNAL://:19092,CONTROLLER://:19093"}
    config = load_config(
        overrides=[f"{key}={value}" for key, value in {**clients, **own, **listeners}.items()]
    )
    assert config.authorizer is not None
    assert config.authorizer.super_users == {"User:node", "User:admin"}
