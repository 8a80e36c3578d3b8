"""The `pykafka-broker` command.

One file per command, imported only when that command is asked for: `start` must not pay for `consume`, nor
`health`, which Docker runs every few seconds, for anything. To add a command, write `<file>.py` with a click
command and name it in `COMMANDS`.

Errors that a user can cause (a broker that does not answer, a bad configuration, a refused request) end as
one line on stderr and exit status 1; wrong usage is click's status 2. A traceback means a bug of ours.
Commands show their results with `output.py`; docs/cli.md describes those of each.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from pykafka_broker import __version__
from pykafka_broker.system.interrupts import INTERRUPTED, raise_again

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from pykafka_broker.cli.output import Failure

#: Command -> the module that has it and its name there, with the line that `--help` shows.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "start": ("start", "start", "Run a broker."),
    "cluster": ("local_cluster", "cluster", "Run a cluster on this machine, a process for each node."),
    "format": ("format_storage", "format_storage", "Prepare data directories for a new cluster."),
    "topics": ("topics", "topics", "Create, list, describe, profile, alter and delete topics."),
    "groups": ("groups", "groups", "List, describe, reset and delete consumer groups."),
    "share-groups": (
        "share_groups",
        "share_groups",
        "List, describe, reset and delete share groups.",
    ),
    "produce": ("produce", "produce", "Write records to a topic."),
    "consume": ("consume", "consume", "Read records from a topic."),
    "configs": ("configs", "configs", "Describe and alter dynamic configurations."),
    "quotas": ("quotas", "quotas", "Describe, set and remove quotas of clients."),
    "acls": ("acls", "acls", "List, add and remove ACLs: who may do what."),
    "users": ("users", "users", "List, set and delete users with passwords (SCRAM)."),
    "certs": ("certs", "certs", "Make a small authority and certificates, for a laptop or a test."),
    "tokens": ("tokens", "tokens", "Create, renew, expire and describe delegation tokens."),
    "features": ("features", "features", "Describe, upgrade and downgrade the levels of features."),
    "quorum": ("quorum", "quorum", "Describe the quorum of controllers."),
    "brokers": ("brokers", "brokers", "List brokers and their disks, and forget a broker."),
    "elections": ("elections", "elections", "Let partitions elect leaders."),
    "reassign": ("reassign", "reassign", "Move partitions to other brokers."),
    "metadata": ("metadata_shell", "metadata", "Look into the metadata of a cluster."),
    "dump-log": ("dump_log", "dump_log", "Show what is in the files of a log."),
    "log": (
        "log_tools",
        "log",
        "Look into the data of a broker: dump, verify, count; of a stopped one, repair.",
    ),
    "health": ("health", "health", "Check that a broker answers."),
    "doctor": ("doctor", "doctor", "Find out why clients do not get on with a cluster."),
    "explain": (
        "explain",
        "explain",
        "Tell why groups rebalance, and producers, partitions and requests are held up.",
    ),
    "spark": ("spark", "spark", "Set up Spark beside Kafka, and find out what is wrong."),
    # In a package of its own, above this one.
    "console": (".console.command", "console", "Serve pages about a cluster to browsers."),
    "version": ("version", "version", "Say which version this is."),
    "completion": ("completion", "completion", "Print what makes a shell complete commands and options."),
}

#: Exit status when the reader of the output went away, as a shell reports a process that SIGPIPE ended.
READER_GONE = 141


class ReaderGoneError(Exception):
    """The reader of our output has closed it. Not an OSError: at EPIPE click itself ends with status 1."""


@contextmanager
def _noticing_closed_output() -> Iterator[None]:
    """Turn a BrokenPipeError into a ReaderGoneError: only the output raises it, as the client raises other
    errors.
    """
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGoneError from error


class Group(click.Group):
    """A group of commands that suggests the one that may be meant by an unknown name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            from pykafka_broker.config.suggestions import did_you_mean

            ctx.fail(f"No such command {name!r}.{did_you_mean(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


class LazyGroup(Group):
    """A group that imports a command's module when the command is used."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with _noticing_closed_output():  # --help and --version print here
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _noticing_closed_output():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[name]
        command: click.Command = getattr(import_module(f".{module}", __name__), attribute)
        raise_again()
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands without importing them."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=line)
            for name, (_, _, line) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    # \b keeps the lines as they are, for they are pasted.
    epilog=(
        "\b\nShell completion, in ~/.bashrc:\n"
        '  eval "$(pykafka-broker completion bash)"\n'
        "zsh and fish: pykafka-broker completion --help"
    ),
)
@click.version_option(__version__)
def cli() -> None:
    """A Kafka broker in Python, and the tools to work with any Kafka cluster."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; always ends with SystemExit."""
    from pykafka_broker.cli.output import Invocation, show_failure

    invocation = Invocation()
    try:
        status = cli.main(arguments, prog_name="pykafka-broker", standalone_mode=False, obj=invocation)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except ReaderGoneError:
        # As in `consume … | head`. At its end, Python would fail again to write the rest of the buffer.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                os.dup2(nowhere, stream.fileno())
        sys.exit(READER_GONE)
    except click.UsageError as error:
        error.show()
        sys.exit(error.exit_code)
    except Exception as error:
        failure = expected(error)
        if failure is None:
            raise
        failure = failure._replace(error=invocation.addressed(failure.error))
        show_failure(failure, invocation.as_json)
        sys.exit(1)
    sys.exit(status if isinstance(status, int) else 0)


def expected(error: Exception) -> Failure | None:
    """The failure to show for an error that is not a bug of ours, with the error's notes; None for a bug."""
    failure = _described(error)
    if failure is None:
        return None
    notes = getattr(error, "__notes__", ())
    if not notes:
        return failure
    return failure._replace(error="; ".join([failure.error.rstrip("."), *notes]))


def _described(error: Exception) -> Failure | None:
    from pykafka_broker.cli.output import Failure
    from pykafka_broker.protocol.errors import KafkaError, ProtocolError

    if isinstance(error, click.ClickException):
        return Failure(error.format_message())
    if isinstance(error, KafkaError):
        return Failure(error.message or error.code.name, error.code.name)
    if isinstance(error, ProtocolError):
        return Failure(f"The broker sent what is not Kafka's protocol: {error}")
    if isinstance(error, OSError):
        path = f": {error.filename}" if error.filename else ""
        return Failure(f"{error.strerror or error}{path}")
    # The code that raised the error has imported its module; this look-up must not import the others.
    for module, name in (
        ("pykafka_broker.config.keys", "ConfigError"),
        ("pykafka_broker.log.disk.directories", "LogDirError"),
        ("pykafka_broker.raft.format", "StorageFormatError"),
        ("pykafka_broker.spark.errors", "SparkError"),
    ):
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(error, kind):
            return Failure(str(error))
    return None
