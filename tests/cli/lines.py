"""A line for each command that asks a cluster, for tests of what they have in common."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from pykafka_broker.cli import cli
from tests.cli.conftest import formatted_controller
from tests.cli.test_security import leaves

#: What each command that asks a cluster is given here; {} are files. `spark` reads records, and
#: `metadata shell` the metadata log, from either.
LINES = {
    "cluster status": "",
    "topics alter": "orders -p 2",
    "topics create": "more",
    "topics delete": "other --if-exists",
    "topics describe": "",
    "topics list": "",
    "topics profile": "orders",
    "groups delete": "nothing",
    "groups describe": "",
    "groups list": "",
    "groups reset-offsets": "nothing --topic orders --to-earliest",
    "share-groups delete": "nothing",
    "share-groups delete-offsets": "nothing --topic orders",
    "share-groups describe": "",
    "share-groups list": "",
    "share-groups reset-offsets": "nothing --topic orders --to-earliest",
    "produce": "orders hello",
    "consume": "orders --until end",
    "configs alter": "--topic orders --set retention.ms=1000000",
    "configs describe": "--topic orders",
    "quotas describe": "",
    "quotas remove": "--user carol producer_byte_rate",
    "quotas set": "--user carol producer_byte_rate=1000",
    "acls add": "--allow-principal User:carol --topic orders",
    "acls list": "",
    "acls remove": "--allow-principal User:carol --topic orders",
    "users delete": "carol",
    "users list": "",
    "users set": "carol --password-file {password}",
    "tokens create": "",
    "tokens describe": "",
    "tokens expire": "AAAA",
    "tokens renew": "AAAA",
    "features describe": "",
    "features downgrade": "transaction.version=1 --dry-run",
    "features upgrade": "transaction.version=2 --dry-run",
    "quorum add-controller": "--config {controller}",
    "quorum describe": "",
    "quorum remove-controller": "--id 9 --directory-id AAAAAAAAAAAAAAAAAAAAAQ",
    "brokers disks": "",
    "brokers list": "",
    "brokers unregister": "9 --force",
    "elections preferred": "orders:0",
    "elections unclean": "orders:0",
    "reassign cancel": "{plan}",
    "reassign list": "",
    "reassign plan": "",
    "reassign run": "{plan}",
    "reassign status": "{plan}",
    "health": "",
    "doctor": "--watch 0.1",
    "explain group": "nothing",
    "explain partition": "orders-0",
    "explain producer": "payments",
    "explain request": "carol",
}


def lines_in(folder: Path) -> dict[str, list[str]]:
    """The words of each command, whose files are made in the folder."""
    (folder / "password").write_text("secret\n")
    place = {"topic": "orders", "partition": 0, "replicas": [4]}
    (folder / "plan.json").write_text(json.dumps({"version": 1, "partitions": [place]}))
    files = {
        "password": folder / "password",
        "plan": folder / "plan.json",
        "controller": formatted_controller(folder / "controller"),
    }
    return {name: [*name.split(), *words.format(**files).split()] for name, words in LINES.items()}


def asking() -> Iterator[tuple[str, click.Command]]:
    """The commands that `LINES` is about."""
    for name, command in leaves(cli):
        if "--bootstrap-server" in options_of(command) and not name.startswith(("spark ", "metadata ")):
            yield name, command


def options_of(command: click.Command) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}
