"""How results are said: the three forms, tables that fit, colours as the environment has it, errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import termios
from collections.abc import Callable
from typing import NamedTuple

import pytest

from pykafka_broker.cli.cells import Column, Styled, Table
from pykafka_broker.cli.output import Failure, Form, Output, json_value, show_failure
from pykafka_broker.cli.tables import Fitted, fit, print_tables
from pykafka_broker.cli.terminal import terminal_width, wants_colour
from tests.cli.conftest import Output as Stream
from tests.cli.conftest import Run

Terminal = Callable[[int], None]

COLUMNS = (
    Column("TOPIC"),
    Column("LAG", is_number=True),
    Column("MEMBER", is_id=True, drop=1),
    Column("HOST", drop=2),
)
MEMBER = "reader-3f0c1d8e-8a77-4d6e-b1f5-5c9a7d2e4b60"
ROW = ("orders", "12", MEMBER, "/127.0.0.1")


class Inner(NamedTuple):
    partition: int
    leader: int | None


class Result(NamedTuple):
    topic: str
    partitions: list[Inner]
    configs: dict[str, str]


def printed(capsys: pytest.CaptureFixture[str], *tables: Table) -> list[str]:
    print_tables(tables)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_named_tuples_are_json_objects_all_the_way_down() -> None:
    value = {"topics": [Result("t", [Inner(0, None)], {"k": "v"})]}
    assert json_value(value) == {
        "topics": [{"topic": "t", "partitions": [{"partition": 0, "leader": None}], "configs": {"k": "v"}}]
    }


def test_each_form_says_the_same_result_in_its_way(
    capsys: pytest.CaptureFixture[str], terminal: Terminal
) -> None:
    terminal(80)
    for form in (Form.LINES, Form.TABLES, Form.JSON):
        Output(form).show(
            Inner(0, 1), ["line 0", "line 1"], [Table([Column("LEADER", is_number=True)], [[1]])]
        )
    assert capsys.readouterr().out == 'line 0\nline 1\nLEADER\n     1\n{"partition":0,"leader":1}\n'


def test_json_results_that_an_error_cuts_short_are_said_all_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(RuntimeError), Output(Form.JSON, "topics").one_by_one() as each:
        each.show(Inner(0, 1), ())
        raise RuntimeError
    assert capsys.readouterr().out == '{"topics":[{"partition":0,"leader":1}]}\n'


@pytest.mark.parametrize(
    ("width", "fitted"),
    [
        (80, Fitted((0, 1, 2, 3), (6, 3, 43, 10), ())),
        (66, Fitted((0, 1, 2, 3), (6, 3, 41, 10), ())),
        (40, Fitted((0, 1, 2, 3), (6, 3, 15, 10), ())),
        (37, Fitted((0, 1, 2), (6, 3, 24), ("HOST",))),
        (26, Fitted((0, 1, 2), (6, 3, 13), ("HOST",))),
        (25, Fitted((0, 1), (6, 3), ("MEMBER", "HOST"))),
        (5, Fitted((0, 1), (6, 3), ("MEMBER", "HOST"))),
    ],
)
def test_ids_are_shortened_before_columns_are_left_out(width: int, fitted: Fitted) -> None:
    assert fit(COLUMNS, [ROW], width) == fitted


def test_a_column_in_which_nothing_stands_is_left_out_without_a_word() -> None:
    assert fit(COLUMNS, [("orders", "12", "-", "-")], 80) == Fitted((0, 1), (6, 3), ())


def test_no_line_is_wider_than_the_terminal_and_what_is_missing_is_named(
    capsys: pytest.CaptureFixture[str], terminal: Terminal
) -> None:
    table = Table(COLUMNS, [ROW, ("clicks", 7, None, None)], heading="readers", footer="2 partitions")
    terminal(40)
    assert printed(capsys, table) == [
        "readers",
        "TOPIC   LAG  MEMBER           HOST",
        "orders   12  reader-…d2e4b60  /127.0.0.1",
        "clicks    7  -                -",
        "2 partitions",
    ]
    terminal(37)
    assert printed(capsys, table)[1:] == [
        "TOPIC   LAG  MEMBER",
        "orders   12  reader-3f0c1…c9a7d2e4b60",
        "clicks    7  -",
        "(no room for HOST; --json has all)",
        "2 partitions",
    ]


def test_text_that_is_too_wide_and_no_id_is_folded(
    capsys: pytest.CaptureFixture[str], terminal: Terminal
) -> None:
    terminal(10)
    assert printed(capsys, Table([Column("TOPIC")], [["abcdefghijklm"]])) == ["TOPIC", "abcdefghij", "klm"]


def test_what_a_terminal_would_obey_is_shown_as_an_escape(
    capsys: pytest.CaptureFixture[str], terminal: Terminal
) -> None:
    terminal(80)
    shown = printed(capsys, Table([Column("GROUP")], [["\x1b[2Jg[red]"], [Styled("\udcff\n", "red")]]))
    assert shown == ["GROUP", "\\x1b[2Jg[red]", "\\udcff\\n"]


@pytest.mark.parametrize(
    ("environ", "on_terminal", "on_pipe"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"CLICOLOR": "0"}, False, False),
        ({"CLICOLOR_FORCE": "1", "TERM": "dumb"}, True, True),
        ({"CLICOLOR_FORCE": "0"}, True, False),
        ({"TERM": "dumb"}, False, False),
    ],
    ids=str,
)
def test_colours_follow_the_environment(environ: dict[str, str], on_terminal: bool, on_pipe: bool) -> None:
    pipe, screen = Stream(), Stream()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    assert (wants_colour(screen, environ), wants_colour(pipe, environ)) == (on_terminal, on_pipe)


def test_forced_colours_do_not_change_what_a_script_reads(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("topics", "create", "coloured")
    plain = run("topics", "describe", "coloured")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run("topics", "describe", "coloured") == plain
    assert run("topics", "describe", "no-colour").err == (
        "\x1b[31m\x1b[1mError:\x1b[0m Topic 'no-colour' does not exist.\n"
    )


def test_an_error_is_an_object_with_json(run: Run) -> None:
    result = run("topics", "describe", "no-such", "--json")
    assert (result.status, result.out) == (1, "")
    assert json.loads(result.err) == {
        "error": "Topic 'no-such' does not exist.",
        "code": "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_wrong_usage_is_text_even_with_json(run: Run) -> None:
    result = run("topics", "create", "x", "--json", "--partitions", "0")
    assert result.status == 2
    assert result.err.startswith("Usage: pykafka-broker topics create")


def test_what_is_piped_is_printed_without_loading_rich(run: Run, broker: str) -> None:
    for command in ("topics list", "groups list", "health", "topics list --json"):
        script = (
            f"import sys\nfrom pykafka_broker.cli import main\ntry: main({command.split()})\n"
            "except SystemExit as end: assert not end.code\n"
            "sys.exit(any(name.partition('.')[0] == 'rich' for name in sys.modules))"
        )
        environ = {**os.environ, "PYKAFKA_BROKER_BOOTSTRAP_SERVER": broker}
        done = subprocess.run([sys.executable, "-c", script], env=environ, check=False, capture_output=True)
        assert (done.returncode, done.stderr) == (0, b""), command


def test_what_a_terminal_would_obey_is_shown_as_an_escape_in_errors(run: Run, terminal: Terminal) -> None:
    name = "a\x1b[31mb"
    piped = run("groups", "describe", name)
    terminal(80)
    assert {piped.err, run("groups", "describe", name).err} == {"Error: Group a\\x1b[31mb not found.\n"}


def test_names_of_others_control_no_terminal_and_end_no_line_through_a_pipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`tokens describe | cat` printed them as they were."""
    name = "a\x1b]0;x\x07\r\nUser:root\x7f\x9b2J\tü\u00a0"
    Output(Form.LINES).show(Inner(0, 1), [name, ("b ", Styled("\x1b[2J", "red"))])
    Output(Form.JSON).show({"name": name}, ())
    Output(Form.LINES).note(name)
    said = capsys.readouterr()
    escaped = "a\\x1b]0;x\\x07\\r\\nUser:root\\x7f\\x9b2J\tü\u00a0"
    lines, in_json = said.out.rsplit("\n", 2)[:2]
    assert lines == f"{escaped}\nb \\x1b[2J"
    assert (json.loads(in_json), "\x9b" in in_json) == ({"name": name}, False)
    assert said.err == escaped.replace("\\n", "\n") + "\n"


