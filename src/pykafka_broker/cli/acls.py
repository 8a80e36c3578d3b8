"""`acls`: show, add and remove ACLs; options and lines as of kafka-acls.sh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.cells import Column, Table
from pykafka_broker.cli.cluster import Cluster, cluster_or_controller_options
from pykafka_broker.cli.names import any_group_names, topic_names
from pykafka_broker.cli.options import gathered
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.client.core.connection import check
from pykafka_broker.system.named_tuple import NamedTuple

#: The numbers of `protocol/acls.py` by the words of options, which would load more than `--help` needs.
RESOURCES = {
    "topic": 2,
    "group": 3,
    "cluster": 4,
    "transactional-id": 5,
    "delegation-token": 6,
    "user-principal": 7,
}
PATTERNS = {"any": 1, "match": 2, "literal": 3, "prefixed": 4}
OPERATIONS = {
    "all": 2,
    "read": 3,
    "write": 4,
    "create": 5,
    "delete": 6,
    "alter": 7,
    "describe": 8,
    "cluster-action": 9,
    "describe-configs": 10,
    "alter-configs": 11,
    "idempotent-write": 12,
    "create-tokens": 13,
    "describe-tokens": 14,
    "two-phase-commit": 15,
}
ANY, ALLOW, DENY = 1, 3, 2
#: The operations on each kind of resource, besides ALL.
SUPPORTED = {
    "topic": "read write create delete alter describe describe-configs alter-configs",
    "group": "read delete describe describe-configs alter-configs",
    "cluster": "create alter describe cluster-action describe-configs alter-configs idempotent-write",
    "transactional-id": "write describe two-phase-commit",
    "delegation-token": "describe",
    "user-principal": "create-tokens describe-tokens",
}

#: The operations that a producer and a consumer need, by the kind of resource.
OF_PRODUCERS = {"topic": ("write", "describe", "create"), "transactional-id": ("write", "describe")}
OF_CONSUMERS = {"topic": ("read", "describe"), "group": ("read",)}


class Acl(NamedTuple):
    """One ACL, in the words of Kafka."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


class Named(NamedTuple):
    """The resources that options name: (kind, name)."""

    resources: tuple[tuple[str, str], ...]
    pattern: str


class Who(NamedTuple):
    """The principals, hosts and operations, as the options name them."""

    allow_principal: tuple[str, ...]
    deny_principal: tuple[str, ...]
    allow_host: tuple[str, ...]
    deny_host: tuple[str, ...]
    operations: tuple[str, ...]
    producer: bool
    consumer: bool
    idempotent: bool


def resource_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name resources, handed to the command as one value called `named`."""

    @functools.wraps(command)
    def run(**options: Any) -> Any:
        from pykafka_broker.protocol.acls import CLUSTER_NAME

        found: list[tuple[str, str]] = []
        for kind in RESOURCES:
            given = options.pop(kind.replace("-", "_"))
            names = ((CLUSTER_NAME,) if given else ()) if kind == "cluster" else given
            found += [(kind, name) for name in names]
        return command(named=Named(tuple(found), options.pop("pattern")), **options)

    run = click.option(
        "--resource-pattern-type",
        "pattern",
        type=click.Choice(list(PATTERNS), case_sensitive=False),
        default="literal",
        show_default=True,
        help="How names are meant: as they are, or as the beginning of names. To list and remove, `any` "
        "means both kinds, and `match` all ACLs that concern a resource with this name.",
    )(run)
    for kind, help_text in (
        ("user-principal", "A user for whom tokens are made; * for all."),
        ("delegation-token", "A delegation token; * for all."),
        ("transactional-id", "A transactional id; * for all."),
    ):
        run = click.option(f"--{kind}", multiple=True, metavar="NAME", help=help_text)(run)
    run = click.option("--cluster", is_flag=True, help="The cluster.")(run)
    run = click.option(
        "--group",
        multiple=True,
        metavar="NAME",
        shell_complete=any_group_names,
        help="A consumer group; * for all.",
    )(run)
    return click.option(
        "--topic", multiple=True, metavar="NAME", shell_complete=topic_names, help="A topic; * for all."
    )(run)


def who_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say who may do what, handed to the command as one value called `who`."""
    command = gathered(Who, "who")(command)
    for option in (
        click.option("--idempotent", is_flag=True, help="With --producer: without a transactional id, too."),
        click.option("--consumer", is_flag=True, help="What a consumer of the topics and groups needs."),
        click.option("--producer", is_flag=True, help="What a producer to the topics needs."),
        click.option(
            "--operation",
            "operations",
            multiple=True,
            type=click.Choice(list(OPERATIONS), case_sensitive=False),
            help="An operation; all of them if none is named.",
        ),
        click.option("--deny-host", multiple=True, metavar="ADDRESS", help="From there alone; default *."),
        click.option("--allow-host", multiple=True, metavar="ADDRESS", help="From there alone; default *."),
        click.option(
            "--deny-principal", multiple=True, metavar="TYPE:NAME", help="Who may not, as User:eve."
        ),
        click.option("--allow-principal", multiple=True, metavar="TYPE:NAME", help="Who may, as User:bob."),
    ):
        command = option(command)
    return command


