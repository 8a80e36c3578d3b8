"""`tokens`: delegation tokens, with which clients log in as the token's owner; lines as of
kafka-delegation-tokens.sh.
"""

from __future__ import annotations

import base64
import binascii
import sys
from datetime import datetime
from typing import Any

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.cells import Column, Table
from pykafka_broker.cli.cluster import Cluster, cluster_options, cluster_or_controller_options
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.client.core.connection import check
from pykafka_broker.system.named_tuple import NamedTuple

COLUMNS = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
#: How wide kafka-delegation-tokens.sh makes its columns.
WIDTHS = (15, 30, 15, 15, 25, 15, 15, 15)
#: A time in a request that stands for that of the broker's configuration.
AS_CONFIGURED = -1


class Token(NamedTuple):
    """A delegation token. Its HMAC is a password, in base64; the times are in ms since 1970."""

    token_id: str
    hmac: str
    owner: str
    requester: str
    renewers: list[str]
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int


class Changed(NamedTuple):
    """A token that was renewed, or expires."""

    expiry_timestamp_ms: int


class Principal(click.ParamType[str]):
    """A principal, as User:alice; the type may be left out."""

    name = "principal"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The principal with its type."""
        return value if ":" in value else f"User:{value}"


class Hmac(click.ParamType[bytes]):
    """The HMAC of a token in base64; - reads it from standard input."""

    name = "hmac"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        """The bytes of the HMAC."""
        text = sys.stdin.readline().strip() if value == "-" else value
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error:
            # Not quoted: it may be a part of a password.
            self.fail("the HMAC is not in base64", param, ctx)


@click.group(cls=Group)
def tokens() -> None:
    """Create, renew, expire and describe delegation tokens.

    The holder of a token logs in as its owner, with SCRAM: the id is the user name, the HMAC the password.
    The listener has to ask for a user (SASL), or for a certificate.
    """


@tokens.command()
@click.option(
    "--owner", type=Principal(), metavar="PRINCIPAL", help="Whose token, as User:alice; by default yours."
)
@click.option(
    "--renewer",
    "renewers",
    type=Principal(),
    multiple=True,
    metavar="PRINCIPAL",
    help="Who may renew it beside its owner; may be repeated.",
)
@click.option(
    "--max-lifetime-ms",
    type=click.IntRange(min=1),
    default=None,
    metavar="MS",
    help="The age beyond which the token cannot be renewed; delegation.token.max.lifetime.ms at most.",
)
@cluster_or_controller_options
@json_option(Token, key="tokens")
def create(
    owner: str | None,
    renewers: tuple[str, ...],
    max_lifetime_ms: int | None,
    cluster: Cluster,
    output: Output,
) -> None:
    """Create a token. Keep its HMAC like a password."""
    from pykafka_broker.protocol.messages.create_delegation_token import (
        CreatableRenewers,
        CreateDelegationTokenRequest,
    )

    owner_type, _, owner_name = (owner or "").partition(":")
    request = CreateDelegationTokenRequest(
        owner_principal_type=owner_type or None,
        owner_principal_name=owner_name or None,
        renewers=[
            CreatableRenewers(principal_type=kind, principal_name=name)
            for kind, _, name in (each.partition(":") for each in renewers)
        ],
        max_lifetime_ms=AS_CONFIGURED if max_lifetime_ms is None else max_lifetime_ms,
    )
    with cluster.connect() as client:
        answer = client.send(request)
    check(answer.error_code, None)
    token = Token(
        answer.token_id,
        base64.b64encode(answer.hmac).decode(),
        f"{answer.principal_type}:{answer.principal_name}",
        f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}",
        list(renewers),
        answer.issue_timestamp_ms,
        answer.expiry_timestamp_ms,
        answer.max_timestamp_ms,
    )
    _show([token], output)


@tokens.command()
@click.argument("hmac", type=Hmac())
@click.option(
    "--period-ms",
    type=click.IntRange(min=1),
    default=None,
    metavar="MS",
    help="How much longer the token lives from now on; delegation.token.expiry.time.ms at most.",
)
@cluster_or_controller_options
@json_option(Changed)
def renew(hmac: bytes, period_ms: int | None, cluster: Cluster, output: Output) -> None:
    """Let a token live longer. HMAC - reads it from standard input."""
    from pykafka_broker.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest

    period_ms = AS_CONFIGURED if period_ms is None else period_ms
    with cluster.connect() as client:
        answer = client.send(RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms))
    check(answer.error_code, None)
    _changed("renew", answer.expiry_timestamp_ms, output)


@tokens.command()
@click.argument("hmac", type=Hmac())
@click.option(
    "--after-ms",
    type=click.IntRange(min=0),
    default=None,
    metavar="MS",
    help="Let the token live this much longer; by default it is removed at once.",
)
@cluster_or_controller_options
@json_option(Changed)
def expire(hmac: bytes, after_ms: int | None, cluster: Cluster, output: Output) -> None:
    """Let a token expire. HMAC - reads it from standard input."""
    from pykafka_broker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest

    period_ms = -1 if after_ms is None else after_ms
    with cluster.connect() as client:
        answer = client.send(ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms))
    check(answer.error_code, None)
    _changed("expire", answer.expiry_timestamp_ms, output)


@tokens.command()
@click.option(
    "--owner",
    "owners",
    type=Principal(),
    multiple=True,
    metavar="PRINCIPAL",
    help="Only the tokens that concern this principal, as User:alice; may be repeated.",
)
@cluster_options
@json_option(Token, key="tokens")
def describe(owners: tuple[str, ...], cluster: Cluster, output: Output) -> None:
    """Describe the tokens that you may see, with their HMACs."""
    from pykafka_broker.protocol.messages.describe_delegation_token import (
        DescribeDelegationTokenOwner,
        DescribeDelegationTokenRequest,
    )

    named = [
        DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
        for kind, _, name in (each.partition(":") for each in owners)
    ]
    with cluster.connect() as client:
        answer = client.send(DescribeDelegationTokenRequest(owners=named or None))
    check(answer.error_code, None)
    found = [
        Token(
            each.token_id,
            base64.b64encode(each.hmac).decode(),
            f"{each.principal_type}:{each.principal_name}",
            f"{each.token_requester_principal_type}:{each.token_requester_principal_name}",
            [f"{one.principal_type}:{one.principal_name}" for one in each.renewers],
            each.issue_timestamp,
            each.expiry_timestamp,
            each.max_timestamp,
        )
        for each in answer.tokens
    ]
    _show(sorted(found, key=lambda token: (token.issue_timestamp_ms, token.token_id)), output)


def _show(found: list[Token], output: Output) -> None:
    rows = [
        (
            each.token_id,
            each.hmac,
            each.owner,
            each.requester,
            ",".join(each.renewers),
            *map(_date, (each.issue_timestamp_ms, each.expiry_timestamp_ms, each.max_timestamp_ms)),
        )
        for each in found
    ]
    output.show_all(
        found, map(_line, (COLUMNS, *rows)), [Table(tuple(Column(name) for name in COLUMNS), rows)]
    )


def _changed(operation: str, expiry_timestamp_ms: int, output: Output) -> None:
    line = f"Completed {operation} operation. New expiry timestamp : {_date(expiry_timestamp_ms)}"
    output.show(Changed(expiry_timestamp_ms), [line])


def _line(cells: tuple[Any, ...]) -> str:
    return " ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True))


def _date(timestamp_ms: int) -> str:
    """The time in the time zone of this machine, to the minute, as Apache's command prints it."""
    return datetime.fromtimestamp(timestamp_ms // 1_000).astimezone().strftime("%Y-%m-%dT%H:%M")
