"""A streams group whose members are reconciled step by step, and the clients that run its tasks.

The group is changed by records only. Clients are those of an application: they run what they were told last,
give up what they are told to after a while, and say what they run only now and then.
"""

from __future__ import annotations

import random

from pykafka_broker.coordinator.groups.core.record import Record
from pykafka_broker.coordinator.groups.core.streams import reconciliation
from pykafka_broker.coordinator.groups.core.streams import records as written
from pykafka_broker.coordinator.groups.core.streams.assignor import ASSIGNOR
from pykafka_broker.coordinator.groups.core.streams.assignor.spec import (
    GroupSpec,
    MemberSpec,
    SubtopologySpec,
)
from pykafka_broker.coordinator.groups.core.streams.reconciliation import Target
from pykafka_broker.coordinator.groups.core.streams.records import apply
from pykafka_broker.coordinator.groups.core.streams.state import StreamsGroup, StreamsMember
from pykafka_broker.coordinator.groups.core.streams.tasks import TaskId, Tasks, task_ids, task_map


class Client:
    """A member as it really is: the tasks it runs, by role, and the ones it was told to run."""

    def __init__(self, member_id: str, process_id: str) -> None:
        self.member_id = member_id
        self.process_id = process_id
        self.runs = (set[TaskId](), set[TaskId](), set[TaskId]())
        self.told = (set[TaskId](), set[TaskId](), set[TaskId]())

    def is_told(self, tasks: Tasks) -> None:
        """Begin what is new. What is not in `tasks` any more runs on until it is given up."""
        for runs, told, role in zip(self.runs, self.told, tasks, strict=True):
            told.clear()
            told.update(task_ids(role))
            runs |= told

    def give_up(self) -> None:
        """End what it was not told to run."""
        for runs, told in zip(self.runs, self.told, strict=True):
            runs &= told

    @property
    def owned(self) -> Tasks:
        return Tasks(*(task_map(runs) for runs in self.runs))


class StreamsWorld:
    """One group, its clients, and all records written of it."""

    def __init__(self, parts: dict[str, SubtopologySpec], num_standby_replicas: int = 1) -> None:
        self.parts = parts
        self.num_standby_replicas = num_standby_replicas
        self.group: StreamsGroup | None = None
        self.log: list[Record] = []
        self.clients: dict[str, Client] = {}

    def write(self, *records: Record) -> None:
        for record in records:
            self.group = apply(self.group, record)
            self.log.append(record)

    @property
    def known(self) -> StreamsGroup:
        assert self.group is not None
        return self.group

    # ---- what happens ----

    def join(self, member_id: str, process_id: str) -> None:
        """A client joins, and gets its first tasks."""
        self.clients[member_id] = Client(member_id, process_id)
        member = StreamsMember.joining(member_id)._replace(process_id=process_id)
        self.write(written.member_record("g", member))
        self._bump()
        self.beat(member_id)

    def die(self, member_id: str) -> None:
        """A client ends, and the coordinator learns of it."""
        del self.clients[member_id]
        self.write(*written.member_tombstones("g", member_id))
        self._bump()

    def grow(self, part: str, count: int) -> None:
        """A source topic gets more partitions."""
        self.parts[part] = self.parts[part]._replace(task_count=count)
        self._bump()

    def beat(self, member_id: str, *, says: bool = True) -> None:
        """A client sends a heartbeat, in which it says what it runs or not, and does what it is told."""
        client, member = self.clients[member_id], self.known.members[member_id]
        target = Target(self.known.assignment_epoch, self.known.target_of(member_id), self.known.holders)
        after = reconciliation.reconciled(member, target, client.owned if says else None)
        if after != member:
            self.write(written.current_record("g", after))
        assigned = after.assigned
        active = {name: frozenset(epochs) for name, epochs in assigned.active.items()}
        client.is_told(Tasks(active, assigned.standby, assigned.warmup))

    def _bump(self) -> None:
        """The next epoch, and a target for it."""
        group = self.known
        self.write(written.epoch_record(group._replace(group_epoch=group.group_epoch + 1)))
        group = self.known
        if not group.members:
            return
        members = {
            name: MemberSpec(member.process_id or "", group.target_of(name))
            for name, member in group.members.items()
        }
        result = ASSIGNOR(GroupSpec(members, self.parts, self.num_standby_replicas))
        changed = [name for name, target in result.items() if group.targets.get(name) != target]
        self.write(*(written.target_record("g", name, result[name]) for name in changed))
        self.write(written.target_epoch_record("g", group.group_epoch, 1_000))

    # ---- random life ----

    def live(self, rng: random.Random) -> None:
        """Something that may happen to an application."""
        names = sorted(self.clients)
        match rng.choice(["join", "die", "grow", "give up", "beat", "beat", "beat", "silent", "give up"]):
            case "join" if len(names) < 6:
                free = [name for name in "abcdefg" if name not in self.clients]
                self.join(rng.choice(free), rng.choice(["x", "y", "z"]))
            case "die" if names:
                self.die(rng.choice(names))
            case "grow" if self.group is not None:
                part = rng.choice(sorted(self.parts))
                self.grow(part, rng.randint(1, 6))
            case "give up" if names:
                self.clients[rng.choice(names)].give_up()
            case "beat" | "silent" as kind if names:
                self.beat(rng.choice(names), says=kind == "beat")

    def settle(self) -> None:
        """Everyone does what it is told, until no more is said."""
        for _ in range(8):
            for name in sorted(self.clients):
                self.clients[name].give_up()
                self.beat(name)

    # ---- what must be true at any time ----

    def check(self) -> None:
        """No task is active twice, and none twice in a process."""
        active: set[TaskId] = set()
        here: set[tuple[str, TaskId]] = set()
        for client in self.clients.values():
            assert not (client.runs[0] & active), "a task is active twice"
            active |= client.runs[0]
            for runs in client.runs:
                pairs = {(client.process_id, task) for task in runs}
                assert not (pairs & here), "a task is twice in a process"
                here |= pairs

    def check_settled(self) -> None:
        """Every task is active, and every member has its target."""
        wanted = {
            TaskId(name, partition)
            for name, part in self.parts.items()
            for partition in range(part.task_count)
        }
        found = {task for client in self.clients.values() for task in client.runs[0]}
        assert found == (wanted if self.clients else set()), "tasks are missing"
        for name, client in self.clients.items():
            assert client.owned == self.known.target_of(name), "a member has not its target"

    def check_law(self) -> None:
        """Folding the records gives the group; so do the newest of each key."""
        folded: StreamsGroup | None = None
        for record in self.log:
            folded = apply(folded, record)
        assert folded == self.group, "the records say otherwise"
        newest = {repr(record.key): record for record in self.log}
        compacted: StreamsGroup | None = None
        for record in self.log:
            if newest[repr(record.key)] is record:
                compacted = apply(compacted, record)
        assert compacted == self.group, "the newest records say otherwise"
