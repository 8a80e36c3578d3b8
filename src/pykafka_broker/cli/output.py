"""The output of a command: its result as one value, in one of three forms.

    lines    as Apache Kafka's tools print them: for all that is no terminal, the same in every release
    tables   for a person at a terminal: coloured, as wide as the terminal is (`tables.py`, which loads rich)
    JSON     with `--json`: one object, or one object a line where the command streams

A command takes `@json_option(Result)`, which gives it an `output`. It makes its results as named tuples,
whose fields are the names in the JSON, and hands each to `output.show` with its lines and, where a person
wants to look at something else, its tables:

    class Group(NamedTuple):
        group: str
        state: str

    @groups.command("list")
    @cluster_options
    @json_option(Group, key="groups")
    def list_(bootstrap_server: str, timeout_s: float, output: Output) -> None:
        found = ...
        output.show_all(found, lines=(group.group for group in found), tables=[Table(...)])

`docs/cli.md` documents the fields; a test compares it with the declarations here. Notes for a person besides
the result go to standard error with `output.note`, in every form. An error is the last line there: `Error:
...`, or with `--json` an object (`Failure`). Wrong usage (status 2) concerns the author of a script, and is
always text.

Names and messages come from other programs, and a pipe may end at a terminal: control characters are shown
as escapes in every form, line ends in a line too; on a terminal, all unprintable characters are. Notes and
errors are folded between words there.

Colours: none with NO_COLOR, CLICOLOR=0 or TERM=dumb. FORCE_COLOR and CLICOLOR_FORCE turn them on even if the
output is no terminal, but never turn lines into tables.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import IO, Any, TypeVar

import click

from pykafka_broker.cli.cells import Line, Styled, Table
from pykafka_broker.cli.terminal import terminal_width, wants_colour
from pykafka_broker.cli.wording import folded, harmless, one_line, printable_lines
from pykafka_broker.system.named_tuple import NamedTuple

Command = TypeVar("Command", bound=Callable[..., Any])

#: The control characters that JSON does not escape, and what UTF-8 cannot hold.
_LEFT_BY_JSON = re.compile("[\x7f-\x9f\ud800-\udfff]")


class Form(Enum):
    """The forms of output."""

    LINES = "lines"
    TABLES = "tables"
    JSON = "JSON"


class Failure(NamedTuple):
    """An error, as `--json` shows it; `code` is Kafka's name of the error, if it is one of Kafka's."""

    error: str
    code: str | None = None


# -- the output of one run of a command
# -------------------------------------


class Output:
    """Shows the results of one run of a command."""

    def __init__(self, form: Form, key: str | None = None, invocation: Invocation | None = None) -> None:
        self.form = form
        self._invocation = invocation or Invocation()
        #: The name under which the JSON object has the results, if the command has many.
        self.key = key
        self._has_tables = False

    def show(self, result: Any, lines: Iterable[Line], tables: Iterable[Table] | None = None) -> None:
        """Show one result. Only the wanted form is evaluated; without tables, a terminal gets the lines, each
        of which is shown as one.
        """
        if self.form is Form.JSON:
            click.echo(compact_json(json_value(result)))
        elif self.form is Form.TABLES and tables is not None:
            from pykafka_broker.cli.tables import print_tables

            print_tables(tables, gap_above=self._has_tables)
            self._has_tables = True
        elif said := list(lines):
            is_coloured = any(isinstance(line, tuple) for line in said) and wants_colour(
                sys.stdout, os.environ
            )
            text = "\n".join(self._written(line, is_coloured) for line in said)
            # Unless told otherwise, click removes colours if the output is no terminal.
            click.echo(text, color=is_coloured or None)

    def _written(self, line: Line, is_coloured: bool) -> str:
        if isinstance(line, str):
            line = one_line(line)
            return printable_lines(line) if self.form is Form.TABLES else line
        return "".join(self._part(part, is_coloured) for part in line)

    def _part(self, part: str | Styled, is_coloured: bool) -> str:
        if isinstance(part, str):
            return self._written(part, is_coloured)
        text = self._written(part.text, is_coloured)
        *attributes, colour = part.style.split()
        return click.style(text, fg=colour, bold="bold" in attributes) if is_coloured else text

    def show_all(
        self, results: Sequence[Any], lines: Iterable[Line], tables: Iterable[Table] | None = None
    ) -> None:
        """Show all results at once."""
        assert self.key is not None
        self.show({self.key: results}, lines, tables)

    @contextmanager
    def one_by_one(self) -> Iterator[Output]:
        """Show results as they come; as JSON, once all are there or an error ends it."""
        if self.form is not Form.JSON:
            yield self
            return
        collecting = Collecting()
        try:
            yield collecting
        finally:
            self.show_all(collecting.results, ())

    def note(self, text: str) -> None:
        """Tell a person something on standard error."""
        click.echo(told(self._invocation.addressed(text), sys.stderr), err=True)

    def remark(self, text: str) -> None:
        """Show a remark that Kafka's tools print among their lines; with JSON it goes to standard error."""
        is_among_json = self.form is Form.JSON
        click.echo(told(text, sys.stderr if is_among_json else sys.stdout), err=is_among_json)


