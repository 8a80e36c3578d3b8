"""`users`: show, set and delete the credentials of SCRAM users."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from typing import Any

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.cells import Column, Table
from pykafka_broker.cli.cluster import Cluster, cluster_options, cluster_or_controller_options
from pykafka_broker.cli.options import INT32_MAX
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.system.named_tuple import NamedTuple

#: The mechanisms by their numbers in the protocol.
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
STRONGEST = MECHANISMS[2]
#: The default of kafka-configs.sh; a broker takes 4096 to 16384.
DEFAULT_ITERATIONS = 4096
SALT_BYTES = 20


class Credential(NamedTuple):
    """A user's credential for a mechanism; the password itself is not stored."""

    user: str
    mechanism: str
    iterations: int


class Changed(NamedTuple):
    """A user whose password was set or deleted."""

    user: str
    mechanism: str


@click.group(cls=Group)
def users() -> None:
    """List, set and delete users with passwords (SCRAM)."""


@users.command("list")
@click.argument("names", nargs=-1, metavar="[NAME…]")
@cluster_options
@json_option(Credential, key="users")
def list_(names: tuple[str, ...], cluster: Cluster, output: Output) -> None:
    """List users, with their mechanisms and iterations.

    Exit status 1 if one that is named has no password.
    """
    with cluster.connect() as client:
        found, missing = credentials(client, names)
    output.show_all(
        found,
        [
            f"SCRAM credential configs for user-principal '{one.user}' are "
            f"{one.mechanism}=iterations={one.iterations}"
            for one in found
        ],
        [credential_table(found)],
    )
    for result in missing:
        check(result.error_code, result.error_message)


def credentials(client: Client, names: Sequence[str] = ()) -> tuple[list[Credential], list[Any]]:
    """The credentials of these users, of all without names; and the answers about users without any.

    Raises:
        KafkaError: the cluster does not tell this client.
    """
    from pykafka_broker.protocol.messages.describe_user_scram_credentials import (
        DescribeUserScramCredentialsRequest,
        UserName,
    )

    wanted = [UserName(name=name) for name in names] or None
    answer = client.send(DescribeUserScramCredentialsRequest(users=wanted))
    check(answer.error_code, answer.error_message)
    found, missing = [], []
    for result in sorted(answer.results, key=lambda result: str(result.user)):
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            missing.append(result)
        else:
            check(result.error_code, result.error_message)
        found += [
            Credential(result.user, MECHANISMS.get(info.mechanism, "UNKNOWN"), info.iterations)
            for info in result.credential_infos
        ]
    return found, missing


def credential_table(found: Sequence[Credential]) -> Table:
    """One row for each credential."""
    return Table(
        (Column("USER"), Column("MECHANISM"), Column("ITERATIONS", is_number=True)),
        [(one.user, one.mechanism, str(one.iterations)) for one in found],
    )


def mechanism_option(command: Any) -> Any:
    """`--mechanism`, by default SCRAM-SHA-512."""
    return click.option(
        "--mechanism",
        type=click.Choice(list(MECHANISMS.values()), case_sensitive=False),
        default=STRONGEST,
        show_default=True,
        help="What the password is for.",
    )(command)


@users.command("set")
@click.argument("name")
@mechanism_option
@click.option(
    "--iterations",
    type=click.IntRange(1, INT32_MAX),
    default=DEFAULT_ITERATIONS,
    show_default=True,
    metavar="NUMBER",
    help="How often the password is hashed.",
)
@click.option(
    "--password-file",
    type=click.File(),
    metavar="FILE",
    help="A file whose first line is the password; - for stdin.",
)
@cluster_or_controller_options
@json_option(Changed)
def set_user(
    name: str, mechanism: str, iterations: int, password_file: Any, cluster: Cluster, output: Output
) -> None:
    """Create a user, or change its password, which is asked for unless it is in a file.

    The brokers never store the password, only what they check it with.
    """
    from pykafka_broker.protocol.messages.alter_user_scram_credentials import ScramCredentialUpsertion
    from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS, salted_password

    if password_file is not None:
        password = password_file.readline().rstrip("\r\n")
    elif sys.stdin.isatty():
        password = click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True)
    else:
        raise click.UsageError("There is no terminal to ask for the password: --password-file")
    if not password:
        raise click.UsageError("The password is empty.")
    salt = secrets.token_bytes(SALT_BYTES)
    known = SCRAM_MECHANISMS[mechanism]
    upsertion = ScramCredentialUpsertion(
        name=name,
        mechanism=known.type,
        iterations=iterations,
        salt=salt,
        salted_password=salted_password(known, password, salt, iterations),
    )
    _alter(cluster, upsertions=[upsertion])
    output.show(Changed(name, mechanism), [f"Completed updating config for user {name}."])


@users.command()
@click.argument("name")
@mechanism_option
@cluster_or_controller_options
@json_option(Changed)
def delete(name: str, mechanism: str, cluster: Cluster, output: Output) -> None:
    """Delete the password of a user for one mechanism."""
    from pykafka_broker.protocol.messages.alter_user_scram_credentials import ScramCredentialDeletion
    from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS

    _alter(
        cluster, deletions=[ScramCredentialDeletion(name=name, mechanism=SCRAM_MECHANISMS[mechanism].type)]
    )
    output.show(Changed(name, mechanism), [f"Completed updating config for user {name}."])


def _alter(cluster: Cluster, **changes: list[Any]) -> None:
    from pykafka_broker.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest

    request = AlterUserScramCredentialsRequest(**{"deletions": [], "upsertions": [], **changes})
    with cluster.connect() as client:
        [result] = client.send(request).results
    check(result.error_code, result.error_message)
