"""Hostile members of share groups and of streams groups beside a healthy one, which notices nothing.

`test_hostile_peers.py` has damaged frames of these APIs, as of all others: here the frames are sound and what
they say is not. The codes are Apache Kafka's, as far as `interop/conformance` compares them.
"""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from pykafka_broker.client.core.frames import framed
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import share_acknowledge as acknowledging
from pykafka_broker.protocol.messages import share_fetch as fetching
from pykafka_broker.protocol.messages import streams_group_heartbeat as streams
from pykafka_broker.protocol.wire import MAX_ELEMENTS
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis.asking import coordinated
from tests.apis.share_consuming import (
    ACCEPT,
    LIMITS,
    RELEASE,
    RENEW,
    Member,
    Said,
    acknowledged,
    acquired,
    errors_of,
    shared,
    values,
)
from tests.apis.sharing import GROUP
from tests.apis.streaming import AT_ONCE, beat, internal, reading, tasks
from tests.network.test_hostile_peers import LARGEST_GROWTH_BYTES, header, resident_bytes, talk
from tests.support.hostile import uvarint

LATEST = 2**63 - 1
MANY = 10_000
NONE, INVALID = ErrorCode.NONE, ErrorCode.INVALID_REQUEST


class Group:
    """A share group with a healthy member, that gets and accepts each record."""

    def __init__(self, home: Home, user: User, topic_id: bytes) -> None:
        self.home = home
        self.topic_id = topic_id
        self._user = user
        self._healthy = Member(user, topic_id, "healthy")
        self._number = 0

    async def begin(self) -> None:
        await self._healthy.opened(self.home, 0)

    async def goes_on(self) -> None:
        """The healthy member gets the next record, and those that were given back."""
        self._number += 1
        await self._user.produce("orders", b"%d" % self._number)
        answer = await self._healthy.fetch(max_wait_ms=10_000)
        assert b"%d" % self._number in values(answer)
        said = [(first, last, ACCEPT) for first, last, _ in acquired(answer)]
        assert acknowledged(await self._healthy.fetch(said={0: said})) == {0: NONE}

    @asynccontextmanager
    async def stranger(self) -> AsyncIterator[Member]:
        """A hostile member, on a connection of its own, with a session and a record that it was given."""
        async with await User.connect(self.home.broker.bootstrap_servers) as user:
            member = Member(user, self.topic_id, "hostile")
            await member.opened(self.home, 0)
            await self._user.produce("orders", b"for the stranger")
            assert values(await member.fetch(max_wait_ms=10_000)) == [b"for the stranger"]
            yield member


@pytest.fixture
async def group(home: Home, user: User) -> AsyncIterator[Group]:
    group = Group(home, user, await shared(user))
    await group.begin()
    with bounded(home):
        yield group
        await group.goes_on()


@pytest.fixture
def home() -> Home:
    return Home(AT_ONCE)


@pytest.fixture
async def user(home: Home) -> AsyncIterator[User]:
    async with home.running() as user:
        yield user


@contextmanager
def bounded(home: Home) -> Iterator[None]:
    """No handler fails here, and memory does not grow without bounds."""
    before = resident_bytes()
    yield
    assert home.broker.node.listeners.shared.counters.handler_failures == 0
    assert resident_bytes() - before < LARGEST_GROWTH_BYTES


# ---- acknowledgements ----

NONSENSE: dict[str, list[Said]] = {
    "reversed": [(1, 0, ACCEPT)],
    "overlapping": [(0, 5, ACCEPT), (3, 8, ACCEPT)],
    "out of order": [(5, 8, ACCEPT), (0, 3, ACCEPT)],
    "without a type": [(0, 0)],
    "with too few types": [(0, 2, ACCEPT, ACCEPT)],
    "with too many types": [(0, 0, *[ACCEPT] * MANY)],
    "of an unknown type": [(0, 0, 5)],
    "of a negative type": [(0, 0, -128)],
    "a renewal that is none": [(0, 0, RENEW)],
    "below zero": [(-2, 0, ACCEPT)],
    "of all numbers there are": [(-LATEST - 1, LATEST, ACCEPT)],
    "of every offset there can be": [(0, LATEST, ACCEPT)],
    "the last offset there can be": [(LATEST, LATEST, ACCEPT)],
}


