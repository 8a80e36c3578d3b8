"""Random lives of a classic group: clients that do what real ones do, ghosts of former ones, and what must
always hold.

`World` is one group and its clients by a seed. After each step the group's books agree, each member that is
waited for has a timer, the log says what was agreed, and no client was told what contradicts what others were
told. Left in peace, the clients settle.
"""

from __future__ import annotations

import random
from typing import Any

from pykafka_broker.coordinator.groups.core.classic.state import ClassicGroup, Phase, Protocol
from pykafka_broker.coordinator.groups.core.config import GroupCoordinatorConfig
from pykafka_broker.coordinator.groups.core.events import JoinResult
from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.records import replay
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.records.group import GroupMetadataKey
from tests.support.groups import GroupWorld, check_books, durable, subscription
from tests.support.members import Member

CLIENTS = 6
SESSION_MS = 10_000
REBALANCE_MS = 15_000
#: A request is parked for a rebalance, and for the next one if the leader does not bring an assignment.
LONGEST_WAIT_MS = 4 * REBALANCE_MS + SESSION_MS
OFFERS = (
    (Protocol("range", subscription("t")),),
    (Protocol("range", subscription("t", "u")), Protocol("sticky", subscription("t"))),
    (Protocol("sticky", subscription("u")), Protocol("range", subscription("t"))),
)
GONE = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
AGAIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)


class Client:
    """A consumer as clients implement it: joins, syncs, heartbeats, commits, and now and then restarts."""

    def __init__(self, life: World, instance: str | None) -> None:
        self.life = life
        self.instance = instance
        self.begin()

    def begin(self) -> None:
        """As a new process."""
        self.offer = self.life.rng.choice(OFFERS)
        self.member_id = ""
        self.generation = -1
        self.parked: int | None = None
        self.parked_since_ms = 0
        self.step = self.join
        self.committed = 0

    @property
    def group(self) -> GroupWorld:
        return self.life.group

    def restart(self) -> None:
        """The process is gone without a word, and a new one starts."""
        if self.instance is not None and self.member_id and self.generation > 0:
            self.life.ghosts.append((self.member_id, self.instance))
        self.begin()

    def forget(self) -> None:
        self.member_id = ""
        self.step = self.join

    def park(self, token: int, then: Any) -> None:
        self.parked, self.parked_since_ms, self.step = token, self.group.now_ms, then

    def answer(self) -> Any:
        """The answer to the parked request; None if there is none yet."""
        assert self.parked is not None
        waited_ms = self.group.now_ms - self.parked_since_ms
        assert self.parked in self.group.answers or waited_ms <= LONGEST_WAIT_MS, "parked for ever"
        return self.group.answers.get(self.parked)

    def join(self) -> None:
        token = self.group.join(
            member_id=self.member_id,
            instance=self.instance,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocols=self.offer,
        )
        self.park(token, self.await_join)

    def await_join(self) -> None:
        answer = self.answer()
        if answer is None:
            return
        if answer.error in GONE:
            self.forget()
        elif answer.error is ErrorCode.GROUP_MAX_SIZE_REACHED:
            self.life.refused += 1
            self.forget()
        elif answer.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            assert self.life.is_reloaded, "all clients bring the same protocol"
            self.forget()
        elif answer.error is not ErrorCode.NONE:
            assert answer.error in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS)
            self.member_id, self.step = answer.member_id, self.join
        else:
            self.take_part(answer)

    def take_part(self, joined: JoinResult) -> None:
        self.member_id, self.generation = joined.member_id, joined.generation
        assert joined.protocol_name in {protocol.name for protocol in self.offer}
        told = self.life.told.setdefault(joined.generation, joined.protocol_name)
        assert told == joined.protocol_name, "one generation, two protocols"
        leads = joined.leader_id == joined.member_id and not joined.skip_assignment
        assert bool(joined.members) == (joined.leader_id == joined.member_id), "the leader alone sees members"
        shares = {member.member_id: f"{joined.generation}/{member.member_id}" for member in joined.members}
        if leads:
            assert joined.generation not in self.life.assigned, "a generation is assigned once"
            self.life.assigned[joined.generation] = shares
        encoded = {member_id: share.encode() for member_id, share in shares.items()} if leads else None
        token = self.group.sync(self.member_id, self.generation, encoded, instance=self.instance)
        self.park(token, self.await_sync)

    def await_sync(self) -> None:
        answer = self.answer()
        if answer is None:
            return
        self.react(answer.error)
        if answer.error is ErrorCode.NONE:
            self.life.takes_share(self, answer.assignment.decode())
            self.step = self.work

    def work(self) -> None:
        dice = self.life.rng.random()
        if dice < 0.08:
            if self.instance is None:
                self.leave()
            self.restart()
        elif dice < 0.12:
            self.offer = self.life.rng.choice(OFFERS)
            self.step = self.join
        elif dice < 0.15:
            self.commit_late()
        elif dice < 0.4:
            self.commit()
        else:
            self.beat()

    def leave(self) -> None:
        error = self.group.leave(self.member_id).members[0][1]
        assert error in (ErrorCode.NONE, *GONE)
        if error is ErrorCode.NONE:
            assert self.group.group().phase is not Phase.STABLE, "those who stay have to share anew"

    def commit_late(self) -> None:
        """A commit of the generation before is on its way longer than the rebalance took."""
        (error,) = self.group.commit(
            {("late", 0): -1}, Member(self.member_id, self.generation - 1, self.instance)
        ).values()
        assert error in (ErrorCode.ILLEGAL_GENERATION, *GONE), "a commit of the past is taken"

    def beat(self) -> None:
        self.react(self.group.heartbeat(self.member_id, self.generation, instance=self.instance))

    def commit(self) -> None:
        offset = self.committed + 1
        key = (self.instance or self.member_id, 0)
        (error,) = self.group.commit(
            {key: offset}, Member(self.member_id, self.generation, self.instance)
        ).values()
        if error is ErrorCode.NONE:
            self.committed = offset
            assert self.group.fetch()[key] == offset
        self.react(error)

    def react(self, error: ErrorCode) -> None:
        if error in GONE:
            self.forget()
        elif error in AGAIN:
            self.step = self.join
        else:
            assert error is ErrorCode.NONE, error