@click.group(cls=Group)
def acls() -> None:
    """List, add and remove ACLs: who may do what."""


@acls.command("list")
@resource_options
@click.option(
    "--principal", "principals", multiple=True, metavar="TYPE:NAME", help="Those of this user alone."
)
@cluster_or_controller_options
@json_option(Acl, key="acls")
def list_(named: Named, principals: tuple[str, ...], cluster: Cluster, output: Output) -> None:
    """List the ACLs of some resources, or all."""
    pattern = named.pattern if named.resources else "any"
    with cluster.connect() as client:
        found = [
            acl
            for principal in principals or (None,)
            for kind, name in named.resources or ((None, None),)
            for acl in described_acls(client, kind, name, pattern, principal)
        ]
    found = sorted(set(found))
    output.show_all(found, _lines("Current ACLs", found), [acl_table(found)])


@acls.command()
@resource_options
@who_options
@cluster_or_controller_options
@json_option(Acl, key="acls")
def add(named: Named, who: Who, cluster: Cluster, output: Output) -> None:
    """Add ACLs: one for each user, resource and operation."""
    wanted = _wanted(named, who)
    with cluster.connect() as client:
        add_acls(client, wanted)
    output.show_all(wanted, _lines("Adding ACLs", wanted), [acl_table(wanted)])


def add_acls(client: Any, wanted: list[Acl]) -> None:
    """Add these ACLs.

    Raises:
        KafkaError: one of them is refused.
    """
    from pykafka_broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest

    creations = [AclCreation(**_numbers(acl)) for acl in wanted]
    for result in client.send(CreateAclsRequest(creations=creations)).results:
        check(result.error_code, result.error_message)


@acls.command()
@resource_options
@who_options
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@cluster_or_controller_options
@json_option(Acl, key="acls")
def remove(named: Named, who: Who, dry_run: bool, cluster: Cluster, output: Output) -> None:
    """Remove the ACLs that are named; with resources alone, all ACLs of these."""
    if not named.resources:
        raise click.UsageError("Name resources: --topic, --group, --cluster, --transactional-id, …")
    with cluster.connect() as client:
        if any(who):
            found = _wanted(named, who)
        else:
            found = sorted(
                {
                    acl
                    for kind, name in named.resources
                    for acl in described_acls(client, kind, name, named.pattern)
                }
            )
        removed = found if dry_run else remove_acls(client, found)
    title = "ACLs that would be removed" if dry_run else "Removed ACLs"
    output.show_all(removed, _lines(title, removed), [acl_table(removed)])


def _wanted(named: Named, who: Who) -> list[Acl]:
    """The ACLs that the options describe, in the order of the resources.

    Raises:
        click.UsageError: the options name no resource or no user, or contradict each other.
    """
    from pykafka_broker.protocol.acls import CLUSTER_NAME

    if not named.resources:
        raise click.UsageError("Name resources: --topic, --group, --cluster, --transactional-id, …")
    if named.pattern in ("any", "match"):
        raise click.UsageError("--resource-pattern-type has to be literal or prefixed here.")
    if not who.allow_principal and not who.deny_principal:
        raise click.UsageError("Say who: --allow-principal or --deny-principal.")
    if who.idempotent and not who.producer:
        raise click.UsageError("--idempotent goes with --producer.")
    resources = named.resources
    if who.idempotent:
        resources += (("cluster", CLUSTER_NAME),)
    allowed = [
        ("ALLOW", principal, host) for principal in who.allow_principal for host in who.allow_host or ("*",)
    ]
    denied = [
        ("DENY", principal, host) for principal in who.deny_principal for host in who.deny_host or ("*",)
    ]
    wanted = [
        Acl(
            kafka_word(kind),
            name,
            kafka_word("literal" if kind == "cluster" else named.pattern),
            principal,
            host,
            kafka_word(operation),
            permission,
        )
        for kind, name in dict.fromkeys(resources)
        for operation in _operations(kind, who)
        for permission, principal, host in (*allowed, *denied)
    ]
    if not wanted:
        raise click.UsageError("--producer and --consumer need nothing of these resources.")
    return wanted