@pytest.mark.parametrize("said", NONSENSE.values(), ids=NONSENSE)
async def test_an_acknowledgement_that_makes_no_sense_is_refused_alone(
    group: Group, said: list[Said]
) -> None:
    async with group.stranger() as member:
        answer = await member.fetch(said={0: said})
        assert acknowledged(answer) == {0: INVALID}
        assert errors_of(await member.acknowledge(*said)) == {0: INVALID}
        await group.goes_on()
        own = (await member.fetch()).responses
        assert own == [], "what it was given is still its own"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        # Neither of these is anybody's.
        ([(offset, offset, ACCEPT) for offset in range(1_000, 1_000 + MANY)], INVALID),
        # Two that touch are allowed, but the second finds its record gone.
        ([(0, 0, RELEASE)] * MANY, ErrorCode.INVALID_RECORD_STATE),
    ],
    ids=["far away", "the same"],
)
async def test_very_many_acknowledgements_are_refused_together(
    group: Group, said: list[Said], error: ErrorCode
) -> None:
    async with group.stranger() as member:
        assert errors_of(await member.acknowledge(*said)) == {0: error}
        await group.goes_on()


async def test_a_claim_of_billions_of_acknowledgements_ends_that_connection_alone(group: Group) -> None:
    partition = acknowledging.AcknowledgePartition(partition_index=0, acknowledgement_batches=[])
    topic = acknowledging.AcknowledgeTopic(topic_id=group.topic_id, partitions=[partition])
    request = acknowledging.ShareAcknowledgeRequest(
        group_id=GROUP, member_id="hostile", share_session_epoch=1, topics=[topic]
    )
    sound = encode(request, 1)
    # Behind the empty array come the empty tags of partition, topic and request.
    assert sound.endswith(b"\x01\x00\x00\x00")
    for count in (MAX_ELEMENTS + 1, 2**31 - 1, 2**31, 2**32 - 1):
        claim = sound[:-4] + uvarint(count) + struct.pack(">qq", 0, 0) + b"\x02\x01\x00\x00\x00\x00"
        assert await talk(group.home, framed(header(79, 1) + claim)) == b""
        await group.goes_on()


# ---- sessions and limits ----


