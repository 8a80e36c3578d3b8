"""Tasks in JSON: by role, subtopology and partition; active tasks that a member has with their epochs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from interop.streams_groups import Json
from pykafka_broker.coordinator.groups.core.streams.tasks import OwnedTasks, TaskId, Tasks


def random_owned(rng: random.Random, likely: float) -> Json:
    def some() -> list[int]:
        return [partition for partition in range(3) if rng.random() < likely]

    active = {name: {str(number): rng.randint(1, 4) for number in some()} for name in "ab"}
    roles: Json = {"active": active, "standby": {}, "warmup": {}}
    for role in ("standby", "warmup"):
        roles[role] = {name: some() for name in "ab"}
    return {role: {name: tasks for name, tasks in roles[role].items() if tasks} for role in roles}


def random_tasks(rng: random.Random, likely: float) -> Json:
    owned = random_owned(rng, likely)
    return {**owned, "active": {name: sorted(map(int, epochs)) for name, epochs in owned["active"].items()}}


def tasks_of(roles: Json) -> Tasks:
    return Tasks(
        *(
            {name: frozenset(partitions) for name, partitions in roles[role].items()}
            for role in ("active", "standby", "warmup")
        )
    )


def shown(tasks: Tasks) -> Json:
    return {
        "active": listed(tasks.active),
        "standby": listed(tasks.standby),
        "warmup": listed(tasks.warmup),
    }


def listed(tasks: Mapping[str, Any]) -> Json:
    return {name: sorted(partitions) for name, partitions in sorted(tasks.items())}


def task_id(text: str) -> TaskId:
    name, _, partition = text.rpartition("_")
    return TaskId(name, int(partition))


def owned_of(roles: Json) -> OwnedTasks:
    active = {
        name: {int(partition): epoch for partition, epoch in epochs.items()}
        for name, epochs in roles["active"].items()
    }
    return OwnedTasks(active, *tasks_of({**roles, "active": {}})[1:])


def shown_owned(tasks: OwnedTasks) -> Json:
    active = {
        name: {str(partition): epoch for partition, epoch in sorted(epochs.items())}
        for name, epochs in sorted(tasks.active.items())
    }
    return {"active": active, "standby": listed(tasks.standby), "warmup": listed(tasks.warmup)}
