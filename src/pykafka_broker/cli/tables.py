"""Tables on a terminal, drawn by rich: columns without borders that fit the width.

To make a table fit, ids are shortened in the middle, down to `ID_WIDTH`, and prose is folded, down to
`PROSE_WIDTH`; then columns are left out in the order of their `drop`, and named in a line below; text still
too wide is folded. Unprintable characters are shown as escapes, so that a group's name cannot control the
terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from pykafka_broker.cli.cells import Cell, Column, Styled, Table
from pykafka_broker.cli.terminal import terminal_width, wants_colour
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import printable

GAP = 2
#: The least widths of shortened ids and of prose.
ID_WIDTH, PROSE_WIDTH = 13, 24
ELLIPSIS = "…"


class Fitted(NamedTuple):
    """The columns to show, their widths, and the titles of those without room."""

    columns: tuple[int, ...]
    widths: tuple[int, ...]
    left_out: tuple[str, ...]


def print_tables(tables: Iterable[Table], *, gap_above: bool = False) -> None:
    """Print tables to standard output, an empty line between two, and above if wanted."""
    is_coloured = wants_colour(sys.stdout, os.environ)
    width = terminal_width(sys.stdout)
    console = Console(
        file=sys.stdout,
        force_terminal=True,
        color_system="standard" if is_coloured else None,
        width=width,
        highlight=False,
        emoji=False,
    )
    for number, table in enumerate(tables):
        if number or gap_above:
            console.print()
        _print(console, table, width)


def _print(console: Console, table: Table, width: int) -> None:
    if table.heading is not None:
        console.print(Text(printable(table.heading), style="bold"), soft_wrap=True)
    details = [Text.assemble((f"{name}: ", "dim"), _cell(value)) for name, value in table.details]
    _print_details(console, details)
    cells = [[_cell(cell) for cell in row] for row in table.rows]
    fitted = fit(table.columns, [[text.plain for text in row] for row in cells], width)
    if table.rows:
        drawn = RichTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold cyan")
        for index, column_width in zip(fitted.columns, fitted.widths, strict=True):
            column = table.columns[index]
            drawn.add_column(
                Text(column.title),
                justify="right" if column.is_number else "left",
                overflow="fold",
                no_wrap=False,
                max_width=column_width,
            )
        for row in cells:
            drawn.add_row(
                *(
                    _shortened(row[index], column_width) if table.columns[index].is_id else row[index]
                    for index, column_width in zip(fitted.columns, fitted.widths, strict=True)
                )
            )
        console.print(drawn)
    if fitted.left_out:
        missing = ", ".join(fitted.left_out)
        console.print(Text(f"(no room for {missing}; --json has all)", style="dim"))
    if table.footer is not None:
        for line in table.footer.splitlines():
            console.print(Text(printable(line)))


def _print_details(console: Console, details: Sequence[Text]) -> None:
    """Print as many details in a line as fit, indented; a detail alone on its line may be folded."""
    lines: list[Text] = []
    for detail in details:
        if lines and lines[-1].cell_len + detail.cell_len + 2 * GAP <= console.width:
            lines[-1] = Text.assemble(lines[-1], " " * GAP, detail)
        else:
            lines.append(detail)
    for line in lines:
        console.print(Padding(line, (0, 0, 0, GAP), expand=False))


def fit(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> Fitted:
    """Choose columns and their widths."""
    shown = [
        index
        for index, column in enumerate(columns)
        if not column.drop or any(row[index] not in ("", "-") for row in rows)
    ]
    natural = {
        index: max(cell_len(text) for text in (columns[index].title, *(row[index] for row in rows)))
        for index in shown
    }
    least = {index: _least(columns[index], natural[index]) for index in shown}
    left_out = []
    while sum(least[index] + GAP for index in shown) - GAP > width:
        droppable = [index for index in shown if columns[index].drop]
        if not droppable:
            break
        worst = max(droppable, key=lambda index: columns[index].drop)
        shown.remove(worst)
        left_out.append(worst)
    spare = max(width - sum(least[index] + GAP for index in shown) + GAP, 0)
    widths = []
    for index in shown:
        # The first ids get the spare width, because readers look for them.
        extra = min(natural[index] - least[index], spare)
        spare -= extra
        widths.append(least[index] + extra)
    return Fitted(tuple(shown), tuple(widths), tuple(columns[index].title for index in sorted(left_out)))


def _least(column: Column, natural: int) -> int:
    """The least width of a column."""
    if column.is_id or column.is_prose:
        wanted = ID_WIDTH if column.is_id else PROSE_WIDTH
        return min(natural, max(wanted, cell_len(column.title)))
    return natural


def _cell(cell: Cell) -> Text:
    if isinstance(cell, Styled):
        return Text(printable(cell.text), style=cell.style)
    if cell is None:
        return Text("-", style="dim")
    return Text(printable(str(cell)))


def _shortened(cell: Text, width: int) -> Text:
    """An id without its middle, at most `width` wide: ids differ at their ends."""
    plain = cell.plain
    if cell_len(plain) <= width:
        return cell
    tail = (width - 1) // 2
    head = set_cell_size(plain, width - 1 - tail)
    return Text(f"{head}{ELLIPSIS}{_tail(plain, tail)}", style=cell.style)


def _tail(text: str, width: int) -> str:
    return set_cell_size(text[::-1], width)[::-1]
