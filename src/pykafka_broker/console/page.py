"""The parts of a page: `templates/page.html` draws them, and escapes every text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import quote, urlencode

from pykafka_broker.cli.cells import Cell, Column, Styled, Table
from pykafka_broker.protocol.errors import KafkaError
from pykafka_broker.system.named_tuple import NamedTuple

Found = TypeVar("Found")
#: The most rows of a table on one page.
PAGE_ROWS = 100


class Link(NamedTuple):
    """A cell, or an entry of a list, that leads to a page."""

    text: str
    href: str


class Live(NamedTuple):
    """A cell whose number the events of the page bring anew, with its course."""

    series: str
    value: int | None


HtmlCell = Cell | Link | Live
Row = Sequence[HtmlCell]


class Listing(NamedTuple):
    """A table of which one page is shown."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    #: What the table is about, for those who do not see it.
    caption: str
    details: Sequence[tuple[str, HtmlCell]] = ()
    footer: str | None = None
    pages: Sequence[Link] = ()
    #: The URL of events that bring new rows.
    tail: str | None = None


class Field(NamedTuple):
    """A field of a form; with `options`, one of these; of the kind "area", several lines."""

    name: str
    label: str
    value: str = ""
    kind: str = "text"
    options: Sequence[tuple[str, str]] = ()
    hint: str = ""
    is_required: bool = False
    #: What a browser may fill in by itself.
    autocomplete: str = ""


class Form(NamedTuple):
    """What a visitor may ask for: by GET to see something, by POST to change something."""

    action: str
    button: str
    fields: Sequence[Field] = ()
    hidden: Sequence[tuple[str, str]] = ()
    method: str = "post"
    is_dangerous: bool = False


class Chart(NamedTuple):
    """A number over time, from the events of the page."""

    series: str
    label: str


class Text(NamedTuple):
    """A paragraph, of the style "plain", "note", "warning" or "code"."""

    text: str
    style: str = "note"


Part = Listing | Form | Chart | Text


class Section(NamedTuple):
    """Parts under a heading."""

    heading: str
    parts: Sequence[Part]


class Page(NamedTuple):
    """A page; `events` is the URL of the events that keep it current."""

    title: str
    sections: Sequence[Section]
    links: Sequence[Link] = ()
    events: str | None = None


def url(path: str, /, **query: object) -> str:
    """A URL of the console; parameters that are None or "" are left out."""
    given = {key: value for key, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def topic_url(topic: str, under: str = "") -> str:
    """The URL of a topic's page, or of one under it."""
    return f"/topics/{quote(topic, safe='')}{under}"


def listing(
    table: Table, caption: str, rows: Sequence[Row] | None = None, pages: Sequence[Link] = ()
) -> Listing:
    """A table of a command, maybe with other rows; as there, some columns are left out if they are empty."""
    rows = table.rows if rows is None else rows
    shown = [
        at
        for at, column in enumerate(table.columns)
        if not column.drop or any(row[at] not in (None, "") for row in rows)
    ]
    return Listing(
        [table.columns[at] for at in shown],
        [[row[at] for at in shown] for row in rows],
        caption,
        table.details,
        table.footer,
        pages,
    )


def if_told(make: Callable[[], Sequence[Part]]) -> Sequence[Part]:
    """Some parts; if the cluster does not tell them, or not to this user, what it says instead."""
    try:
        return make()
    except KafkaError as error:
        return (Text(error.message or error.code.name),)
    except OSError as error:
        return (Text(str(error)),)


def page_of(
    found: Sequence[Found], path: str, query: Mapping[str, str], by: str = "page"
) -> tuple[Sequence[Found], list[Link]]:
    """What the page that `query` asks for shows, and the links to its neighbours. `by` is the name of its
    number in the query: where several tables are shown together, each has a name.
    """
    last = max(0, (len(found) - 1) // PAGE_ROWS)
    asked = query.get(by, "0")
    number = min(int(asked), last) if asked.isdecimal() and len(asked) < 9 else 0
    others = {key: value for key, value in query.items() if key not in (by, "done")}
    links = [
        Link(text, url(path, **others, **{by: to}))
        for text, to in (("Previous page", number - 1), ("Next page", number + 1))
        if 0 <= to <= last
    ]
    return found[number * PAGE_ROWS : (number + 1) * PAGE_ROWS], links


def one_page(shown: Listing, path: str, query: Mapping[str, str], by: str) -> Listing:
    """The page of a table that `query` asks for, as `page_of` finds it."""
    rows, pages = page_of(shown.rows, path, query, by)
    return shown._replace(rows=rows, pages=pages)


def marked(text: str | int, *, is_well: bool) -> Cell:
    """A cell that is red where something is not well."""
    return text if is_well else Styled(str(text), "red")