async def test_a_session_that_there_is_not_forgets_nothing(group: Group) -> None:
    async with group.stranger() as known:
        stranger = Member(known.user, group.topic_id, "nobody")
        for epoch in (1, 5, 2**31 - 1, -1):
            answer = await stranger.fetch(epoch=epoch, forget=range(MANY))
            assert answer.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        for epoch in (known.epoch - 1, known.epoch + 1, 2**31 - 1, -2, -(2**31)):
            answer = await known.fetch(epoch=epoch, forget=[0])
            assert answer.error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert not (await known.fetch(forget=[*range(1, MANY), -1])).error_code
        await group.goes_on()


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ({"max_records": 2**31 - 1, "batch_size": 2**31 - 1, "max_bytes": 2**31 - 1}, NONE),
        ({"max_records": 2**31 - 1, "batch_size": 1, "share_acquire_mode": 1}, NONE),
        ({"max_records": -(2**31), "batch_size": -(2**31)}, NONE),
        ({"min_bytes": 2**31 - 1, "max_wait_ms": 0}, NONE),
        ({"min_bytes": -(2**31), "max_wait_ms": -(2**31)}, NONE),
        ({"share_acquire_mode": 127}, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_no_limit_of_a_fetch_gives_more_than_there_is(
    group: Group, limits: dict[str, int], error: ErrorCode
) -> None:
    async with group.stranger() as member:
        assert (await member.fetch(**limits)).error_code == error
        await group.goes_on()


async def test_very_many_partitions_that_there_are_not_are_each_refused(group: Group) -> None:
    asked = [
        fetching.FetchPartition(partition_index=index, acknowledgement_batches=[])
        for index in range(2, MANY + 2)
    ]
    async with group.stranger() as member:
        answer = await member.user.send(
            fetching.ShareFetchRequest(
                group_id=GROUP,
                member_id="another",
                share_session_epoch=0,
                topics=[fetching.FetchTopic(topic_id=group.topic_id, partitions=asked)],
                forgotten_topics_data=[],
                **LIMITS,
            ),
            2,
        )
        assert set(errors_of(answer).values()) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert len(errors_of(answer)) == MANY
        await group.goes_on()


# ---- applications ----


class Application:
    """A streams group with a healthy member, which has the tasks of topic t."""

    def __init__(self, home: Home, user: User) -> None:
        self.home = home
        self._user = user
        self._epoch = 0

    async def begin(self) -> None:
        await self._user.create_topic("t", partitions=2)
        await coordinated(self._user)
        joined = await beat(self._user, "healthy")
        assert joined.active_tasks == tasks(0, 1)
        self._epoch = joined.member_epoch

    async def goes_on(self) -> None:
        answer = await beat(self._user, "healthy", self._epoch)
        assert (answer.error_code, answer.member_epoch, answer.active_tasks) == (0, self._epoch, None)

    async def told(self, topology: streams.Topology, **said: Any) -> tuple[ErrorCode, list[int]]:
        """The error that a hostile application gets that joins another group, and what it is told."""
        async with await User.connect(self.home.broker.bootstrap_servers) as user:
            answer = await beat(user, "hostile", group="hostile", topology=topology, **said)
        return ErrorCode(answer.error_code), [each.status_code for each in answer.status or ()]


@pytest.fixture
async def application(home: Home, user: User) -> AsyncIterator[Application]:
    application = Application(home, user)
    await application.begin()
    with bounded(home):
        yield application
        await application.goes_on()


def linked(count: int, *, in_circles: bool, name_length: int = 1) -> streams.Topology:
    """Each subtopology writes what the one before it reads; the last reads t, or what the first writes."""
    parts = []
    for number in range(count):
        is_first_link = number == count - 1 and not in_circles
        source = reading("t") if is_first_link else reading()
        [part] = source.subtopologies
        part.subtopology_id = str(number).zfill(name_length)
        part.repartition_sink_topics = [f"r{number}"]
        if not is_first_link:
            part.repartition_source_topics = [internal(f"r{(number + 1) % count}")]
        parts.append(part)
    return streams.Topology(epoch=0, subtopologies=parts)


async def test_a_topology_that_runs_in_circles_is_invalid(application: Application) -> None:
    for count in (1, 2, 1_000):
        error, _ = await application.told(linked(count, in_circles=True))
        assert error == ErrorCode.STREAMS_INVALID_TOPOLOGY


async def test_a_topology_that_no_record_of_the_log_can_hold_is_an_error_and_creates_nothing(
    application: Application, user: User
) -> None:
    topics = await user.topics()

    error, _ = await application.told(linked(100, in_circles=False, name_length=16_000))

    assert error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert await user.topics() == topics


@pytest.mark.parametrize("index", [1, -1, 2**15 - 1, -(2**15)])
async def test_an_index_that_leads_nowhere_is_an_error_of_its_own(
    application: Application, index: int
) -> None:
    group = streams.CopartitionGroup(
        source_topics=[index], source_topic_regex=[], repartition_source_topics=[]
    )
    error, _ = await application.told(reading("t", copartition_groups=[group]))
    assert error == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    "parts",
    [
        {"state_changelog_topics": [internal("store", partitions=2**31 - 1)]},
        {"state_changelog_topics": [internal("../../etc")]},
        {"repartition_sink_topics": ["__consumer_offsets"]},
    ],
)
async def test_internal_topics_that_there_cannot_be_make_a_topology_invalid(
    application: Application, parts: dict[str, Any]
) -> None:
    error, _ = await application.told(reading("t", **parts))
    assert error == ErrorCode.STREAMS_INVALID_TOPOLOGY


async def test_tasks_of_a_member_that_joins_are_refused_however_many(application: Application) -> None:
    error, _ = await application.told(reading("t"), active_tasks=tasks(*range(MANY)))
    assert error == INVALID
