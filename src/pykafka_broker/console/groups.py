"""Groups of all kinds: members, lags, why a state is as it is, and other offsets after a look at them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from pykafka_broker.cli.cells import Column, Styled, Table
from pykafka_broker.cli.explain.explanation import Fact
from pykafka_broker.cli.explain.gathering import explained
from pykafka_broker.cli.explain.group import state_fact
from pykafka_broker.cli.group_offsets import chosen_partitions, delete_group, wanted_and_new_offsets
from pykafka_broker.cli.group_state import Group, describe_group, positions, state_cell
from pykafka_broker.cli.groups import check_inactive, member_table, offset_table, state_table
from pykafka_broker.cli.offsets import LONG_MAX, parse_number
from pykafka_broker.cli.options import INT32_MAX
from pykafka_broker.cli.reset_offsets import ABSOLUTE_TARGETS, TARGETS
from pykafka_broker.cli.share_group_state import (
    ShareGroup,
    describe_share_group,
    set_start_offsets,
    start_offsets,
)
from pykafka_broker.cli.share_groups import check_empty
from pykafka_broker.cli.share_groups import member_table as share_member_table
from pykafka_broker.cli.share_groups import offset_table as share_offset_table
from pykafka_broker.cli.share_groups import state_table as share_state_table
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.offset import CommittedOffset
from pykafka_broker.client.offsets import commit_offsets, committed_with_metadata
from pykafka_broker.console import explain
from pykafka_broker.console.group_look import LAG_NOTE, Seen, listed, look
from pykafka_broker.console.page import (
    Field,
    Form,
    HtmlCell,
    Link,
    Listing,
    Live,
    Page,
    Part,
    Row,
    Section,
    Text,
    listing,
    one_page,
    page_of,
    url,
)
from pykafka_broker.console.visit import Visit
from pykafka_broker.machine.history import Kind
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.topic_partition import PartitionKey
from pykafka_broker.system.wording import counted

TO = {
    "to_earliest": "the first record",
    "to_latest": "the end",
    "to_current": "where the group is",
    "to_offset": "an offset",
    "shift_by": "forwards or backwards by",
    "to_datetime": "a time",
    "by_duration": "this long ago",
}
#: Of tables of many groups.
LOOK_COLUMNS = (
    Column("GROUP"),
    Column("STATE"),
    Column("MEMBERS", is_number=True),
    Column("LAG", is_number=True),
)
WITH_NUMBER = ("to_offset", "shift_by")
WITH_TEXT = ("to_datetime", "by_duration")


def group_url(group: str, under: str = "/groups/of", **query: object) -> str:
    """The URL of a group's page; a group's name may have any characters."""
    return url(under, group=group, **query)


def show_all(visit: Visit) -> Page:
    """The page of all groups, or of those with a text in their names."""
    wanted = visit.asked("q")
    groups, missing = listed(visit.client)
    found = [group for group in groups if wanted.lower() in group.name.lower()]
    shown, pages = page_of(found, "/groups", visit.query)
    columns = (*LOOK_COLUMNS, Column("TYPE"), Column("PROTOCOL"))
    rows: list[Row] = [
        [*look_cells(seen), group.group_type or None, group.protocol_type or None]
        for group, seen in zip(shown, look(visit.client, shown), strict=True)
    ]
    search = Form("/groups", "Search", (Field("q", "Name contains", wanted, "search"),), method="get")
    table = listing(Table(columns, footer=LAG_NOTE), "Groups", rows, pages)
    untold = [Text(why, "warning") for why in missing]
    parts: list[Part] = [search, *untold, table._replace(details=[("groups", len(found))])]
    return Page("Groups", (Section("All groups", parts),))


def look_cells(seen: Seen) -> Row:
    """A group at a look, under `LOOK_COLUMNS`."""
    return [Link(seen.name, group_url(seen.name)), state_cell(seen.state), seen.members, seen.lag]


def show(visit: Visit) -> Page:
    """The page of one group.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, or another error of the coordinator.
    """
    client, name = visit.client, visit.query.get("group", "")
    found: Group | ShareGroup | None = None

    def state(*_: object) -> list[Fact]:
        nonlocal found
        found = _described(client, name)
        return [state_fact(found.state)]

    # The state is asked for once, next to what the brokers tell about it.
    why = explained(client, Kind.GROUP, name, state, visit.settings.history)
    if found is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {name} not found.")
    is_share = isinstance(found, ShareGroup)
    about, members, offsets = _tables(client, found)
    sections = [
        Section("State", (about, *explain.parts(visit, "/groups/of", why))),
        Section("Members", (one_page(members, "/groups/of", visit.query, "members"),)),
        Section("Lag", (one_page(offsets, "/groups/of", visit.query, "partitions"),)),
        Section("Other offsets", (_reset_form(visit, name, is_share=is_share),)),
    ]
    if visit.can_write:
        confirm = Field("name", f"Type {name} to delete the group and its offsets", is_required=True)
        hidden = (("group", name),)
        sections.append(
            Section("Delete", (Form("/groups/delete", "Delete", (confirm,), hidden, is_dangerous=True),))
        )
    return Page(f"Group {name}", sections, events=group_url(name, "/groups/events"))


def committed(client: Client, name: str) -> dict[PartitionKey, CommittedOffset]:
    """The committed offsets of a group."""
    return client.at_coordinator(name, lambda node_id: committed_with_metadata(client, node_id, name))


def _described(client: Client, name: str) -> Group | ShareGroup:
    """A group of any kind.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, or another error of the coordinator.
    """
    return _share_group(client, name) or describe_group(client, name)


def _share_group(client: Client, name: str) -> ShareGroup | None:
    """A group, if its coordinator knows it as a share group."""
    try:
        return describe_share_group(client, name)
    except KafkaError as error:
        # Brokers that know no share groups refuse the version.
        if error.code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
            return None
        raise


def _is_share(client: Client, name: str) -> bool:
    return _share_group(client, name) is not None


def _tables(client: Client, group: Group | ShareGroup) -> tuple[Listing, Listing, Listing]:
    """A group's state, its members and its offsets."""
    return _of_share_group(client, group) if isinstance(group, ShareGroup) else _of_group(client, group)


