"""`configs`: describe and alter dynamic configurations; lines as of kafka-configs.sh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.cells import Column, Table
from pykafka_broker.cli.cluster import Cluster, cluster_or_controller_options
from pykafka_broker.cli.names import any_group_names, broker_ids, topic_names
from pykafka_broker.cli.options import pairs
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.suggestions import meant_config, unknown_config, unknown_topic
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import check
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.named_tuple import NamedTuple

#: The names of kafka-configs.sh for the sources of DescribeConfigs.
SOURCE_NAMES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
BROKER_LOGGER = 8
SET, DELETE, APPEND, SUBTRACT = range(4)


class Kind(NamedTuple):
    """A kind of resource: its number in the protocol, its word, and the source of its own values."""

    resource_type: int
    word: str
    own_source: int


TOPIC = Kind(2, "topic", 1)
BROKER = Kind(4, "broker", 2)
LOGGER = Kind(BROKER_LOGGER, "broker-logger", 6)
CLIENT_METRICS = Kind(16, "client-metric", 7)
GROUP = Kind(32, "group", 8)


class Resource(NamedTuple):
    """A resource to describe or alter. The empty name of a broker means all brokers."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.word} {self.name}" if self.name else f"the default {self.kind.word}"


class Synonym(NamedTuple):
    """The value that a key would have without the earlier synonyms, and the source that sets it."""

    name: str
    value: str | None
    source: str


class ConfigEntry(NamedTuple):
    """A key with its value, which is None for a secret; so is documentation that was not asked for."""

    name: str
    value: str | None
    source: str
    is_sensitive: bool
    is_read_only: bool
    synonyms: list[Synonym]
    documentation: str | None


class Described(NamedTuple):
    """The configuration of a resource; the empty name of a broker means all brokers."""

    resource_type: str
    resource_name: str
    configs: list[ConfigEntry]


class Change(NamedTuple):
    """A change of a key: SET, DELETE, APPEND or SUBTRACT."""

    name: str
    operation: int
    value: str | None


class Altered(NamedTuple):
    """A resource whose configs are changed, or with `dry_run` could be."""

    resource_type: str
    resource_name: str
    dry_run: bool


def resource_options(command: Any) -> Any:
    """Exactly one resource."""
    for option in (
        click.option("--broker-defaults", is_flag=True, help="All brokers."),
        click.option("--client-metrics", metavar="NAME", help="A client metrics subscription."),
        click.option(
            "--broker-logger", metavar="ID", shell_complete=broker_ids, help="The log levels of a broker."
        ),
        click.option("--group", metavar="ID", shell_complete=any_group_names, help="A group."),
        click.option("--broker", metavar="ID", shell_complete=broker_ids, help="A broker."),
        click.option("--topic", metavar="NAME", shell_complete=topic_names, help="A topic."),
    ):
        command = option(command)
    return command


def chosen(
    topic: str | None,
    broker: str | None,
    group: str | None,
    broker_logger: str | None,
    client_metrics: str | None,
    broker_defaults: bool,
) -> Resource:
    """The one resource that the options name.

    Raises:
        click.UsageError: they name none, or several.
    """
    named = [
        Resource(kind, name)
        for kind, name in (
            (TOPIC, topic),
            (BROKER, broker),
            (GROUP, group),
            (LOGGER, broker_logger),
            (CLIENT_METRICS, client_metrics),
            (BROKER, "" if broker_defaults else None),
        )
        if name is not None
    ]
    if len(named) != 1:
        raise click.UsageError(
            "Name one of --topic, --broker, --broker-defaults, --group, --broker-logger, --client-metrics."
        )
    return named[0]


@click.group(cls=Group)
def configs() -> None:
    """Describe and alter dynamic configurations."""


@configs.command()
@resource_options
@click.option("--all", "show_all", is_flag=True, help="Defaults and static values too.")
@click.option("--documentation", is_flag=True, help="What each key is for.")
@cluster_or_controller_options
@json_option(Described)
def describe(
    show_all: bool,
    documentation: bool,
    cluster: Cluster,
    output: Output,
    **names: Any,
) -> None:
    """Describe what a resource sets, or with --all what is in force."""
    resource = chosen(**names)
    with cluster.connect() as client:
        found = config_entries(client, resource, documentation=documentation)
    own_source = source_of(resource)
    entries = [entry for entry in found if show_all or entry.source == own_source]
    title = heading(resource, show_all=show_all)
    output.show(
        Described(resource.kind.word, resource.name, entries),
        [title, *(line for entry in entries for line in entry_lines(entry))],
        [entry_table(title, entries)],
    )


def source_of(resource: Resource) -> str:
    """The source of the values that the resource itself sets."""
    return SOURCE_NAMES[resource.kind.own_source if resource.name else 3]


def config_entries(
    client: Client, resource: Resource, *, documentation: bool, keys: Sequence[str] | None = None
) -> list[ConfigEntry]:
    """What is in force for a resource, by the names of the keys: of some, or of all.

    Raises:
        KafkaError: there is no such resource, or it is not told to this client.
    """
    from pykafka_broker.protocol.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
    )

    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=resource.kind.resource_type,
                resource_name=resource.name,
                configuration_keys=None if keys is None else list(keys),
            )
        ],
        include_synonyms=True,
        include_documentation=documentation,
    )
    result = client.send(request, _node_of(resource)).results[0]
    if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise unknown_topic(client, resource.name)
    check(result.error_code, result.error_message)
    return [_entry(entry) for entry in sorted(result.configs, key=lambda entry: str(entry.name))]


