"""Share groups (KIP-932): many consumers on one partition, and each record acknowledged by itself."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress

from interop.clients.client import Acknowledgement, Client, Record, Refused, ShareMember
from interop.world import World, eventually, refused_with

INVALID_RECORD_STATE = 121
#: Heartbeats are five seconds apart, and a member has its partitions with the second or third.
PATIENCE_S = 60
#: So long nothing may come where nothing is to come.
SILENCE_S = 2.0
LOCK_MS = 4_000


def an_implicit_consumer_accepts_what_it_polls(world: World, client: Client) -> None:
    topic, group = world.topic(client), share_group(world, client)
    written = write(client, topic, 30)
    with joined(client, group, topic) as member:
        found = polled(member, written)
        assert {record.delivery_count for record in found} == {1}
    with joined(client, group, topic) as member:
        more = write(client, topic, 5, "more")
        assert Counter(record.value for record in polled(member, more)) == Counter(more)


def an_explicit_consumer_accepts_releases_and_rejects(world: World, client: Client) -> None:
    topic, group = world.topic(client), share_group(world, client)
    client.produce(topic, [Record(value) for value in (b"accept", b"release", b"reject", b"again")])

    def decide(record: Record) -> Acknowledgement:
        if record.value == b"reject":
            return "reject"
        is_released = record.value == b"release" and record.delivery_count == 1
        return "release" if is_released or (record.value == b"again" and count(record) < 4) else "accept"

    with joined(client, group, topic, explicit=True) as member:
        deliveries = Work(member, decide).until(lambda seen: len(seen) >= 8)
        write(client, topic, 1, "last")
        deliveries += Work(member, decide).until(lambda seen: len(seen) >= 1)
    by_value: dict[bytes | None, list[int]] = {}
    for record in deliveries:
        by_value.setdefault(record.value, []).append(count(record))
    assert by_value == {
        b"accept": [1],
        b"release": [1, 2],
        b"reject": [1],
        b"again": [1, 2, 3, 4],
        b"last 0": [1],
    }, by_value


def a_record_is_given_up_at_its_delivery_limit(world: World, client: Client) -> None:
    topic = world.topic(client)
    group = share_group(world, client, share_delivery_count_limit="2")
    client.produce(topic, [Record(b"poison")])

    def decide(record: Record) -> Acknowledgement:
        return "release" if record.value == b"poison" else "accept"

    with joined(client, group, topic, explicit=True) as member:
        deliveries = Work(member, decide).until(lambda seen: len(seen) >= 2)
        client.produce(topic, [Record(b"wholesome")])
        deliveries += Work(member, decide).until(lambda seen: len(seen) >= 1)
    assert [(record.value, record.delivery_count) for record in deliveries] == [
        (b"poison", 1),
        (b"poison", 2),
        (b"wholesome", 1),
    ]


def two_consumers_share_one_partition(world: World, client: Client) -> None:
    share_one_partition(world, client, [client, client])


def clients_of_different_kinds_share_one_partition(world: World, client: Client) -> None:
    others = [other for other in world.able("share_member") if other is not client]
    share_one_partition(world, client, [client, *others])


def share_one_partition(world: World, client: Client, consumers: list[Client]) -> None:
    """Write until each had something, and see that every record came to exactly one."""
    topic, group = world.topic(client), share_group(world, client)
    written: list[bytes] = []
    with ExitStack() as stack:
        members = [stack.enter_context(joined(one, group, topic, max_records=5)) for one in consumers]
        found: list[list[Record]] = [[] for _ in members]

        def write_on() -> bool:
            if not all(found):
                written.extend(write(client, topic, 20, f"round {len(written)},"))
            return all(found) and sum(map(len, found)) >= len(written)

        with following(members, found):
            eventually(write_on, "every consumer got something, and nothing is left", PATIENCE_S)
            time.sleep(SILENCE_S)
    assert Counter(record.value for each in found for record in each) == Counter(written)


def what_a_consumer_held_when_it_left_comes_to_another(world: World, client: Client) -> None:
    topic, group = world.topic(client), share_group(world, client)
    written = write(client, topic, 4)
    with joined(client, group, topic, explicit=True) as member:
        accepted, held = accept_half(member)
        assert held
    with joined(client, group, topic) as member:
        left = [value for value in written if value not in accepted]
        assert Counter(record.value for record in polled(member, left)) == Counter(left)


def what_outlived_its_lock_comes_to_another(world: World, client: Client) -> None:
    topic = world.topic(client)
    group = share_group(world, client, share_record_lock_duration_ms=str(LOCK_MS))
    write(client, topic, 3)
    with (
        joined(client, group, topic, explicit=True) as slow,
        joined(client, group, topic, explicit=True) as other,
    ):
        held = first_poll(slow)
        again = first_poll(other)
        assert again[0].value == held[0].value and again[0].delivery_count == 2, again
        slow.acknowledge(held[0], "accept")
        for record in held[1:]:
            slow.acknowledge(record, "release")
        with refused_with(INVALID_RECORD_STATE):
            slow.commit()
        for record in again:
            other.acknowledge(record, "accept")
        other.commit()


def a_renewed_lock_holds(world: World, client: Client) -> None:
    topic = world.topic(client)
    group = share_group(world, client, share_record_lock_duration_ms=str(LOCK_MS))
    write(client, topic, 1)
    with (
        joined(client, group, topic, explicit=True) as slow,
        joined(client, group, topic, explicit=True) as other,
    ):
        (held,) = first_poll(slow)
        until_s = time.monotonic() + 3 * LOCK_MS / 1000
        while time.monotonic() < until_s:
            slow.acknowledge(held, "renew")
            slow.commit()
            assert not other.poll(LOCK_MS / 4000), "it came to another"
        slow.acknowledge(held, "accept")
        slow.commit()
        assert not other.poll(SILENCE_S), "it came to another"


def what_a_killed_broker_was_not_told_is_delivered_again(world: World, client: Client) -> None:
    topic, group = world.topic(client), share_group(world, client)
    written = write(client, topic, 40)
    with joined(client, group, topic, explicit=True, max_records=10) as member:
        accepted, held = accept_half(member)
        world.broker.kill()
        world.broker.start()
        for record in held:
            member.acknowledge(record, "release")
        with suppress(Refused):
            member.commit()
        left = set(written) - accepted

        def is_done(seen: list[Record]) -> bool:
            return {record.value for record in seen} >= left

        deliveries = Work(member, lambda record: "accept").until(is_done)
        again = [record.value for record in deliveries if record.value in accepted]
        assert not again, f"acknowledged, and delivered again: {again}"
        more = write(client, topic, 5, "more")
        deliveries = Work(member, lambda record: "accept").until(lambda seen: len(seen) >= len(more))
        assert Counter(record.value for record in deliveries) == Counter(more)


def share_group(world: World, client: Client, **configs: str) -> str:
    """The name of a group that will begin with the first record; configs with underscores for dots."""
    group = world.name("share")
    for key, value in {"share_auto_offset_reset": "earliest", **configs}.items():
        client.set_group_config(group, key.replace("_", "."), value)
    return group


@contextmanager
def joined(
    client: Client, group: str, topic: str, *, explicit: bool = False, max_records: int = 500
) -> Iterator[ShareMember]:
    with closing(client.share_member(group, topic, explicit=explicit, max_records=max_records)) as member:
        yield member


def write(client: Client, topic: str, number: int, prefix: str = "value") -> list[bytes]:
    """So many records with values of their own."""
    values = [f"{prefix} {n}".encode() for n in range(number)]
    client.produce(topic, [Record(value) for value in values])
    return values


def count(record: Record) -> int:
    assert record.delivery_count is not None, "the client does not tell how often a record was delivered"
    return record.delivery_count


def polled(member: ShareMember, values: list[bytes]) -> list[Record]:
    """What an implicit consumer polls until it had so many records; one more poll accepts them."""
    found: list[Record] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < len(values):
        assert time.monotonic() < deadline, f"{len(found)} of {len(values)} records came"
        found += member.poll(0.5)
    found += member.poll(SILENCE_S)
    assert Counter(record.value for record in found) == Counter(values)
    return found


def first_poll(member: ShareMember) -> list[Record]:
    """The records of the first poll that brings any."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := member.poll(0.5)):
        assert time.monotonic() < deadline, "nothing came"
    return found


