"""Who may do what and how much: ACLs, users with passwords, quotas."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from pykafka_broker.cli.acls import (
    OPERATIONS,
    RESOURCES,
    Acl,
    acl_table,
    add_acls,
    described_acls,
    kafka_word,
    remove_acls,
)
from pykafka_broker.cli.cells import Table
from pykafka_broker.cli.quotas import quota_table, quotas_of
from pykafka_broker.cli.users import credential_table, credentials
from pykafka_broker.console.page import Field, Form, Page, Part, Section, if_told, listing, one_page
from pykafka_broker.console.visit import Visit
from pykafka_broker.protocol.acls import CLUSTER_NAME

#: The fields of an ACL, with the values that each may have; any text, if none are given.
CHOICES = {
    "resource_type": [kafka_word(kind) for kind in RESOURCES],
    "resource_name": [],
    "pattern_type": ["LITERAL", "PREFIXED"],
    "principal": [],
    "host": [],
    "operation": [kafka_word(operation) for operation in OPERATIONS],
    "permission": ["ALLOW", "DENY"],
}
DEFAULTS = {"host": "*", "resource_name": "", "principal": ""}


def show(visit: Visit) -> Page:
    """The page of ACLs, users and quotas."""
    client = visit.client

    def section(name: str, table: Callable[[], Table]) -> Section:
        def part() -> Sequence[Part]:
            return (one_page(listing(table(), name), "/access", visit.query, name.lower()),)

        return Section(name, if_told(part))

    sections = [
        section("ACLs", lambda: acl_table(sorted(set(described_acls(client, None, None, "any"))))),
        section("Users", lambda: credential_table(credentials(client)[0])),
        section("Quotas", lambda: quota_table(quotas_of(client, {}))),
    ]
    if visit.can_write:
        fields = [
            Field(
                name,
                name.replace("_", " ").capitalize(),
                DEFAULTS.get(name, ""),
                "select" if values else "text",
                [(value, value) for value in values],
                is_required=not values,
            )
            for name, values in CHOICES.items()
        ]
        sections += [
            Section("Add an ACL", (Form("/access/add", "Add", fields),)),
            Section("Remove an ACL", (Form("/access/remove", "Remove", fields, is_dangerous=True),)),
        ]
    return Page("Access", sections)


def add(visit: Visit) -> str:
    """Add an ACL."""
    add_acls(visit.client, [_acl(visit)])
    return "/access?done=changed"


def remove(visit: Visit) -> str:
    """Remove an ACL.

    Raises:
        click.ClickException: there is no such ACL.
    """
    if not remove_acls(visit.client, [_acl(visit)]):
        raise click.ClickException("There is no such ACL.")
    return "/access?done=changed"


def _acl(visit: Visit) -> Acl:
    """The ACL of a form.

    Raises:
        click.ClickException: a field has no such value.
    """
    fields = {name: visit.given(name) for name in CHOICES}
    for name, values in CHOICES.items():
        if values and fields[name] not in values:
            raise click.ClickException(f"{fields[name]!r} is no {name.replace('_', ' ')}")
    if fields["resource_type"] == "CLUSTER":
        fields |= {"resource_name": CLUSTER_NAME, "pattern_type": "LITERAL"}
    return Acl(**fields)
