"""A broker killed before every single disk operation of a life full of transactions.

Each transaction writes to two topics and commits an offset; some are committed, some aborted. Before each
disk operation (the decision, each marker, the completion, every batch) a copy of the disk is kept, with what
the producer had been told by then. Every copy must start, finish what was decided without being asked, and
show all of a transaction or nothing; what the producer was told is what happened.
"""

from __future__ import annotations

import pytest

from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.memory_files import MemoryFiles
from pykafka_broker.testing.user import LATEST, User
from tests.apis.asking import offsets_at
from tests.apis.test_add_offsets_to_txn import error_of as add_offsets
from tests.apis.transacting import (
    Producer,
    committed_values,
    completed,
    coordinated,
    described,
    initialising,
)
from tests.broker.test_every_crash import Recorder, Told

pytestmark = pytest.mark.acknowledged

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "connections.max.idle.ms": "-1",
}
TOPICS = ("a", "b")
GROUP = "readers"
COMMITTED = (True, False, True)


class ToldOfTransactions(Told):
    """What the producer has been told so far."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun = False
        #: Transactions that the producer has asked to end, and those it knows the outcome of.
        self.asked: set[int] = set()
        self.outcomes: dict[int, bool] = {}

    def copy(self) -> ToldOfTransactions:
        copy = ToldOfTransactions()
        copy.has_begun, copy.asked, copy.outcomes = self.has_begun, set(self.asked), dict(self.outcomes)
        return copy


class TransactionRecorder(Recorder):
    def __init__(self) -> None:
        super().__init__(MemoryFiles.killed)
        self.told: ToldOfTransactions = ToldOfTransactions()


async def live(home: Home, told: ToldOfTransactions, *, old: bool) -> None:
    """A whole life; `told` grows as answers come."""
    async with home.running() as user:
        for topic in TOPICS:
            await user.create_topic(topic)
        await user.find_coordinator(GROUP)
        told.has_begun = True
        producer = await Producer.of(user, old=old)
        for number, commit in enumerate(COMMITTED):
            for topic in TOPICS:
                await producer.write(topic, b"%d" % number)
            if old:
                assert await add_offsets(producer, group=GROUP) == ErrorCode.NONE
            assert await producer.try_to_commit(GROUP, "a", number + 1) == ErrorCode.NONE
            told.asked.add(number)
            answer = await producer.try_to_end(commit=commit)
            assert answer.error_code == 0
            told.outcomes[number] = commit
            if not old:
                producer.goes_on_as(answer.producer_id, answer.producer_epoch)
            await completed(user)


async def last_stable(user: User, topic: str) -> int:
    answer = await user.send(offsets_at(topic, LATEST, isolation_level=1), 7)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


async def finished(home: Home, user: User) -> None:
    """Wait until nothing that was decided is left to do."""
    while (await described(user)).transaction_state.startswith("Prepare"):
        await home.pass_time(100)


async def check(home: Home, user: User, told: ToldOfTransactions) -> None:
    await coordinated(user)
    await finished(home, user)
    seen = [await committed_values(user, topic) for topic in TOPICS]
    await user.find_coordinator(GROUP)
    position = (await user.committed(GROUP)).get(("a", 0), 0)

    # A new producer fences the old one and aborts what it left open: nothing hangs.
    while (await user.send(initialising(), 5)).error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
        await finished(home, user)
    await finished(home, user)
    for topic in TOPICS:
        assert await last_stable(user, topic) == await user.offset_for(topic, LATEST)
    assert [await committed_values(user, topic) for topic in TOPICS] == seen, "an outcome has changed"

    assert seen[0] == seen[1], "a transaction was torn"
    visible = {int(value) for value in seen[0]}
    assert position == max(visible, default=-1) + 1, "positions and records disagree"
    for number, commit in enumerate(COMMITTED):
        if number in told.outcomes:
            assert (number in visible) == told.outcomes[number]
        elif number not in told.asked or not commit:
            assert number not in visible
    producer = await Producer.of(user)
    await producer.write("a", b"9")
    await producer.end()
    assert (await committed_values(user, "a"))[-1] == b"9"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("old", [True, False], ids=["version 1", "version 2"])
async def test_a_kill_before_any_disk_operation_leaves_whole_transactions(old: bool) -> None:
    files = TransactionRecorder()
    home = Home(SETTINGS, files=files)
    await live(home, files.told, old=old)
    tried = 0
    for moment, disk, told in files.copies:
        assert isinstance(told, ToldOfTransactions)
        if not told.has_begun:
            continue  # what comes before is the story of test_every_crash
        tried += 1
        after = Home(SETTINGS, files=disk, clock=home.clock)
        try:
            async with after.running() as user:
                await check(after, user, told)
        except BaseException as error:
            error.add_note(f"killed before {moment}")
            raise
    assert tried > 40