def accept_half(member: ShareMember) -> tuple[set[bytes | None], list[Record]]:
    """Poll, and accept every second record: their values; and the others, which are held."""
    found = first_poll(member)
    for record in found[1::2]:
        member.acknowledge(record, "accept")
    member.commit()
    return {record.value for record in found[1::2]}, found[::2]


class Work:
    """An explicit consumer at work: does with each record as it is told."""

    def __init__(self, member: ShareMember, decide: Callable[[Record], Acknowledgement]) -> None:
        self._member = member
        self._decide = decide

    def until(self, is_done: Callable[[list[Record]], bool]) -> list[Record]:
        """What came until so, and in a while after it."""
        seen: list[Record] = []
        deadline = time.monotonic() + PATIENCE_S
        while not is_done(seen):
            assert time.monotonic() < deadline, f"only these came: {seen}"
            seen += self._turn(0.5)
        return seen + self._turn(SILENCE_S)

    def _turn(self, timeout_s: float) -> list[Record]:
        found = self._member.poll(timeout_s)
        for record in found:
            self._member.acknowledge(record, self._decide(record))
        if found:
            self._member.commit()
        return found


@contextmanager
def following(members: list[ShareMember], found: list[list[Record]]) -> Iterator[None]:
    """Each polls in a thread of its own, and what it gets is found."""
    is_over = False

    def follow(member: ShareMember, mine: list[Record]) -> None:
        while not is_over:
            mine.extend(member.poll(0.1))
        mine.extend(member.poll(0.1))

    with ThreadPoolExecutor(len(members)) as threads:
        running = [threads.submit(follow, *each) for each in zip(members, found, strict=True)]
        try:
            yield
        finally:
            is_over = True
        for one in running:
            one.result()