def _entry(entry: Any) -> ConfigEntry:
    return ConfigEntry(
        name=entry.name,
        value=entry.value,
        source=_source(entry),
        is_sensitive=entry.is_sensitive,
        is_read_only=entry.read_only,
        synonyms=[Synonym(synonym.name, synonym.value, _source(synonym)) for synonym in entry.synonyms],
        # Brokers may send an empty one instead of none.
        documentation=entry.documentation or None,
    )


def _source(entry: Any) -> str:
    number = entry.config_source if hasattr(entry, "config_source") else entry.source
    return SOURCE_NAMES.get(number, "UNKNOWN")


def heading(resource: Resource, *, show_all: bool) -> str:
    """The line above the entries."""
    if not resource.name:
        return f"Default configs for {resource.kind.word}s in the cluster are:"
    return f"{'All' if show_all else 'Dynamic'} configs for {resource} are:"


def entry_lines(entry: ConfigEntry) -> Iterator[str]:
    """One key with its value, the sources that set it, and its purpose."""
    synonyms = ", ".join(
        f"{synonym.source}:{synonym.name}={_shown(synonym.value)}" for synonym in entry.synonyms
    )
    sensitive = "true" if entry.is_sensitive else "false"
    yield f"  {entry.name}={_shown(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"
    if entry.documentation:
        yield f"    {entry.documentation}"


def entry_table(title: str, entries: list[ConfigEntry]) -> Table:
    """The keys as a table; columns without room are left out."""
    columns = (
        Column("KEY"),
        Column("VALUE", is_prose=True),
        Column("SET BY", drop=2),
        Column("OTHERWISE", is_prose=True, drop=3),
        Column("DOCUMENTATION", is_prose=True, drop=1),
    )
    rows = [
        (
            entry.name,
            "(secret)" if entry.is_sensitive and entry.value is None else _shown(entry.value),
            _set_by(entry.source),
            ", ".join(f"{_shown(other.value)} ({_set_by(other.source)})" for other in entry.synonyms[1:]),
            entry.documentation,
        )
        for entry in entries
    ]
    return Table(columns, rows, heading=title)


def _set_by(source: str) -> str:
    """`DYNAMIC_TOPIC_CONFIG` in words."""
    return source.removesuffix("_CONFIG").replace("_", " ").lower()


def _shown(value: str | None) -> str:
    return "null" if value is None else value


@configs.command()
@resource_options
@click.option("--set", "sets", metavar="KEY=VALUE", multiple=True, help="Set a key; repeatable.")
@click.option("--delete", "deletes", metavar="KEY", multiple=True, help="Go back to the default.")
@click.option("--append", "appends", metavar="KEY=VALUE", multiple=True, help="Add to a list.")
@click.option("--subtract", "subtracts", metavar="KEY=VALUE", multiple=True, help="Take from a list.")
@click.option("--dry-run", is_flag=True, help="Only ask whether it would be accepted.")
@cluster_or_controller_options
@json_option(Altered)
def alter(
    sets: tuple[str, ...],
    deletes: tuple[str, ...],
    appends: tuple[str, ...],
    subtracts: tuple[str, ...],
    dry_run: bool,
    cluster: Cluster,
    output: Output,
    **names: Any,
) -> None:
    """Change what a resource sets; what is not named stays."""
    resource = chosen(**names)
    changes = [
        Change(key, operation, value)
        for operation, option, entries in (
            (SET, "--set", sets),
            (APPEND, "--append", appends),
            (SUBTRACT, "--subtract", subtracts),
        )
        for key, value in pairs(entries, option)
    ]
    changes += [Change(key, DELETE, None) for key in deletes]
    if not changes:
        raise click.UsageError("Nothing to change: use --set, --delete, --append or --subtract.")
    # Controllers change the configuration of any broker, but do not know the brokers' addresses.
    is_by_controllers = cluster.bootstrap_controller is not None and resource.kind == BROKER
    with cluster.connect() as client:
        node_id = None if is_by_controllers else _node_of(resource)
        alter_configs(client, resource, changes, node_id, dry_run=dry_run)
    for key in deletes:
        # Brokers do not complain about the deletion of a key that was never set.
        if (meant := meant_config(key, resource.kind.resource_type)) is not None:
            output.note(f"{key!r} is no configuration key of a {resource.kind.word}. Did you mean {meant!r}?")
    if dry_run:
        line = f"The change of {resource} would be accepted."
    elif resource.name:
        line = f"Completed updating config for {resource}."
    else:
        line = f"Completed updating default config for {resource.kind.word}s in the cluster."
    output.show(Altered(resource.kind.word, resource.name, dry_run), [line])


def alter_configs(
    client: Client, resource: Resource, changes: Sequence[Change], node_id: int | None, *, dry_run: bool
) -> None:
    """Change what a resource sets, by a certain node or, with None, by any.

    Raises:
        KafkaError: the change is refused; the message may name the key that is meant.
    """
    from pykafka_broker.protocol.messages.incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )

    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=resource.kind.resource_type,
                resource_name=resource.name,
                configs=[
                    AlterableConfig(name=change.name, config_operation=change.operation, value=change.value)
                    for change in changes
                ],
            )
        ],
        validate_only=dry_run,
    )
    result = client.send(request, node_id).responses[0]
    if resource.kind == TOPIC and result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise unknown_topic(client, resource.name)
    try:
        check(result.error_code, result.error_message)
    except KafkaError as error:
        keys = [change.name for change in changes]
        raise unknown_config(error, keys, resource.kind.resource_type) from None


def _node_of(resource: Resource) -> int | None:
    """The broker to ask: a broker answers for itself only."""
    if resource.kind in (BROKER, LOGGER) and resource.name.isdecimal():
        return int(resource.name)
    return None
