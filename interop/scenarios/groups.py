"""Consumer groups of the classic protocol: who gets what, and what is remembered."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from interop.clients.client import Client, GroupView, Member, Record
from interop.world import World, eventually, refused_with

GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, GROUP_SUBSCRIBED_TO_TOPIC = 69, 68, 86


class Follower:
    """A member that polls all the time, as a real consumer does, in a thread of its own."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.records: list[Record] = []
        self.assigned: frozenset[int] = frozenset()
        self.assignments = 0
        #: Its assignments, from one change to the next.
        self.history: list[frozenset[int]] = []
        self.error: BaseException | None = None
        self._todo: list[Callable[[], None]] = []
        self._closing = False
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def _follow(self) -> None:
        try:
            while not self._closing:
                self.records += self.member.poll(0.1)
                assigned = self.member.assignment()
                if assigned != self.assigned:
                    self.assigned, self.assignments = assigned, self.assignments + 1
                    self.history.append(assigned)
                while self._todo:
                    self._todo.pop()()
        except BaseException as error:
            self.error = error
        try:
            self.member.close()
        except Exception as error:
            self.error = self.error or error

    def commit(self) -> None:
        done = threading.Event()

        def commit_here() -> None:
            self.member.commit()
            done.set()

        self._todo.append(commit_here)
        assert done.wait(20), f"the commit did not end: {self.error}"

    def leave(self) -> None:
        self._closing = True
        self.thread.join(30)
        assert not self.thread.is_alive(), "the member did not close"
        if self.error is not None:
            raise self.error


@contextmanager
def following(*members: Member) -> Iterator[list[Follower]]:
    followers = [Follower(member) for member in members]
    try:
        yield followers
    finally:
        for follower in followers:
            if follower.thread.is_alive():
                follower.leave()


def shares(followers: list[Follower], partitions: int = 4) -> list[int]:
    """How many partitions each has, once every one is had by exactly one."""
    everything = sorted(partition for follower in followers for partition in follower.assigned)
    for follower in followers:
        if follower.error is not None:
            raise follower.error
    whole = everything == list(range(partitions))
    return sorted(len(follower.assigned) for follower in followers) if whole else []


def fill(client: Client, topic: str, partitions: int = 4, each: int = 25) -> set[bytes]:
    values = {f"{p}-{n}".encode() for p in range(partitions) for n in range(each)}
    client.produce(topic, [Record(value, partition=int(value.split(b"-")[0])) for value in sorted(values)])
    return values


def members_share_partitions_as_they_come_and_go(world: World, client: Client) -> None:
    topic, group = world.topic(client, partitions=4), world.name("share")
    with following(client.member(group, topic)) as followers:
        eventually(lambda: shares(followers) == [4], "one member has all partitions")
        followers.append(Follower(client.member(group, topic)))
        eventually(lambda: shares(followers) == [2, 2], "two members share")
        followers.append(Follower(client.member(group, topic)))
        eventually(lambda: shares(followers) == [1, 1, 2], "three members share")
        written = fill(client, topic)
        eventually(
            lambda: {r.value for f in followers for r in f.records} == written,
            "every record came to one of them",
        )
        followers.pop(0).leave()
        eventually(lambda: shares(followers) == [2, 2], "two take over what the third had")


def every_assignor_of_the_client_works(world: World, client: Client) -> None:
    assert client.strategies
    for strategy in client.strategies:
        topic, group = world.topic(client, partitions=4), world.name(strategy)
        with following(client.member(group, topic, strategy=strategy)) as followers:
            eventually(lambda: shares(followers) == [4], f"one member has all partitions ({strategy})")
            followers.append(Follower(client.member(group, topic, strategy=strategy)))
            eventually(lambda: shares(followers) == [2, 2], f"two members share ({strategy})")


def a_cooperative_member_keeps_what_it_does_not_give(world: World, client: Client) -> None:
    topic, group = world.topic(client, partitions=4), world.name("cooperative")
    strategy = "cooperative-sticky"
    with following(client.member(group, topic, strategy=strategy)) as followers:
        first = followers[0]
        eventually(lambda: shares(followers) == [4], "one member has all partitions")
        had_all = len(first.history)
        followers.append(Follower(client.member(group, topic, strategy=strategy)))
        eventually(lambda: shares(followers) == [2, 2], "two members share")
        kept = frozenset.intersection(*first.history[had_all - 1 :])
        assert kept == first.assigned, f"it had {first.history}"
        followers.pop().leave()
        eventually(lambda: shares(followers) == [4], "it has all again")
        assert all(kept <= assigned for assigned in first.history[had_all - 1 :]), f"it had {first.history}"


def clients_of_different_kinds_share_one_group(world: World, client: Client) -> None:
    """One member of each, led (and its partitions assigned) by the first that came, which is this one."""
    others = [other for other in world.able("member", "range") if other is not client]
    partitions = 1 + len(others)
    topic, group = world.topic(client, partitions=partitions), world.name("mixed")
    with following(client.member(group, topic)) as followers:
        eventually(lambda: shares(followers, partitions) == [partitions], "it has all partitions first")
        followers.extend(Follower(other.member(group, topic)) for other in others)

        def one_each() -> bool:
            return shares(followers, partitions) == [1] * partitions

        names = [client.name, *(other.name for other in others)]
        try:
            eventually(one_each, "each has one partition", 60)
        except AssertionError as error:
            had = {name: sorted(f.assigned) for name, f in zip(names, followers, strict=True)}
            raise AssertionError(f"{error}: {had}") from error
        written = fill(client, topic, partitions)
        eventually(
            lambda: {record.value for follower in followers for record in follower.records} == written,
            "together they read everything",
        )