class World:
    """One group, by a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.max_size = self.rng.choice([CLIENTS, CLIENTS - 2, 1_000])
        self.group = GroupWorld(
            GroupCoordinatorConfig(
                group_initial_rebalance_delay_ms=self.rng.choice([0, 3_000]), group_max_size=self.max_size
            )
        )
        #: Member ids of static members that were replaced, with their instances.
        self.ghosts: list[tuple[str, str]] = []
        #: By generation: its protocol, and what its leader has assigned.
        self.told: dict[int, str | None] = {}
        self.assigned: dict[int, dict[str, str]] = {}
        self.shares = self.refused = 0
        #: Members of a group that was read back are known by the chosen protocol alone.
        self.is_reloaded = False
        self.generation = self.seen = 0
        self.agreed: ClassicGroup | None = None
        self.clients = [
            Client(self, self.rng.choice([None, f"static-{number}"])) for number in range(CLIENTS)
        ]

    def run(self, steps: int) -> None:
        for _ in range(steps):
            client = self.rng.choice(self.clients)
            dice = self.rng.random()
            if dice < 0.02:
                client.restart()
            elif dice < 0.025:
                self.reload()
            elif dice < 0.06 and self.ghosts:
                self.haunt(*self.rng.choice(self.ghosts))
            client.step()
            self.look()
            self.pass_time(self.rng.choice([0, 10, 300, 1_000, 4_000]))
        self.settle()

    def pass_time(self, duration_ms: int) -> None:
        """Look at the group after each timer."""
        until_ms = self.group.now_ms + duration_ms
        while timers := self.group.timers:
            key = min(timers, key=lambda key: (timers[key], str(key)))
            if timers[key] > until_ms:
                break
            self.group.fire(key)
            self.look()
        self.group.now_ms = until_ms

    def reload(self) -> None:
        """Another broker takes over: the log is left, and all clients begin anew."""
        self.group = self.group.reload()
        self.is_reloaded = True
        # As in Kafka, a generation that was joined but never assigned leaves no trace.
        self.generation = self.group.group().generation if "g" in self.group.state.groups else 0
        for known in (self.told, self.assigned):
            for generation in [each for each in known if each > self.generation]:
                del known[generation]
        for client in self.clients:
            client.restart()

    def haunt(self, member_id: str, instance: str) -> None:
        """A replaced member that is still running says something; the group must not believe it."""
        group = self.group.state.classic("g")
        owner = None if group is None else group.static_members.get(instance)
        if group is None or owner in (None, member_id):
            return
        beaten = self.group.heartbeat(member_id, group.generation, instance=instance)
        (committed,) = self.group.commit(
            {(instance, 0): -1}, Member(member_id, group.generation, instance)
        ).values()
        assert (beaten, committed) == (ErrorCode.FENCED_INSTANCE_ID,) * 2, "a ghost is believed"

    def takes_share(self, client: Client, share: str) -> None:
        """What a member gets is what the leader of its generation has given it, or its former self."""
        if not share:
            return
        self.shares += 1
        generation, _, member_id = share.partition("/")
        assert int(generation) == client.generation, "a share of another generation"
        assert self.assigned[client.generation][member_id] == share
        if client.instance is None:
            assert member_id == client.member_id, "the share of another client"
        else:
            assert member_id.startswith(client.instance), "the share of another client"

    # ---- what must hold ----

    def look(self) -> None:
        for record in self.group.log[self.seen :]:
            if isinstance(record, Record) and isinstance(record.key, GroupMetadataKey):
                group = self.group.state.classic("g")
                settled = group is not None and group.phase in (Phase.STABLE, Phase.EMPTY)
                self.agreed = durable(group) if group is not None and settled and group.generation else None
        self.seen = len(self.group.log)
        group = self.group.state.classic("g")
        if group is None:
            return
        check_books(group)
        if group.phase is Phase.STABLE:
            assert self.agreed is not None and self.agreed.generation == group.generation, (
                "nothing is written"
            )
        # Static members that are away may come on top until their sessions end.
        assert len(group.joining) <= self.max_size, "more join than there is room for"
        if group.phase in (Phase.COMPLETING_REBALANCE, Phase.STABLE):
            assert len(group.members) - len(group.static_members) <= self.max_size, "too many members"
        assert group.generation >= self.generation, "generations only grow"
        self.generation = group.generation
        self.every_wait_has_a_timer(group)
        if self.agreed is not None:
            assert replay(self.group.log).groups["g"] == self.agreed, "the log says something else"

    def every_wait_has_a_timer(self, group: ClassicGroup) -> None:
        """Each member that is waited for has a timer that ends the wait."""
        timers = self.group.timers
        for member_id in (*group.members, *group.pending_members):
            member = group.members.get(member_id)
            is_parked = member_id in group.joining or member_id in group.syncing
            if member is None or member.is_new or not is_parked:
                assert ("session", "g", member_id) in timers, "a member without a session"
        if group.phase is Phase.PREPARING_REBALANCE:
            assert ("join", "g") in timers, "a rebalance without an end"
        if group.unsynced and group.phase in (Phase.COMPLETING_REBALANCE, Phase.STABLE):
            assert ("sync", "g") in timers, "an assignment without an end"
        if group.phase is Phase.COMPLETING_REBALANCE and group.leader_id in group.syncing:
            raise AssertionError("the leader has spoken, and no member was told")

    def settle(self) -> None:
        """Left in peace, each client that finds room becomes a member of one generation, and stays."""
        for _ in range(500):
            for client in self.clients:
                if client.step == client.work:
                    client.beat()
                else:
                    client.step()
            self.look()
            self.pass_time(300)
        generations = {client.generation for client in self.clients if client.step == client.work}
        working = sum(client.step == client.work for client in self.clients)
        assert self.group.group().phase is Phase.STABLE, "left in peace, the group does not settle"
        assert generations == {self.group.group().generation}
        assert working == min(CLIENTS, self.max_size)
