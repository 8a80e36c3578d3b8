"""`doctor`: finds what keeps clients from working with a cluster, in sentences, each with its remedy.

The checks, each in a file of its own, look at the cluster and then judge their findings; judging is pure. The
first four are in `pykafka_broker.doctor`:

    connection   reach.py     who answers at the bootstrap address
    quorum       quorum.py    whether a controller leads
    brokers      brokers.py   whether the advertised addresses lead to the brokers
    topics       topics.py    missing topics, partitions without leader, open transactions
    groups       groups.py    groups that do not get on; share_groups.py has share groups
    disks        disks.py     full disks, offline directories

A check is left out if it needs something that an earlier one did not find.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator

import click
from click.core import ParameterSource

from pykafka_broker.cli.cells import Line, Styled
from pykafka_broker.cli.cluster import DEFAULT_BOOTSTRAP_SERVER, Cluster, propose_for
from pykafka_broker.cli.doctor.examination import Question, examine
from pykafka_broker.cli.names import any_group_names, topic_names
from pykafka_broker.cli.options import Seconds, gathered, list_option
from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.cli.security import security_options
from pykafka_broker.client.core.addresses import parse_addresses
from pykafka_broker.doctor.findings import Finding, Level

#: The beginning of a finding, by its level.
MARKS = {
    Level.OK: Styled("ok", "bold green"),
    Level.WARNING: Styled("WARNING", "bold yellow"),
    Level.PROBLEM: Styled("PROBLEM", "bold red"),
    Level.SKIPPED: Styled("skipped", "bold bright_black"),
}
INDENT = max(len(mark.text) for mark in MARKS.values()) + 1


@click.command()
@click.argument(
    "bootstrap_server",
    required=False,
    metavar="[HOST:PORT,…]",
    envvar="PYKAFKA_BROKER_BOOTSTRAP_SERVER",
    default=DEFAULT_BOOTSTRAP_SERVER,
)
@list_option(
    "-b",
    "--bootstrap-server",
    "named",
    metavar="HOST:PORT[,…]",
    help="The same as HOST:PORT, by the name that other commands use.",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC",
    shell_complete=topic_names,
    help="A topic that a client uses; repeatable.",
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="GROUP",
    shell_complete=any_group_names,
    help="A group to look at [all]; repeatable.",
)
@click.option(
    "--watch",
    "watch_s",
    type=Seconds(0.1),
    default=6.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to watch whether groups get on.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(0.1),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a broker may take to answer.",
)
@security_options
@json_option(Finding, streams=True)
@gathered(Cluster, "cluster")
@click.pass_context
def doctor(
    ctx: click.Context,
    cluster: Cluster,
    named: str | None,
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    watch_s: float,
    output: Output,
) -> int:
    """Find out why clients do not get on with a cluster, and say what to do.

    It asks as a client does: who answers at the address, whether a controller leads, whether the addresses
    that brokers advertise are reachable from here, whether topics can be written and read, which groups are
    stuck, which disks are full. With TLS and as a user, if it is given those. Nothing is changed.

    Exit status 1 if there is a problem; a warning leaves it at 0.
    """
    if named is not None:
        if ctx.get_parameter_source("bootstrap_server") is ParameterSource.COMMANDLINE:
            raise click.UsageError("HOST:PORT is given twice, once with --bootstrap-server.")
        cluster = cluster._replace(bootstrap_server=named)
    try:
        addresses = parse_addresses(cluster.bootstrap_server)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="HOST:PORT") from None
    propose_for(cluster)
    if "" in topics:
        raise click.BadParameter("a topic has a name", param_hint="--topic")
    return show_findings(examine(Question(addresses, cluster, topics, groups, watch_s)), cluster, output)


def show_findings(findings: Iterable[Finding], cluster: Cluster, output: Output) -> int:
    """Show findings about a cluster as they come; the exit status is 1 if one is a problem."""
    width = shutil.get_terminal_size().columns if output.form is Form.TABLES else None
    status = 0
    for finding in findings:
        if finding.level is Level.PROBLEM:
            status = 1
        message, remedy = cluster.addressed(finding.message), cluster.addressed(finding.remedy)
        finding = finding._replace(message=message, remedy=remedy)
        output.show(finding, shown(finding, width))
    return status


def shown(finding: Finding, width: int | None = None) -> Iterator[Line]:
    """A finding as lines: its mark and its sentence, and below it, indented, the remedy.

    On a terminal, sentences are folded at its width; commands are not, because they are copied.
    """
    mark = MARKS[finding.level]
    first, *others = _folded(finding.message, width)
    yield mark._replace(text=f"{mark.text:<{INDENT}}"), first
    for line in finding.remedy.splitlines():
        others += [line] if line.startswith(" ") else _folded(line, width)
    for line in others:
        yield " " * INDENT + line


def _folded(text: str, width: int | None) -> list[str]:
    if width is None:
        return [text]
    return textwrap.wrap(text, max(width - INDENT, 20), break_long_words=False, break_on_hyphens=False)
