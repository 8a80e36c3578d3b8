"""What is written of a group."""

from __future__ import annotations

import random

from interop.streams_groups import Json
from interop.streams_groups.tasks import owned_of, random_owned, random_tasks, tasks_of
from interop.streams_groups.topologies import random_topology, topology_of
from pykafka_broker.coordinator.groups.core.streams.records import (
    current_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
    topology_record,
)
from pykafka_broker.coordinator.groups.core.streams.state import (
    Endpoint,
    MemberState,
    StreamsGroup,
    StreamsMember,
)
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.fields import schema_of


def random_records(rng: random.Random) -> Json:
    """A group with one member, of which every record is to be written."""
    letters = ["a", "b", "c", "\u00e9"]
    return {
        "about": "records",
        "group": rng.choice(["app", "stream\u00e4pp"]),
        "member": {
            "epoch": rng.randint(0, 9),
            "previous": rng.randint(-1, 9),
            "state": rng.choice([1, 2, 3]),
            "rack": rng.choice([None, "rack"]),
            "client": rng.choice(["", "client"]),
            "timeout": rng.choice([-1, 45_000]),
            "topology": rng.randint(-1, 3),
            "process": rng.choice(["", "process"]),
            "endpoint": rng.choice([None, ["host", 65_535]]),
            "tags": {key: rng.choice(letters) for key in rng.sample(letters, rng.randint(0, 3))},
            "assigned": random_owned(rng, 0.4),
            "pending": random_owned(rng, 0.2),
        },
        "target": random_tasks(rng, 0.4),
        "epoch": rng.randint(1, 9),
        "hash": rng.getrandbits(64) - 2**63,
        "validated": rng.randint(-1, 2),
        "standbys": str(rng.randint(0, 2)),
        "timestamp": rng.choice([0, 1_700_000_000_000]),
        "topology": random_topology(rng)["topology"],
    }


def written(question: Json) -> list[list[str]]:
    """The records, in hexadecimal digits."""
    group_id, said = question["group"], question["member"]
    member = StreamsMember(
        "member",
        said["epoch"],
        said["previous"],
        MemberState(said["state"]),
        rack_id=said["rack"],
        client_id=said["client"],
        client_host="/127.0.0.1",
        rebalance_timeout_ms=said["timeout"],
        topology_epoch=said["topology"],
        process_id=said["process"],
        user_endpoint=None if said["endpoint"] is None else Endpoint(*said["endpoint"]),
        client_tags=tuple(said["tags"].items()),
        assigned=owned_of(said["assigned"]),
        pending_revocation=owned_of(said["pending"]),
    )
    group = StreamsGroup.new(group_id)._replace(
        group_epoch=question["epoch"],
        metadata_hash=question["hash"],
        validated_topology_epoch=question["validated"],
        last_assignment_configs=(("num.standby.replicas", question["standbys"]),),
    )
    records = [
        epoch_record(group),
        topology_record(group_id, topology_of(question["topology"])),
        member_record(group_id, member),
        target_epoch_record(group_id, question["epoch"], question["timestamp"]),
        target_record(group_id, "member", tasks_of(question["target"])),
        current_record(group_id, member),
    ]
    return [[encoded(record.key, key=True), encoded(record.value, key=False)] for record in records]


def encoded(part: object, *, key: bool) -> str:
    number = schema_of(type(part)).api_key if key else 0
    assert number is not None
    return encode(part, 0, before=number.to_bytes(2)).hex()
