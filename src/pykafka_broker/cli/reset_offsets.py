"""What the `reset-offsets` commands of all kinds of groups share: options, checks and output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from pykafka_broker.cli.cells import Column, Table
from pykafka_broker.cli.columns import padded
from pykafka_broker.cli.names import Completions, topic_names
from pykafka_broker.cli.output import Output
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.named_tuple import NamedTuple

Command = TypeVar("Command", bound=Callable[..., Any])


class NewOffset(NamedTuple):
    """The new offset of a group in a partition; it is set if `executed`."""

    group: str
    topic: str
    partition: int
    new_offset: int
    executed: bool


#: The options that say where to, by parameter.
TARGETS: Mapping[str, Callable[[Any], Any]] = {
    "to_earliest": click.option("--to-earliest", is_flag=True, help="The first record."),
    "to_latest": click.option("--to-latest", is_flag=True, help="The end."),
    "to_current": click.option("--to-current", is_flag=True, help="Where the group is."),
    "to_offset": click.option("--to-offset", type=click.IntRange(min=0), metavar="N", help="This offset."),
    "shift_by": click.option("--shift-by", type=int, metavar="N", help="Forwards, or backwards if negative."),
    "to_datetime": click.option(
        "--to-datetime",
        metavar="TIME",
        help="The first record of this local time, like 2026-01-31T12:00:00, or 2026-01-31T12:00:00Z.",
    ),
    "by_duration": click.option(
        "--by-duration", metavar="PnDTnHnMnS", help="The first record since this long ago."
    ),
}
#: The options that need no committed offset.
ABSOLUTE_TARGETS = tuple(target for target in TARGETS if target not in ("to_current", "shift_by"))


def reset_options(
    all_topics: str, groups: Completions, targets: tuple[str, ...] = tuple(TARGETS)
) -> Callable[[Command], Command]:
    """Give a command the options that choose partitions and the new offset; `all_topics` is a help text,
    `groups` completes groups of its kind.
    """
    options = [
        click.argument("name", metavar="GROUP", shell_complete=groups),
        click.option(
            "--topic",
            "topics",
            metavar="TOPIC[:P,P…]",
            multiple=True,
            shell_complete=topic_names,
            help="A topic, or some of its partitions.",
        ),
        click.option("--all-topics", is_flag=True, help=all_topics),
        *(TARGETS[target] for target in targets),
        click.option("--execute", is_flag=True, help="Do it; otherwise only show it."),
    ]

    def decorated(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def chosen_target(topics: tuple[str, ...], all_topics: bool, target: Mapping[str, Any]) -> tuple[str, Any]:
    """The one option that chooses the new offset, as parameter and value; `target` has all of the command's.

    Raises:
        click.UsageError: there is none, or several, or no topics are named.
    """
    asked = [option for option, value in target.items() if value is not None and value is not False]
    if len(asked) != 1:
        options = ", ".join(f"--{option.replace('_', '-')}" for option in TARGETS if option in target)
        raise click.UsageError(f"Say where to: one of {options}.")
    if bool(topics) == all_topics:
        raise click.UsageError("Name the topics by --topic, or use --all-topics.")
    return asked[0], target[asked[0]]


def show_new_offsets(output: Output, name: str, new: Mapping[PartitionKey, int], execute: bool) -> None:
    """Show the new offsets of a group, in lines as Apache Kafka's tools have them."""
    moves = [NewOffset(name, *partition, offset, execute) for partition, offset in sorted(new.items())]
    columns = (Column("TOPIC"), Column("PARTITION", is_number=True), Column("NEW OFFSET", is_number=True))
    lines = padded(
        ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"),
        (15, 15, 10, 0),
        [tuple(map(str, move[:4])) for move in moves],
    )
    output.show_all(moves, lines, [Table(columns, [move[1:4] for move in moves], heading=name)])
    if not execute:
        output.note("\nNothing is changed yet: repeat with --execute.")
