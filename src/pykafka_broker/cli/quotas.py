"""`quotas`: show and change the quotas of users, client ids and addresses; lines as of kafka-configs.sh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.cells import Column, Table
from pykafka_broker.cli.cluster import (
    Cluster,
    cluster_options_beside_users,
    cluster_or_controller_options_beside_users,
)
from pykafka_broker.cli.options import pairs
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.client.core.connection import check
from pykafka_broker.system.named_tuple import NamedTuple

#: The types of entities with the words of kafka-configs.sh, in its order.
WORDS = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
#: How a component of DescribeClientQuotas matches.
EXACT, DEFAULT = 0, 1


class Quotas(NamedTuple):
    """The quotas of an entity: the names by their types, None for the default of a type."""

    entity: dict[str, str | None]
    quotas: dict[str, float]


class Changed(NamedTuple):
    """An entity whose quotas are changed, or with `dry_run` could be."""

    entity: dict[str, str | None]
    dry_run: bool


Entity = dict[str, str | None]


def entity_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name an entity, handed to the command as one value, which is empty without any."""

    @functools.wraps(command)
    def run(**options: Any) -> Any:
        entity: Entity = {}
        for kind in WORDS:
            field = kind.replace("-", "_")
            name, is_default = options.pop(field), options.pop(f"{field}_defaults")
            if name is not None and is_default:
                raise click.UsageError(f"Use either --{kind} or --{kind}-defaults.")
            if name is not None or is_default:
                entity[kind] = name
        return command(entity=entity, **options)

    for option in (
        click.option("--ip-defaults", is_flag=True, help="Addresses without a quota of their own."),
        click.option("--ip", metavar="ADDRESS", help="An address."),
        click.option("--client-id-defaults", is_flag=True, help="Client ids without a quota of their own."),
        click.option("--client-id", metavar="ID", help="A client id."),
        click.option("--user-defaults", is_flag=True, help="Users without a quota of their own."),
        click.option("--user", metavar="NAME", help="A user; with a client id, both together."),
    ):
        run = option(run)
    return run


def _named(entity: Entity) -> Entity:
    if not entity:
        raise click.UsageError("Say whose quotas: --user, --client-id, --ip, or one of their --...-defaults.")
    return entity


@click.group(cls=Group)
def quotas() -> None:
    """Describe, set and remove the quotas of users, client ids and addresses."""


@quotas.command()
@entity_options
@cluster_options_beside_users
@json_option(Quotas, key="quotas")
def describe(entity: Entity, cluster: Cluster, output: Output) -> None:
    """Describe the quotas of one entity, or of all that have some."""
    with cluster.connect() as client:
        found = quotas_of(client, entity)
    output.show_all(
        found,
        [
            f"Quota configs for {entity_in_words(one.entity)} are "
            f"{', '.join(f'{key}={value}' for key, value in one.quotas.items())}"
            for one in found
        ],
        [quota_table(found)],
    )


def quota_table(found: list[Quotas]) -> Table:
    """One row for each quota."""
    rows = [
        (entity_in_words(one.entity), key, f"{value:.15g}")
        for one in found
        for key, value in one.quotas.items()
    ]
    return Table((Column("WHO"), Column("QUOTA"), Column("VALUE", is_number=True)), rows)


@quotas.command("set")
@entity_options
@click.argument("values", nargs=-1, required=True, metavar="QUOTA=VALUE…")
@click.option("--dry-run", is_flag=True, help="Only ask whether it would be accepted.")
@cluster_or_controller_options_beside_users
@json_option(Changed)
def set_quotas(
    entity: Entity, values: tuple[str, ...], dry_run: bool, cluster: Cluster, output: Output
) -> None:
    """Set quotas of an entity; those that are not named stay.

    Users and client ids have producer_byte_rate and consumer_byte_rate (bytes a second on each broker),
    request_percentage (of a processor), and controller_mutation_rate (partitions created and deleted in a
    second); addresses have connection_creation_rate (connections a second on each broker).
    """
    changes: list[tuple[str, float | None]] = []
    for key, value in pairs(values, "QUOTA=VALUE"):
        try:
            changes.append((key, float(value)))
        except ValueError:
            raise click.BadParameter(f"{value!r} is no number", param_hint=key) from None
    _change(_named(entity), changes, cluster, output, dry_run=dry_run)


@quotas.command("remove")
@entity_options
@click.argument("keys", nargs=-1, metavar="[QUOTA…]")
@click.option(
    "--all", "is_all", is_flag=True, help="All quotas of the entity; not with --bootstrap-controller."
)
@click.option("--dry-run", is_flag=True, help="Only ask whether it would be accepted.")
@cluster_or_controller_options_beside_users
@json_option(Changed)
def remove(
    entity: Entity, keys: tuple[str, ...], is_all: bool, dry_run: bool, cluster: Cluster, output: Output
) -> None:
    """Remove quotas of an entity."""
    if is_all == bool(keys):
        raise click.UsageError("Name quotas, or all of them with --all.")
    if is_all:
        with cluster.connect() as client:
            keys = tuple(key for one in quotas_of(client, _named(entity)) for key in one.quotas)
    _change(_named(entity), [(key, None) for key in keys], cluster, output, dry_run=dry_run)


def quotas_of(client: Any, entity: Entity) -> list[Quotas]:
    """The quotas of exactly this entity; of all, if it is empty."""
    from pykafka_broker.protocol.messages.describe_client_quotas import (
        ComponentData,
        DescribeClientQuotasRequest,
    )

    components = [
        ComponentData(entity_type=kind, match_type=DEFAULT if name is None else EXACT, match=name)
        for kind, name in entity.items()
    ]
    answer = client.send(DescribeClientQuotasRequest(components=components, strict=bool(components)))
    check(answer.error_code, answer.error_message)
    found = [
        Quotas(
            _in_order((part.entity_type, part.entity_name) for part in entry.entity),
            {value.key: value.value for value in sorted(entry.values, key=lambda value: str(value.key))},
        )
        for entry in answer.entries
    ]
    return sorted(found, key=lambda one: entity_in_words(one.entity))


def _change(
    entity: Entity,
    changes: list[tuple[str, float | None]],
    cluster: Cluster,
    output: Output,
    *,
    dry_run: bool,
) -> None:
    from pykafka_broker.protocol.messages.alter_client_quotas import (
        AlterClientQuotasRequest,
        AlterClientQuotasRequestEntryData,
        EntityData,
        OpData,
    )

    entry = AlterClientQuotasRequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in changes],
    )
    with cluster.connect() as client:
        result = client.send(AlterClientQuotasRequest(entries=[entry], validate_only=dry_run)).entries[0]
    check(result.error_code, result.error_message)
    who = entity_in_words(entity)
    line = f"The change for {who} would be accepted." if dry_run else f"Completed updating config for {who}."
    output.show(Changed(entity, dry_run), [line])


def _in_order(parts: Iterable[tuple[str, str | None]]) -> Entity:
    names = dict(parts)
    return {kind: names[kind] for kind in (*WORDS, *names) if kind in names}


def entity_in_words(entity: Entity) -> str:
    """An entity as kafka-configs.sh shows it."""
    return ", ".join(
        f"the default {WORDS.get(kind, kind)}" if name is None else f"{WORDS.get(kind, kind)} '{name}'"
        for kind, name in entity.items()
    )