def _of_group(client: Client, group: Group) -> tuple[Listing, Listing, Listing]:
    group = group._replace(offsets=positions(client, group))
    return (
        listing(state_table(group), f"Group {group.group}"),
        listing(member_table(group), f"Members of {group.group}")._replace(details=()),
        _with_courses(offset_table(group), group.group),
    )


def _of_share_group(client: Client, group: ShareGroup) -> tuple[Listing, Listing, Listing]:
    group = group._replace(offsets=start_offsets(client, group.group))
    return (
        listing(share_state_table(group), f"Share group {group.group}"),
        listing(share_member_table(group), f"Members of {group.group}")._replace(details=()),
        _with_courses(share_offset_table(group), group.group),
    )


def _with_courses(table: Table, name: str) -> Listing:
    """A table of offsets whose lags are kept current."""
    at = [column.title for column in table.columns].index("LAG")
    lags = {(str(row[0]), int(str(row[1]))): row[at] for row in table.rows}
    numbers = {key: lag.text if isinstance(lag, Styled) else lag for key, lag in lags.items()}
    rows: list[Row] = [
        [
            *row[:at],
            Live(series(key), None if number is None else int(number)),
            *row[at + 1 :],
        ]
        for row, (key, number) in zip(table.rows, numbers.items(), strict=True)
    ]
    return listing(table, f"Lag of {name}", rows)


def series(partition: PartitionKey) -> str:
    """The name of a partition's lag in the events of a page."""
    return f"{partition[0]}-{partition[1]}"


def follow(visit: Visit) -> Callable[[], object]:
    """The lags of a group."""
    client, name = visit.client, visit.query.get("group", "")
    is_share = _is_share(client, name)

    def lags() -> object:
        if is_share:
            found: Sequence[Any] = start_offsets(client, name)
        else:
            found = positions(client, describe_group(client, name))
        return {series((each.topic, each.partition)): each.lag for each in found}

    return lags


# -- other offsets
# ----------------


def _reset_form(visit: Visit, name: str, *, is_share: bool) -> Form:
    targets = ABSOLUTE_TARGETS if is_share else tuple(TARGETS)
    return Form(
        "/groups/reset",
        "Show what would change",
        (
            Field("topics", "Topics", visit.asked("topics"), hint="all if empty; as orders:0,1 payments"),
            Field("to", "To", visit.asked("to"), "select", [(target, TO[target]) for target in targets]),
            Field(
                "value",
                "Which",
                visit.asked("value"),
                hint="the offset, the number, the time like 2026-01-31T12:00, or the duration like PT15M",
            ),
        ),
        (("group", name),),
        "get",
    )


