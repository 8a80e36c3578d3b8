"""A quorum of simulated replicas, what clients and administrators do to it, and its faults.

For `FAULTS_MS` everything goes wrong that the seed's profile has. Then all is healed: within `ELECTION_MS` a
leader must be there, and within `SETTLE_MS` every replica must have every committed record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count

from pykafka_broker.raft.core.log_view import Membership
from pykafka_broker.raft.core.messages import AddVoter, Answer, Refused, RemoveVoter
from pykafka_broker.raft.core.quorum import NO_VOTERS, Address, ReplicaKey, Voter, VoterSet
from pykafka_broker.raft.core.roles import Leader
from pykafka_broker.raft.core.settings import Settings
from pykafka_broker.raft.core.state import RaftState, RaftStep, Send
from tests.simulation.core_replica import CORE
from tests.simulation.invariants import Invariants
from tests.simulation.network import Network
from tests.simulation.profile import draw
from tests.simulation.replica import Disk, Kind, Replica
from tests.simulation.violation import Violation, check
from tests.simulation.world import World

FAULTS_MS = 15_000
ELECTION_MS = 10_000
SETTLE_MS = 20_000
#: How long a change of the voters may be on its way before it is made.
CHANGE_MS = 10_000

NO_FAULTS: Mapping[str, float] = {}


class Quorum:
    """Everything of one seed."""

    def __init__(
        self,
        seed: int,
        faults: Mapping[str, float] = NO_FAULTS,
        kind: Kind = CORE,
        *,
        transcript: list[str] | None = None,
    ) -> None:
        self.seed = seed
        self.kind = kind
        self.world = World(seed, transcript=transcript)
        self.profile = draw(self.world.random)._replace(**faults)  # type: ignore[arg-type]  # numbers of any kind
        self.network = Network(self.world, self.profile)
        self.invariants = Invariants()
        self._values = count(1)
        self._is_faulty = True
        self._lost: dict[ReplicaKey, Disk] = {}
        #: When it was last asked to make these replicas voters, and to make these voters none.
        self._to_add: dict[ReplicaKey, int] = {}
        self._to_remove: dict[ReplicaKey, int] = {}
        #: Whose processes have ended on machines that are well.
        self._killed: set[int] = set()
        #: By sender, target and the id by which it is asked: what tells the sender that its connection broke.
        self._connections: dict[tuple[int, int, int], Callable[[], None]] = {}
        self.replicas: dict[int, Replica] = {}
        self._form()

    def _form(self) -> None:
        """The voters, and the observers that may become voters."""
        profile = self.profile
        node_ids = range(1, profile.voters + profile.observers + 1)
        bootstrap = tuple((f"node{node_id}", node_id) for node_id in node_ids)
        settings = Settings(bootstrap=bootstrap, auto_join=profile.auto_join)
        make = self.kind.begin(self)
        voting = {}
        for node_id in node_ids[: profile.voters]:
            directory_id = self._new_directory() if profile.kraft_version else bytes(16)
            endpoints = {settings.listener: (f"node{node_id}", node_id)}
            voting[node_id] = Voter(ReplicaKey(node_id, directory_id), endpoints)
        configured = VoterSet(voting)
        for node_id in node_ids:
            known = configured if node_id in voting or not profile.kraft_version else NO_VOTERS
            directory_id = voting[node_id].key.directory_id if node_id in voting else bytes(16)
            if directory_id == bytes(16):
                directory_id = self._new_directory()
            first = Membership(known, kraft_version=profile.kraft_version)
            self.replicas[node_id] = make(node_id, directory_id, first, settings)

    def _new_directory(self) -> bytes:
        return self.world.random.getrandbits(128).to_bytes(16, "big")

    # -- the run -----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the seed; raise a Violation."""
        try:
            self._run()
        finally:
            for replica in self.replicas.values():
                replica.end()

    def _run(self) -> None:
        world = self.world
        for replica in self.replicas.values():
            world.at(world.random.randint(0, 500), replica.start)
        self._repeat(self.profile.append_ms, self._append)
        self._repeat(self.profile.crash_ms, self._crash)
        self._repeat(self.profile.pause_ms, self._pause)
        self._repeat(self.profile.partition_ms, self._partition)
        self._repeat(self.profile.stop_ms, self._stop)
        self._repeat(self.profile.snapshot_ms, self._snapshot)
        self._repeat(self.profile.change_ms, self._change_voters)
        self._repeat(self.profile.empty_disk_ms, self._empty_disk)
        world.run_until(FAULTS_MS, self._is_spinning)
        self._heal()
        check(
            world.run_until(FAULTS_MS + ELECTION_MS, self._has_leader),
            f"no leader {ELECTION_MS} ms after all was healed",
        )
        self._is_faulty = False
        self._append_to_leader()
        done = world.run_until(world.now_ms + SETTLE_MS, self._has_settled)
        self.invariants.finished(list(self.replicas.values()))
        check(done, "the quorum does not settle")

    def _is_spinning(self) -> bool:
        if self.world.events > self.kind.max_events:
            raise Violation(f"{self.world.events} events by {self.world.now_ms} ms: a replica spins")
        return False

    def _repeat(self, interval_ms: int, action: Callable[[], None]) -> None:
        """Do something again and again, at times of chance, as long as there are faults."""
        if interval_ms == 0:
            return

        def again() -> None:
            if self._is_faulty:
                action()
                self.world.at(self.world.random.randint(1, 2 * interval_ms), again)

        self.world.at(self.world.random.randint(1, 2 * interval_ms), again)

    def _heal(self) -> None:
        """Everything is up and joined from now on."""
        self.network.heal()
        self._is_faulty = False
        self.world.note(lambda: "all is healed")
        for replica in self.replicas.values():
            replica.paused_until_ms = 0
            if replica.state is not None and replica.state.stopping:
                replica.crash(lose=False)
            replica.start()

    def _has_leader(self) -> bool:
        self._is_spinning()
        return any(
            replica.state is not None
            and isinstance(replica.state.role, Leader)
            and replica.state.role.high_watermark is not None
            for replica in self.replicas.values()
        )

    def _append_to_leader(self) -> None:
        """Clients go on until the last of their records is committed."""
        if self._has_settled():
            return
        for replica in self.replicas.values():
            if replica.is_leader:
                replica.append(1)
                return

    def _has_settled(self) -> bool:
        self._is_spinning()
        end_offset = len(self.invariants.committed)
        return end_offset > 0 and all(
            replica.state is not None
            and replica.state.high_watermark == end_offset
            and replica.disk.log.end_offset == end_offset
            for replica in self.replicas.values()
        )

    # -- clients and administrators ----------------------------------------------------------------------

    @property
    def watcher(self) -> Invariants:
        """Who is told of all that replicas do."""
        return self.invariants

    def next_value(self) -> int:
        """A record that no other is like."""
        return next(self._values)

    def _append(self) -> None:
        for replica in self.replicas.values():
            if replica.is_leader:
                replica.append(self.world.random.randint(1, 3))

    def _snapshot(self) -> None:
        self._any().take_snapshot()

    def _change_voters(self) -> None:
        """Ask every replica that thinks it leads to add an observer, or to remove a voter."""
        for replica in self.replicas.values():
            state = replica.state
            if state is None or not replica.is_leader:
                continue
            if state.log.kraft_version == 0:
                replica.upgrade()
                continue
            for _ in range(self.world.random.choice((1, 1, 3))):
                self._change_one(replica)

    def _change_one(self, replica: Replica) -> None:
        if replica.state is None:
            return
        voters = replica.state.log.voters.voters
        if self.world.happens(0.5) and len(voters) > 1:
            voter = self.world.random.choice([voters[node_id] for node_id in sorted(voters)])
            rest = replica.state.log.voters.without_voter(voter.key.node_id)
            if self._is_majority_intact() and self._has_intact_majority(rest):
                self._to_remove[voter.key] = self.world.now_ms
                replica.ask(RemoveVoter(voter.key), _unheard)
        else:
            other = self._any()
            self._to_add[other.local.key] = self.world.now_ms
            replica.ask(AddVoter(other.local.key, other.local.endpoints, 2000), _unheard)

    # -- faults ------------------------------------------------------------------------------------------

    def _any(self) -> Replica:
        return self.replicas[self.world.random.randint(1, len(self.replicas))]

    def _restart_later(self, replica: Replica) -> None:
        """Start it again after a while, perhaps on another port."""
        if self.network.profile.kraft_version and self.world.happens(0.1):
            replica.port += 100
        self.world.at(self.world.random.choice((5, 50, 500, 3000)), replica.start)

    def _crash(self) -> None:
        replica = self._any()
        if self.world.happens(0.5):
            self._kill(replica)
        else:
            self._killed.discard(replica.node_id)
            replica.crash()
        self._restart_later(replica)

    def _kill(self, replica: Replica) -> None:
        """End a process: its machine keeps what was written, closes its connections and refuses others."""
        replica.crash(lose=False)
        self._killed.add(replica.node_id)
        for (_, target, _), broken in self._connections.items():
            if target == replica.node_id:
                self.world.at(1, broken)

    def _pause(self) -> None:
        replica = self._any()
        replica.paused_until_ms = self.world.now_ms + self.world.random.randint(10, 6000)

    def _partition(self) -> None:
        if self.network.cut:
            self.network.cut = set()
        else:
            self.network.partition(self.replicas)

    def _stop(self) -> None:
        """A clean stop: hand over, for as long as the node has."""
        replica = self._any()
        if self.world.now_ms < replica.paused_until_ms:
            return
        replica.stop()

    def _empty_disk(self) -> None:
        """A replica loses its disk and comes back with another, if a majority of the voters has theirs.

        What is committed stays so: the lost disk votes no more, and every majority without it has the
        records.
        """
        replica = self._any()
        if self.profile.kraft_version == 0 or not self._is_majority_intact(without=replica.local.key):
            return
        replica.crash()
        self.world.note(lambda: f"n{replica.node_id} loses its disk")
        self._lost[replica.local.key] = replica.disk
        replica.lose_disk(self._new_directory())
        self._restart_later(replica)

    def _is_majority_intact(self, *, without: ReplicaKey | None = None) -> bool:
        """Whether a majority of all voters that may count soon has its disk, also without this one.

        A change that was asked for may be made when a leader that was paused goes on.
        """
        return all(
            self._has_intact_majority(voters, without=without)
            for other in self.replicas.values()
            for voters, _, _ in other.disk.view().memberships[-3:]
        )

    def _has_intact_majority(self, voters: VoterSet, *, without: ReplicaKey | None = None) -> bool:
        def is_intact(key: ReplicaKey) -> bool:
            return key != without and self.replicas[key.node_id].local.key == key

        keys = {voter.key for voter in voters.voters.values()}
        lost = {key for key in keys | self._recent(self._to_add) if not is_intact(key)}
        sure = keys - lost - self._recent(self._to_remove)
        return not keys or len(sure) > len(lost)

    def _recent(self, asked: Mapping[ReplicaKey, int]) -> set[ReplicaKey]:
        return {key for key, at_ms in asked.items() if self.world.now_ms - at_ms < CHANGE_MS}

    def disk_of(self, key: ReplicaKey) -> Disk:
        """The disk of a voter, if need be as it was when it was lost."""
        return self._lost.get(key) or self.replicas[key.node_id].disk

    # -- what replicas call ------------------------------------------------------------------------------

    def at_address(self, address: Address) -> Replica | None:
        """The replica that listens there."""
        node_id, port = address[1] % 100, address[1]
        replica = self.replicas[node_id]
        # Bootstrap servers are behind names that move along. With all healed every address is good: a voter
        # that has moved cannot be asked for its vote, and without it there may be no leader to tell.
        is_there = port in (node_id, replica.port) or not self._is_faulty
        return replica if is_there else None

    def carry(self, sender: Replica, send: Send, answered: Callable[[Answer | None], None]) -> None:
        """Carry a request over the network, and its answer back, or word that nothing listens there: of a
        replica that is down, and at times, by mistake, of one that is not.
        """
        target = self.at_address(send.to.address)
        if target is None:
            return
        life = sender.life
        if isinstance(send.request, AddVoter):
            self._to_add[send.request.key] = self.world.now_ms

        def refused() -> None:
            if life == sender.life:
                answered(Refused())

        def broken() -> None:
            if life == sender.life:
                answered(None)

        def reply(answer: Answer) -> None:
            def deliver() -> None:
                if life == sender.life:
                    answered(answer)

            self.network.carry(target.node_id, sender.node_id, deliver)

        def deliver() -> None:
            is_mistaken = self.world.happens(self.network.profile.drop / 10)
            if target.state is not None and not is_mistaken:
                target.ask(send.request, reply)
            elif (target.state is None and target.node_id in self._killed) or self.world.happens(0.5):
                self.world.at(1, refused)

        self._connections[sender.node_id, target.node_id, send.to.node_id] = broken
        self.network.carry(sender.node_id, target.node_id, deliver)

    def ended(self, replica: Replica) -> None:
        """A replica has stopped, or could not go on."""
        self._restart_later(replica)

    def stepped(self, replica: Replica, before: RaftState, step: RaftStep) -> None:
        """A replica has carried out a step: check it, and perhaps crash there."""
        self.invariants.stepped(replica, before, step)
        profile, world = self.network.profile, self.world
        is_new_leader = isinstance(step.state.role, Leader) and not isinstance(before.role, Leader)
        if (
            step.persist is not None
            and step.persist.voted_id >= 0
            and world.happens(profile.crash_after_vote)
        ):
            world.at(0, replica.crash)
            world.at(world.random.choice((5, 30)), replica.start)
        elif is_new_leader and world.happens(profile.crash_of_new_leader):
            world.at(world.random.randint(0, 100), replica.crash)
            world.at(world.random.choice((105, 600)), replica.start)


def _unheard(answer: Answer) -> None:
    """What an administrator is answered; the log will tell."""


def run(
    seed: int, faults: Mapping[str, float] = NO_FAULTS, kind: Kind = CORE, of: type[Quorum] = Quorum
) -> int:
    """Run a seed, with these values in its profile; return its number of events.

    Raises:
        Violation: an invariant does not hold, or the core refused an illegal state; with a transcript.
    """
    quorum = of(seed, faults, kind)
    try:
        quorum.run()
    except Exception as error:
        again: list[str] = []
        try:
            of(seed, faults, kind, transcript=again).run()
        except Exception as repeated:
            again.append(f"{type(repeated).__name__}: {repeated}")
        text = f"{kind.name} seed {seed}: {type(error).__name__}: {error}"
        raise Violation("\n".join([text, f"{quorum.profile}", *again[-200:]])) from error
    return quorum.world.events
