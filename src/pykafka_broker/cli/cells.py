"""The parts of tables and coloured lines; `tables.py` draws the tables."""

from __future__ import annotations

from collections.abc import Sequence

from pykafka_broker.system.named_tuple import NamedTuple


class Styled(NamedTuple):
    """A cell in a style of rich's, like "green" or "bold red"."""

    text: str
    style: str


#: The content of a table's cell; None is shown as "-".
Cell = str | int | None | Styled
#: A line, or the parts of one, of which some are coloured where colours are wanted.
Line = str | tuple[str | Styled, ...]


class Column(NamedTuple):
    """A column of a table.

    Where the terminal is too narrow, ids are shortened in the middle and prose is folded first. Then columns
    are left out, the one with the highest `drop` first; 0 stays. A column that may be left out is also left
    out if it is empty.
    """

    title: str
    is_number: bool = False
    is_id: bool = False
    is_prose: bool = False
    drop: int = 0


class Table(NamedTuple):
    """Rows below titles, with a heading and details above them and a line below."""

    columns: Sequence[Column] = ()
    rows: Sequence[Sequence[Cell]] = ()
    heading: str | None = None
    #: Facts about all rows, by name: in one line if that is wide enough.
    details: Sequence[tuple[str, Cell]] = ()
    footer: str | None = None