def preview(visit: Visit) -> Page:
    """The page of the offsets that a group would have."""
    name = visit.query.get("group", "")
    is_share = _is_share(visit.client, name)
    now, new = _new_offsets(visit.client, visit.query, is_share=is_share)
    columns = (
        Column("TOPIC"),
        Column("PARTITION", is_number=True),
        Column("OFFSET NOW", is_number=True),
        Column("ASKED FOR", is_number=True, drop=1),
        Column("NEW OFFSET", is_number=True),
    )
    rows: list[Sequence[HtmlCell]] = [
        [*key, now.get(key), None if wanted == offset else wanted, offset]
        for key, (wanted, offset) in sorted(new.items())
    ]
    parts: list[Part] = [
        _reset_form(visit, name, is_share=is_share),
        listing(Table(columns), f"New offsets of {name}", rows),
    ]
    if clamped := sum(wanted != offset for wanted, offset in new.values()):
        outside = f"In {counted(clamped, 'partition')} the offset that is asked for is outside of the log:"
        parts.append(Text(f"{outside} the new one is the log's first offset, or its end.", "warning"))
    if why_not := _why_offsets_stay(visit.client, name, is_share=is_share):
        parts.append(Text(why_not, "warning"))
    elif visit.can_write and new:
        # The offsets that are shown: computed again, the end, a time or a shift would be elsewhere.
        shown = ",".join(
            f"{topic}:{partition}:{offset}" for (topic, partition), (_, offset) in sorted(new.items())
        )
        hidden = [("group", name), ("offsets", shown)]
        parts.append(Form("/groups/reset", "Set these offsets", hidden=hidden, is_dangerous=True))
    if not visit.can_write:
        parts.append(Text("Nothing is changed: this console shows only."))
    return Page(f"Other offsets of {name}", (Section("Preview", parts),), (Link("Group", group_url(name)),))


def _why_offsets_stay(client: Client, name: str, *, is_share: bool) -> str:
    """Why the offsets of a group cannot be set now; "" if they can."""
    try:
        (check_empty if is_share else check_inactive)(client, name)
    except click.ClickException as error:
        return f"{error.message} Stop its members, and ask again."
    return ""


def reset(visit: Visit) -> str:
    """Set the offsets of a group without members, as the preview has shown them."""
    name, client, new = visit.form.get("group", ""), visit.client, _shown_offsets(visit.given("offsets"))
    if _is_share(client, name):
        set_start_offsets(client, name, new)
    else:
        check_inactive(client, name)
        client.at_coordinator(name, lambda node_id: commit_offsets(client, node_id, name, new))
    return group_url(name, done="changed")


def _shown_offsets(text: str) -> dict[PartitionKey, int]:
    """Offsets like `orders:0:120,orders:1:7`.

    Raises:
        click.ClickException: they are none.
    """
    offsets: dict[PartitionKey, int] = {}
    for entry in text.split(","):
        topic, _, rest = entry.partition(":")
        partition, _, offset = rest.partition(":")
        if not (topic and partition.isdecimal() and offset.isdecimal()) or int(partition[:20]) > INT32_MAX:
            raise click.ClickException(f"{entry!r} is no offset of a partition")
        offsets[topic, int(partition)] = parse_number(offset)
    return offsets


def _new_offsets(
    client: Client, asked: Mapping[str, str], *, is_share: bool
) -> tuple[Mapping[PartitionKey, int | None], dict[PartitionKey, tuple[int, int]]]:
    """The offsets of a group now, and of each partition the one that is asked for and the new one.

    Raises:
        click.ClickException: what is asked for makes no sense.
    """
    name, how, value = asked.get("group", ""), asked.get("to", ""), asked.get("value", "").strip()
    if how not in (ABSOLUTE_TARGETS if is_share else TARGETS):
        raise click.ClickException(f"{how!r} is no place to go to")
    now: dict[PartitionKey, Any] = (
        {(each.topic, each.partition): each.start_offset for each in start_offsets(client, name)}
        if is_share
        else {key: one.offset for key, one in committed(client, name).items()}
    )
    topics = asked.get("topics", "").split()
    partitions = chosen_partitions(client, topics) if topics else sorted(now)
    target: Any = value
    if how in WITH_NUMBER:
        target = _number(value, least=0 if how == "to_offset" else -LONG_MAX)
    elif how in WITH_TEXT and not value:
        raise click.ClickException(f"Say which: {TO[how]}")
    return now, wanted_and_new_offsets(client, partitions, {} if is_share else now, how, target)


def _number(text: str, least: int) -> int:
    """A number of a form.

    Raises:
        click.ClickException: it is none, or less than `least`, or more than offsets can be.
    """
    if re.fullmatch(r"[+-]?\d{1,19}", text) and least <= (number := int(text)) <= LONG_MAX:
        return number
    raise click.ClickException(f"{text!r} is no number from {least} to {LONG_MAX}")


def delete(visit: Visit) -> str:
    """Delete a group whose name was typed."""
    name = visit.form.get("group", "")
    visit.confirm(name)
    if code := delete_group(visit.client, name):
        raise KafkaError(ErrorCode(code), f"Group {name} is not deleted: {ErrorCode(code).message}")
    return "/groups?done=deleted"