def _operations(kind: str, who: Who) -> Iterable[str]:
    if not who.producer and not who.consumer:
        supported = ("all", *SUPPORTED[kind].split())
        for operation in who.operations:
            if operation not in supported:
                text = f"--{kind} has the operations {', '.join(supported)}, not {operation}."
                raise click.UsageError(text)
        return who.operations or ("all",)
    found: dict[str, None] = {}
    if who.producer:
        found |= dict.fromkeys(OF_PRODUCERS.get(kind, ()))
        if who.idempotent and kind == "cluster":
            found["idempotent-write"] = None
    if who.consumer:
        found |= dict.fromkeys(OF_CONSUMERS.get(kind, ()))
    return found


def described_acls(
    client: Any, kind: str | None, name: str | None, pattern: str, principal: str | None = None
) -> list[Acl]:
    """The ACLs that match; None matches everything.

    Raises:
        KafkaError: the cluster has no authorizer, or does not tell this user.
    """
    from pykafka_broker.protocol.messages.describe_acls import DescribeAclsRequest

    answer = client.send(
        DescribeAclsRequest(
            resource_type_filter=ANY if kind is None else RESOURCES[kind],
            resource_name_filter=name,
            pattern_type_filter=PATTERNS[pattern],
            principal_filter=principal,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
    )
    check(answer.error_code, answer.error_message)
    return [_of(resource, acl) for resource in answer.resources for acl in resource.acls]


def _of(resource: Any, acl: Any) -> Acl:
    return Acl(
        _name_of(RESOURCES, resource.resource_type),
        resource.resource_name,
        _name_of(PATTERNS, resource.pattern_type),
        acl.principal,
        acl.host,
        _name_of(OPERATIONS, acl.operation),
        "ALLOW" if acl.permission_type == ALLOW else "DENY",
    )


def remove_acls(client: Any, found: list[Acl]) -> list[Acl]:
    """Remove these ACLs; return those that existed."""
    from pykafka_broker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest

    filters = []
    for acl in found:
        numbers = _numbers(acl)
        filters.append(
            DeleteAclsFilter(
                resource_type_filter=numbers["resource_type"],
                resource_name_filter=acl.resource_name,
                pattern_type_filter=numbers["resource_pattern_type"],
                principal_filter=acl.principal,
                host_filter=acl.host,
                operation=numbers["operation"],
                permission_type=numbers["permission_type"],
            )
        )
    removed: list[Acl] = []
    if filters:
        for acl, result in zip(
            found, client.send(DeleteAclsRequest(filters=filters)).filter_results, strict=True
        ):
            check(result.error_code, result.error_message)
            removed += [acl] if result.matching_acls else []
    return removed


def _numbers(acl: Acl) -> dict[str, Any]:
    return {
        "resource_type": RESOURCES[_option(acl.resource_type)],
        "resource_name": acl.resource_name,
        "resource_pattern_type": PATTERNS[_option(acl.pattern_type)],
        "principal": acl.principal,
        "host": acl.host,
        "operation": OPERATIONS[_option(acl.operation)],
        "permission_type": ALLOW if acl.permission == "ALLOW" else DENY,
    }


def _name_of(words: dict[str, int], number: int) -> str:
    """Kafka's word for a number; UNKNOWN, as in Kafka, if this release does not know it."""
    return next((kafka_word(word) for word, known in words.items() if known == number), "UNKNOWN")


def kafka_word(option: str) -> str:
    """A word of an option as Kafka's name: USER for `user-principal`."""
    return "USER" if option == "user-principal" else option.replace("-", "_").upper()


def _option(word: str) -> str:
    return "user-principal" if word == "USER" else word.replace("_", "-").lower()


def _lines(title: str, found: list[Acl]) -> list[str]:
    lines = []
    for (kind, name, pattern), of_resource in groupby(found, lambda acl: acl[:3]):
        resource = f"ResourcePattern(resourceType={kind}, name={name}, patternType={pattern})"
        lines.append(f"{title} for resource `{resource}`:")
        lines += [
            f"\t(principal={acl.principal}, host={acl.host}, operation={acl.operation}, "
            f"permissionType={acl.permission})"
            for acl in of_resource
        ]
        lines.append("")
    return lines


def acl_table(found: list[Acl]) -> Table:
    """One row for each ACL."""
    columns = ("RESOURCE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION")
    return Table(tuple(map(Column, columns)), [tuple(acl) for acl in found])
