"""`metadata shell`: browse the metadata of a cluster like files, as with Apache Kafka's kafka-metadata-shell.

    tree.py         the tree over an image, pure: names and texts, what is secret
    commands.py     cat, cd, find, ls, tree, ...: pure
    replaying.py    snapshots and batches of the metadata log, into an image
    files.py        the metadata in files
    observer.py     a reader of a running quorum, without I/O; live.py: over sockets
    prompt.py       a person at a prompt

Apache's shell of Kafka 4 reads a snapshot only; this reads logs and running clusters too.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.cluster import DEFAULT_BOOTSTRAP_SERVER, Cluster, telling_of_loss
from pykafka_broker.cli.metadata_shell import commands
from pykafka_broker.cli.metadata_shell.commands import Outcome, Session
from pykafka_broker.cli.metadata_shell.tree import View, root
from pykafka_broker.cli.options import Seconds, gathered, list_option
from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.cli.security import Credentials, security_options
from pykafka_broker.client.core.addresses import Address, parse_addresses
from pykafka_broker.system.named_tuple import NamedTuple

#: Lines that `history` can show.
MAX_HISTORY = 10_000


class Answer(NamedTuple):
    """What a command of the shell printed."""

    command: str
    lines: tuple[str, ...]
    problems: tuple[str, ...]


class Source(NamedTuple):
    """Where to read the metadata from: at most one of the four is given."""

    snapshot: str | None
    folder: str | None
    bootstrap_server: str | None
    bootstrap_controller: str | None


@click.group(cls=Group)
def metadata() -> None:
    """Look into the metadata of a cluster."""


@metadata.command(context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, metavar="[COMMAND [PATH…]]")
@click.option("-s", "--snapshot", metavar="FILE", help="Read a snapshot, a .checkpoint file.")
@click.option(
    "-f", "--folder", metavar="DIR", help="Read __cluster_metadata-0, or the log directory with it."
)
@list_option(
    "-b",
    "--bootstrap-server",
    metavar="HOST:PORT[,…]",
    envvar="PYKAFKA_BROKER_BOOTSTRAP_SERVER",
    show_envvar=True,
    help=f"Read from the controllers that these brokers know.  [default: {DEFAULT_BOOTSTRAP_SERVER}]",
)
@list_option(
    "--bootstrap-controller",
    metavar="HOST:PORT[,…]",
    help="Read from the quorum of these controllers.",
)
@gathered(Source, "source")
@click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(0.1),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the cluster.",
)
@security_options
@gathered(Credentials, "credentials")
@json_option(Answer, streams=True)
def shell(
    command: tuple[str, ...], source: Source, timeout_s: float, credentials: Credentials, output: Output
) -> int:
    """Browse the metadata of a cluster like files.

    With COMMAND, run that alone: ls, cat, tree or find. Else commands come from standard input; `help` lists
    them. If controllers need other security than brokers, give --bootstrap-controller and the controllers'
    security.
    """
    source = _only_one(source)
    servers = source.bootstrap_server or DEFAULT_BOOTSTRAP_SERVER
    cluster = Cluster(servers, timeout_s, *credentials, source.bootstrap_controller)
    with telling_of_loss(cluster):
        read, close = _reader(source, cluster)
        try:
            if command:
                session = Session(root(read()))
                outcome = commands.run(session, command)
                _show(" ".join(command), outcome, output)
                return 1 if outcome.problems else 0
            return _run_lines(read, output)
        finally:
            close()


def _only_one(source: Source) -> Source:
    """The source; brokers from the environment or a default do not count if files are named."""
    ctx = click.get_current_context()
    where = ctx.get_parameter_source("bootstrap_server")
    if where is click.core.ParameterSource.ENVIRONMENT and any(source._replace(bootstrap_server=None)):
        source = source._replace(bootstrap_server=None)
    if sum(value is not None for value in source) > 1:
        raise click.UsageError(
            "Only one of --snapshot, --folder, --bootstrap-server, --bootstrap-controller."
        )
    return source


def _reader(source: Source, cluster: Cluster) -> tuple[Callable[[], View], Callable[[], None]]:
    """A function that reads the newest metadata, and one that ends reading."""
    if source.snapshot is not None or source.folder is not None:
        from pykafka_broker.cli.metadata_shell.files import read_folder, read_snapshot

        view = (
            read_snapshot(source.snapshot)
            if source.snapshot is not None
            else read_folder(source.folder or "")
        )
        return (lambda: view), (lambda: None)
    from pykafka_broker.cli.metadata_shell.live import LiveMetadata, controllers_of

    if source.bootstrap_controller is not None:
        controllers = _addresses(source.bootstrap_controller, "--bootstrap-controller")
    else:
        _addresses(cluster.bootstrap_server, "--bootstrap-server")
        controllers = controllers_of(cluster)
    live = LiveMetadata(controllers, cluster.timeout_s, cluster.identity)
    return live.newest, live.close


def _addresses(text: str, option: str) -> list[Address]:
    try:
        return parse_addresses(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def _run_lines(read: Callable[[], View], output: Output) -> int:
    """Run the typed lines, or the script on standard input; status 1 if a command of a script failed."""
    is_prompt = sys.stdin.isatty() and output.form is not Form.JSON
    session = Session(root(read()))
    status = 0

    def complete(before: str, text: str) -> list[str]:
        return commands.completions(session, before, text)

    for line in _lines(is_prompt, complete):
        if line.strip():
            session = session._replace(history=(*session.history, line)[-MAX_HISTORY:])
        width = shutil.get_terminal_size().columns if is_prompt else None
        session = session._replace(root=root(read()), width=width)
        outcome = commands.execute(session, line)
        session = session._replace(working_directory=outcome.working_directory)
        _show(line, outcome, output)
        if outcome.problems and not is_prompt:
            status = 1
        if outcome.has_ended:
            break
    return status


def _lines(is_prompt: bool, complete: Callable[[str, str], list[str]]) -> Iterable[str]:
    from pykafka_broker.cli.metadata_shell.prompt import scripted_lines, typed_lines

    return typed_lines(complete) if is_prompt else scripted_lines()


def _show(line: str, outcome: Outcome, output: Output) -> None:
    if output.form is Form.JSON:
        if line.strip():
            output.show(Answer(line, outcome.lines, outcome.problems), ())
        return
    output.show(None, outcome.lines)
    for problem in outcome.problems:
        output.note(problem)
