"""Random heartbeats of the members of one group, well-made or not."""

from __future__ import annotations

import random
from typing import Any

from pykafka_broker.coordinator.groups.core.streams.events import StreamsGroupHeartbeat
from pykafka_broker.coordinator.groups.core.streams.state import Endpoint, StreamsGroup, StreamsMember
from pykafka_broker.coordinator.groups.core.streams.topology.declared import (
    CopartitionGroup,
    InternalTopic,
    Subtopology,
    Topology,
)

#: The topics that exist, and their numbers of partitions.
TOPICS = {"t1": 1, "t4": 4, "t4b": 4, "t6": 6, "app-rep": 4, "app-store-changelog": 4, "big-changelog": 6}

_BIG_STORE = InternalTopic("big-changelog", configs=(("cleanup.policy", "compact"),))
READY = (
    Topology(0, (Subtopology("0", ("t4",)),)),
    Topology(
        1,
        (
            Subtopology("0", ("t4",), repartition_sink_topics=("app-rep",)),
            Subtopology(
                "1",
                ("t4b",),
                state_changelog_topics=(InternalTopic("app-store-changelog"),),
                repartition_source_topics=(InternalTopic("app-rep"),),
                copartition_groups=(CopartitionGroup((0,), (), (0,)),),
            ),
        ),
    ),
    Topology(
        0,
        (
            Subtopology("0", ("t6", "t1"), state_changelog_topics=(_BIG_STORE,)),
            Subtopology("1", ("t4",)),
        ),
    ),
)
#: Missing topics, topics of the wrong size.
NOT_READY = (
    Topology(0, (Subtopology("0", ("missing", "t4")),)),
    Topology(0, (Subtopology("0", ("t4", "t6"), copartition_groups=(CopartitionGroup((0, 1)),)),)),
    Topology(0, (Subtopology("0", ("t4",), state_changelog_topics=(_BIG_STORE,)),)),
)
REFUSED = (
    Topology(0, (Subtopology("0", ("t4",), state_changelog_topics=(InternalTopic("x", 3),)),)),
    Topology(0, (Subtopology("0", ("t4",), ("re.*",)),)),
    Topology(-1, (Subtopology("0", ("t4",)),)),
)
#: What is wrong with some requests to join.
FLAWS: list[dict[str, Any]] = [
    {"active_tasks": None},
    {"standby_tasks": (("0", (0,)),)},
    {"warmup_tasks": (("0", (0,)),)},
    {"topology": None},
    {"rebalance_timeout_ms": -1},
    {"instance_id": "i"},
    {"has_task_offsets": True},
    {"has_task_end_offsets": True},
    {"rack_id": " "},
    {"member_id": ""},
]
#: What members seldom say.
ODDITIES: list[dict[str, Any]] = [
    {},
    {"active_tasks": (("9", (0,)),), "standby_tasks": (), "warmup_tasks": ()},
    {"active_tasks": (("0", (0, 99)),), "standby_tasks": (), "warmup_tasks": ()},
    {"active_tasks": ()},
    {"topology": READY[0]},
    {"process_id": "w"},
    {"shutdown_application": True},
    {"member_id": "nobody"},
    {"rebalance_timeout_ms": 50_000},
]


def heartbeat(
    rng: random.Random, group: StreamsGroup | None, main: Topology, said: dict[str, Any]
) -> StreamsGroupHeartbeat:
    """The next heartbeat of anybody; `said` is what is in all of them."""
    names = sorted(group.members) if group is not None else []
    kind = rng.choice(["join", "join", "own", "own", "own", "beat", "leave", "odd", "again"])
    who = rng.choice(names) if names and kind != "join" else rng.choice("abcdefg")
    member = group.members.get(who) if group is not None else None
    said = {**said, "member_id": who}
    said["endpoint_information_epoch"] = rng.choice(
        [0, 0, group.endpoint_information_epoch if group is not None else 0]
    )
    if member is None or kind == "join":
        return _join(rng, main, said)
    match kind:
        case "own":
            return StreamsGroupHeartbeat(member_epoch=member.member_epoch, **_owning(member), **said)
        case "beat":
            return StreamsGroupHeartbeat(member_epoch=member.member_epoch, **said)
        case "leave":
            return StreamsGroupHeartbeat(member_epoch=-1, shutdown_application=rng.random() < 0.3, **said)
        case "again":
            return StreamsGroupHeartbeat(member_epoch=member.previous_member_epoch, **_owning(member), **said)
    epochs = [member.member_epoch, member.member_epoch + 1, member.member_epoch - 1, -2, -3, 7]
    return StreamsGroupHeartbeat(member_epoch=rng.choice(epochs), **said)._replace(**rng.choice(ODDITIES))


def _join(rng: random.Random, main: Topology, said: dict[str, Any]) -> StreamsGroupHeartbeat:
    # With an endpoint, Apache Kafka 4.3.1 fails while the topics are not as they must be.
    has_endpoint = main in READY and rng.random() < 0.4
    joining = StreamsGroupHeartbeat(
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        topology=main if rng.random() < 0.85 else rng.choice([*READY, *NOT_READY, *REFUSED]),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id=rng.choice("xyz"),
        rack_id=rng.choice([None, "r1"]),
        client_tags=(("zone", rng.choice("ab")),) if rng.random() < 0.5 else None,
        **said,
    )
    if has_endpoint and joining.topology is main:
        joining = joining._replace(user_endpoint=Endpoint(f"host-{joining.member_id}", 80))
    return joining._replace(**rng.choice(FLAWS)) if rng.random() < 0.15 else joining


def _owning(member: StreamsMember) -> dict[str, Any]:
    assigned = member.assigned
    return {
        "active_tasks": tuple(
            (name, tuple(sorted(tasks))) for name, tasks in sorted(assigned.active.items())
        ),
        "standby_tasks": tuple(
            (name, tuple(sorted(tasks))) for name, tasks in sorted(assigned.standby.items())
        ),
        "warmup_tasks": (),
    }