def a_member_that_dies_is_replaced_after_its_session(world: World, client: Client) -> None:
    topic, group = world.topic(client, partitions=4), world.name("dead")
    doomed = subprocess.Popen(
        [sys.executable, "-m", "interop.member", client.name, world.broker.address, group, topic],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert doomed.stdout is not None
    try:
        assert doomed.stdout.readline().strip() == b"0 1 2 3", "the doomed member has all partitions first"
        with following(client.member(group, topic)) as followers:
            eventually(lambda: len(followers[0].assigned) == 2, "both share")
            doomed.send_signal(signal.SIGKILL)
            killed = time.monotonic()
            eventually(lambda: shares(followers) == [4], "the other has everything", 30)
            assert time.monotonic() - killed > 3, "a session of 6 s was ended too early"
    finally:
        doomed.kill()
        doomed.wait()
        doomed.stdout.close()


def a_static_member_comes_back_without_a_rebalance(world: World, client: Client) -> None:
    topic, group = world.topic(client, partitions=4), world.name("static")

    def static(name: str) -> Member:
        return client.member(group, topic, instance_id=name, session_timeout_ms=20_000)

    with following(static("one"), static("two")) as followers:
        eventually(lambda: shares(followers) == [2, 2], "two members share", 40)
        time.sleep(1)
        before = [(follower.assigned, follower.assignments) for follower in followers]
        followers.pop(0).leave()
        followers.insert(0, Follower(static("one")))
        eventually(lambda: followers[0].assigned == before[0][0], "it has its old partitions")
        assert (followers[1].assigned, followers[1].assignments) == before[1], "the other noticed nothing"
        assert world.for_client(client, "group").group(group) == GroupView("Stable", 2)


def a_commit_is_where_the_next_reader_begins(world: World, client: Client) -> None:
    topic, group = world.topic(client, partitions=4), world.name("commit")
    written = fill(client, topic)
    with following(client.member(group, topic)) as (follower,):
        eventually(lambda: len(follower.records) == len(written), "everything was read")
        follower.commit()
    for reader in world.able("committed"):
        assert [reader.committed(group, topic, p) for p in range(4)] == [25] * 4, reader.name
    client.produce(topic, [Record(b"later", partition=2)])
    for other in world.able("member", "commit"):
        with following(other.member(group, topic)) as (follower,):
            eventually(
                lambda: [r.value for r in follower.records] == [b"later"],
                f"{other.name} begins at the commit",
            )


def nothing_was_committed_by_an_unknown_group(world: World, client: Client) -> None:
    assert client.committed(world.name("unknown"), world.topic(client)) is None


def a_simple_consumer_commits_with_metadata(world: World, client: Client) -> None:
    topic, group = world.topic(client), world.name("simple")
    # A commit beyond the end would be out of range for a client that follows its own commits.
    fill(client, topic, partitions=1)
    assert client.commit_metadata(group, topic, 3, "half way") == "half way"
    found = {reader.name: reader.committed(group, topic) for reader in world.able("committed")}
    assert set(found.values()) == {3}, found


def a_group_is_listed_and_described(world: World, client: Client) -> None:
    topic, group = world.topic(client), world.name("listed")
    fill(client, topic, partitions=1)
    with following(client.member(group, topic)) as (follower,):
        eventually(lambda: len(follower.records) == 25, "everything was read")
        follower.commit()
        assert group in client.groups()
        eventually(lambda: client.group(group) == GroupView("Stable", 1), "the group is stable")
    eventually(lambda: client.group(group) == GroupView("Empty", 0), "the group is empty")
    assert group in client.groups()


def one_offset_of_a_group_is_deleted(world: World, client: Client) -> None:
    """Of a topic that no member follows; the others stay."""
    topic, other, group = world.topic(client), world.topic(client), world.name("offsets")
    fill(client, topic, partitions=1)
    writer = world.for_client(client, "commit_metadata")
    writer.commit_metadata(group, other, 7, "")
    writer.commit_metadata(group, topic, 5, "")
    client.delete_offset(group, other)
    assert (client.committed(group, other), client.committed(group, topic)) == (None, 5)
    with following(client.member(group, topic)) as (follower,):
        eventually(lambda: len(follower.records) == 20, "the rest was read")
        with refused_with(GROUP_SUBSCRIBED_TO_TOPIC):
            client.delete_offset(group, topic)


def only_an_empty_group_is_deleted(world: World, client: Client) -> None:
    topic, group = world.topic(client), world.name("deleted")
    fill(client, topic, partitions=1)
    with following(client.member(group, topic)) as (follower,):
        eventually(lambda: len(follower.records) == 25, "everything was read")
        follower.commit()
        with refused_with(NON_EMPTY_GROUP):
            client.delete_group(group)
    eventually(lambda: client.group(group).members == 0, "the member has left")
    client.delete_group(group)
    assert group not in client.groups()
    assert client.committed(group, topic) is None
    with refused_with(GROUP_ID_NOT_FOUND):
        client.delete_group(group)
