"""Who gets which task."""

from __future__ import annotations

import random

from interop.streams_groups import Json
from interop.streams_groups.tasks import shown, tasks_of
from pykafka_broker.coordinator.groups.core.streams.assignor import ASSIGNOR
from pykafka_broker.coordinator.groups.core.streams.assignor.spec import (
    GroupSpec,
    MemberSpec,
    SubtopologySpec,
)


def random_assignment(rng: random.Random) -> Json:
    """A group as it may be found: members, processes and subtopologies have come and gone."""
    parts = {
        rng.choice([str(number), f"part-{number}"]): [rng.choice([1, 2, 3, 5, 8, 20]), rng.random() < 0.6]
        for number in range(rng.randint(1, 5))
    }
    processes = [f"process-{rng.getrandbits(40):x}" for _ in range(rng.choice([1, 2, 3, 6, 14]))]
    free = {name: set(range(rng.randint(0, count))) for name, (count, _) in parts.items()}
    free["gone"] = {0, 1, 2}
    members: Json = {}
    for number in range(rng.choice([1, 2, 3, 5, 9, 15, 30])):
        member: Json = {"process": rng.choice(processes), "active": {}, "standby": {}, "warmup": {}}
        for name, partitions in free.items():
            taken = sorted(rng.sample(sorted(partitions), rng.randint(0, len(partitions))))
            if taken and rng.random() < 0.7:
                member["active"][name] = taken
                partitions.difference_update(taken)
        for role, likely in (("standby", 0.5), ("warmup", 0.05)):
            for name, (count, _) in parts.items():
                if rng.random() < likely:
                    member[role][name] = sorted(rng.sample(range(count), rng.randint(1, count)))
        members[rng.choice([f"member-{number}", f"{rng.getrandbits(64):x}-{number}"])] = member
    standbys = rng.choice([0, 1, 1, 2, 3])
    return {"about": "assignment", "members": members, "subtopologies": parts, "standbys": standbys}


def assigned(group: Json) -> Json:
    """How our assignor divides the tasks of `group`."""
    members = {
        name: MemberSpec(member["process"], tasks_of(member)) for name, member in group["members"].items()
    }
    parts = {name: SubtopologySpec(*part) for name, part in group["subtopologies"].items()}
    result = ASSIGNOR(GroupSpec(members, parts, group["standbys"]))
    return {name: shown(tasks) for name, tasks in sorted(result.items())}