class Collecting(Output):
    """Keeps results for the one object that has them all."""

    def __init__(self) -> None:
        super().__init__(Form.JSON)
        self.results: list[Any] = []

    def show(self, result: Any, lines: Iterable[Line], tables: Iterable[Table] | None = None) -> None:
        self.results.append(result)


def json_value(value: Any) -> Any:
    """A result in the types of JSON: named tuples and mappings are objects, other collections arrays."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: json_value(entry) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [json_value(entry) for entry in value]
    return value


def compact_json(value: Any) -> str:
    """JSON without spaces, as Kafka's tools print it; no control character is left in it."""
    import json

    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return _LEFT_BY_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


# -- the option, and what it means for errors
# -------------------------------------------


class Invocation:
    """What the running command has been given, as far as its errors and notes need it."""

    def __init__(self) -> None:
        self.as_json = False
        #: Puts the options that name the cluster into the commands that a text proposes.
        self.addressed: Callable[[str], str] = str


class JsonOption(click.Option):
    """`--json`; knows the form of the command's JSON.

    `result` is the named tuple of each object (None: docs/cli.md describes it), `key` the name under which
    one object has them all. Without a key, several objects are the lines of a stream; with `streams` the help
    says so.
    """

    def __init__(
        self,
        param_decls: Sequence[str],
        *,
        callback: Callable[[click.Context, click.Parameter, Any], Any],
        result: type | None,
        key: str | None,
        streams: bool,
    ) -> None:
        text = "One JSON object a line." if streams else "Print a JSON object."
        super().__init__(param_decls, is_flag=True, callback=callback, help=text)
        self.result = result
        self.key = key


def json_option(
    result: type | None, *, key: str | None = None, streams: bool = False
) -> Callable[[Command], Command]:
    """Give a command `--json`, and an `output` to show its results."""

    def chosen(ctx: click.Context, option: click.Parameter, as_json: bool) -> Output:
        invocation = ctx.find_object(Invocation)
        if as_json and invocation is not None:
            invocation.as_json = True
        if as_json:
            return Output(Form.JSON, key, invocation)
        return Output(Form.TABLES if sys.stdout.isatty() else Form.LINES, key, invocation)

    return click.option(
        "--json",
        "output",
        cls=JsonOption,
        result=result,
        key=key,
        streams=streams,
        callback=chosen,
    )


def show_failure(failure: Failure, as_json: bool) -> None:
    """Show an error on standard error."""
    if as_json:
        click.echo(compact_json(json_value(failure)), err=True)
        return
    is_coloured = wants_colour(sys.stderr, os.environ)
    title = "Error:"
    text = told(f"{title} {failure.error}", sys.stderr)
    if is_coloured:
        text = click.style(title, fg="red", bold=True) + text.removeprefix(title)
    click.echo(text, err=True, color=is_coloured)


def told(text: str, stream: IO[str]) -> str:
    """A message in the form in which it is written to a stream."""
    return folded(printable_lines(text), terminal_width(stream)) if stream.isatty() else harmless(text)