def test_names_of_others_are_escaped_on_a_terminal_where_they_stand_in_lines_and_notes(
    capsys: pytest.CaptureFixture[str], terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal(80)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    Output(Form.TABLES).show(Inner(0, 1), ["a\x1b[31mb\tc", "d"])
    Output(Form.TABLES).note("\nnote \x1b[2J")
    Output(Form.TABLES).remark("remark \x07")
    said = capsys.readouterr()
    assert said.out == "a\\x1b[31mb\tc\nd\nremark \\x07\n"
    assert said.err == "\nnote \\x1b[2J\n"


def test_notes_and_errors_are_folded_between_words_on_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "A partition's folder is gone:\n  /var/lib/pykafka-broker/data/orders-0 and others"
    Output(Form.LINES).note(text)
    assert capsys.readouterr().err == f"{text}\n"
    terminal(24)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    Output(Form.TABLES).note(text)
    show_failure(Failure(text), as_json=False)
    folder = "  /var/lib/pykafka-broker/data/orders-0\n  and others\n"
    assert capsys.readouterr().err == (
        f"A partition's folder is\ngone:\n{folder}Error: A partition's\nfolder is gone:\n{folder}"
    )


def test_the_first_word_of_an_error_is_coloured_where_colours_are_wanted(
    capsys: pytest.CaptureFixture[str], terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal(80)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    show_failure(Failure("no\x1b[0m"), as_json=False)
    assert capsys.readouterr().err == "\x1b[31m\x1b[1mError:\x1b[0m no\\x1b[0m\n"


def test_the_width_is_that_of_the_terminal_that_the_text_goes_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    main_end, other_end = os.openpty()
    try:
        with open(other_end, "w", closefd=False) as screen, open(os.devnull, "w") as file:
            termios.tcsetwinsize(other_end, (24, 61))
            widths = [terminal_width(screen), terminal_width(file), terminal_width(Stream())]
            monkeypatch.setenv("COLUMNS", "70")
            assert [*widths, terminal_width(screen)] == [61, 80, 80, 70]
    finally:
        os.close(main_end)
        os.close(other_end)
