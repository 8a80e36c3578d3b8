"""What a member has next."""

from __future__ import annotations

import random

from interop.streams_groups import Json
from interop.streams_groups.tasks import owned_of, random_owned, random_tasks, shown_owned, task_id, tasks_of
from pykafka_broker.coordinator.groups.core.streams.reconciliation import Target, reconciled
from pykafka_broker.coordinator.groups.core.streams.state import (
    MemberState,
    StreamsMember,
    TaskHolders,
)
from pykafka_broker.machine.versioned_map import VersionedMap
from pykafka_broker.protocol.errors import KafkaError


def random_step(rng: random.Random) -> Json:
    """A member on its way to a target, among processes that have its tasks or not."""
    member = {
        "epoch": rng.randint(1, 4),
        "previous": rng.randint(0, 3),
        "state": rng.choice([1, 1, 2, 2, 3, 127]),
        "process": "own",
        "assigned": random_owned(rng, 0.4),
        "pending": random_owned(rng, 0.15),
    }
    nothing: Json = {"active": {}, "standby": {}, "warmup": {}}
    owned = rng.choice([None, nothing, random_tasks(rng, 0.1), random_tasks(rng, 0.3)])
    target = random_tasks(rng, 0.4)
    tasks = [f"{name}_{partition}" for name in "ab" for partition in range(3)]
    some = [["own"], ["other"], ["own", "other"]]
    return {
        "about": "step",
        "member": member,
        "epoch": rng.randint(2, 5),
        "target": target,
        "owned": owned,
        "holders": {
            "active": {task: rng.choice(["own", "other"]) for task in tasks if rng.random() < 0.25},
            "standby": {task: rng.choice(some) for task in tasks if rng.random() < 0.15},
            "warmup": {task: rng.choice(some) for task in tasks if rng.random() < 0.1},
        },
    }


def step(question: Json) -> Json:
    """What the member has next."""
    said = question["member"]
    member = StreamsMember(
        "member",
        said["epoch"],
        said["previous"],
        MemberState(said["state"]),
        process_id=said["process"],
        assigned=owned_of(said["assigned"]),
        pending_revocation=owned_of(said["pending"]),
    )
    holders = question["holders"]
    target = Target(
        question["epoch"],
        tasks_of(question["target"]),
        TaskHolders(
            VersionedMap({task_id(task): process for task, process in holders["active"].items()}),
            VersionedMap({task_id(task): frozenset(some) for task, some in holders["standby"].items()}),
            VersionedMap({task_id(task): frozenset(some) for task, some in holders["warmup"].items()}),
        ),
    )
    owned = None if question["owned"] is None else tasks_of(question["owned"])
    try:
        after = reconciled(member, target, owned)
    except KafkaError as error:
        return {"error": [error.code, error.message]}
    return {
        "epoch": after.member_epoch,
        "previous": after.previous_member_epoch,
        "state": after.state.value,
        "assigned": shown_owned(after.assigned),
        "pending": shown_owned(after.pending_revocation),
    }
