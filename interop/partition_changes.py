"""Let Apache Kafka's controller decide on random partitions: who leads, who is in sync, who is eligible.

    python -m interop.partition_changes [CASES]

Prints how many of CASES changes (20,000 by default) ours decides otherwise, and keeps the first 300 in
`interop/tests/golden/partition_changes.jsonl`, where `interop/tests/test_partition_changes.py` compares
without Java. In one thing ours differs on purpose: a broker that is no replica any more is neither eligible
nor the last known leader, whatever Apache Kafka's record says.

In the JSON of a change log directories are numbers. Needs a JDK, not only a JRE: the Java side is compiled on
the fly.
"""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from pykafka_broker.cluster.image import (
    METADATA_VERSION,
    BrokerRegistration,
    ClusterImage,
    LeaderRecoveryState,
    PartitionRegistration,
    TopicImage,
    changed,
)
from pykafka_broker.controller.core.elections import Election
from pykafka_broker.controller.core.partitions import Target, as_it_is, partition_change
from pykafka_broker.controller.core.state import ControllerRules, ControllerState
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.testing.apache.jars import java, libs

PROGRAM = Path(__file__).parent / "oracle" / "PartitionChanges.java"
GOLDEN = Path(__file__).parent / "tests" / "golden" / "partition_changes.jsonl"
KEPT = 300

TOPIC_ID = (100).to_bytes(16)
BROKERS = (1, 2, 3, 4, 5, 17, 33)
#: With eligible leader replicas in the log, and before them.
METADATA_VERSIONS = (30, 30, 23, 17, 11)
ELR_SINCE = 23
DIRECTORIES_SINCE = 17


def directory(broker: int) -> int:
    return 1_000 + broker


def random_change(rng: random.Random) -> dict[str, Any]:
    """A partition as it may be found, and something that happens to it."""
    metadata_version = rng.choice(METADATA_VERSIONS)
    elr_enabled = metadata_version >= ELR_SINCE and rng.random() < 0.7
    replicas = rng.sample(BROKERS, rng.randint(1, 5))
    moved = rng.sample(replicas, rng.randint(0, len(replicas))) if rng.random() < 0.4 else []
    cut = rng.randint(0, len(moved))
    isr = rng.sample(replicas, rng.randint(0 if elr_enabled else 1, len(replicas)))
    left = [replica for replica in replicas if replica not in isr]
    elr = rng.sample(left, rng.randint(0, len(left))) if elr_enabled and rng.random() < 0.5 else []
    leader = rng.choice(isr) if isr and rng.random() < 0.7 else -1
    partition = {
        "replicas": replicas,
        "directories": [directory(replica) for replica in replicas],
        "isr": isr,
        "removing": moved[:cut],
        "adding": moved[cut:],
        "elr": elr,
        "last_known_elr": [rng.choice(replicas)] if leader < 0 and elr_enabled and rng.random() < 0.5 else [],
        "leader": leader,
        "leader_recovery_state": int(rng.random() < 0.2),
        "leader_epoch": rng.randint(0, 9),
        "partition_epoch": rng.randint(0, 9),
    }
    acceptable = rng.sample(BROKERS, rng.randint(0, len(BROKERS)))
    target = random_target(rng, partition)
    if "leader_recovery_state" in target and leader not in acceptable:
        acceptable.append(leader)  # who asks for another in-sync set lives
    return {
        "metadata_version": metadata_version,
        "elr_enabled": elr_enabled,
        "min_isr": rng.randint(1, len(replicas)),
        "election": rng.choice(list(Election)).name,
        "acceptable": acceptable,
        "partition": partition,
        "target": target,
    }


def random_target(rng: random.Random, partition: dict[str, Any]) -> dict[str, Any]:
    replicas, isr = partition["replicas"], partition["isr"]
    kind = rng.choice(["nothing", "leaves", "crashes", "other isr", "moves", "called off"])
    if kind == "leaves":
        gone = rng.choice(replicas)
        return {"isr": [replica for replica in isr if replica != gone]}
    if kind == "crashes":
        gone = rng.choice(replicas)
        return {"isr": [replica for replica in isr if replica != gone], "lost": gone}
    if kind == "other isr" and partition["leader"] >= 0:
        others = [replica for replica in replicas if replica != partition["leader"] and rng.random() < 0.6]
        return {
            "isr": rng.sample([partition["leader"], *others], len(others) + 1),
            "leader_recovery_state": rng.choice([0, partition["leader_recovery_state"]]),
        }
    if kind == "moves":
        wanted = rng.sample(BROKERS, rng.randint(1, 5))
        removing = sorted(set(replicas) - set(wanted))
        return {
            "replicas": [*wanted, *removing],
            "removing": removing,
            "adding": sorted(set(wanted) - set(replicas)) or partition["adding"],
        }
    kept = [replica for replica in replicas if replica not in partition["adding"]]
    if kind == "called off" and kept:
        in_sync = [replica for replica in isr if replica in kept]
        return {"replicas": kept, "isr": in_sync or kept[:1], "removing": [], "adding": []}
    return {}


def by_ours(change: dict[str, Any]) -> PartitionRegistration:
    """The partition after what happens to it."""
    partition = registration(change)
    image = ClusterImage(
        brokers={
            broker: BrokerRegistration(
                broker, 0, bytes(16), {}, directories=(directory(broker).to_bytes(16),)
            )
            for broker in BROKERS
        },
        topics={"t": TopicImage("t", TOPIC_ID, {0: partition})},
        configs={(2, "t"): {"min.insync.replicas": str(change["min_isr"])}},
        features={
            METADATA_VERSION: change["metadata_version"],
            "eligible.leader.replicas.version": int(change["elr_enabled"]),
        },
    )
    state = ControllerState(image, ControllerRules(9, "cluster"))
    acceptable = change["acceptable"]
    record = partition_change(
        state,
        image.topics["t"],
        partition,
        target_of(partition, change["target"]),
        Election[change["election"]],
        lambda replica: replica in acceptable,
    )
    return after(partition, record)


def registration(change: dict[str, Any]) -> PartitionRegistration:
    fields = tuples(change["partition"])
    fields["directories"] = tuple(number.to_bytes(16) for number in fields["directories"])
    fields["leader_recovery_state"] = LeaderRecoveryState(fields["leader_recovery_state"])
    return PartitionRegistration(0, **fields)


def tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def target_of(partition: PartitionRegistration, target: dict[str, Any]) -> Target:
    return as_it_is(partition)._replace(**tuples(target))


def after(partition: PartitionRegistration, record: m.PartitionChangeRecord | None) -> PartitionRegistration:
    """The partition after a record, without its epoch, and without brokers that are no replicas any more."""
    if record is not None:
        partition = changed(partition, record)
    kept = set(partition.replicas)
    return partition._replace(
        partition_epoch=0,
        elr=tuple(replica for replica in partition.elr if replica in kept),
        last_known_elr=tuple(replica for replica in partition.last_known_elr if replica in kept),
    )


def by_apache(changes: list[dict[str, Any]]) -> list[Any]:
    """The records of Apache Kafka, as JSON; None where nothing changes."""
    run = subprocess.run(
        [java(), "-cp", str(libs() / "*"), str(PROGRAM)],
        input="\n".join(json.dumps(change) for change in changes),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith(("{", "null"))]


def apaches(change: dict[str, Any], described: Any) -> PartitionRegistration:
    """The partition after the record that `described` is the JSON of."""
    partition = registration(change)
    if described is None:
        return after(partition, None)
    fields = {
        "isr": described.get("isr"),
        "leader": described.get("leader", -2),
        "replicas": described.get("replicas"),
        "removing_replicas": described.get("removingReplicas"),
        "adding_replicas": described.get("addingReplicas"),
        "leader_recovery_state": described.get("leaderRecoveryState", -1),
        "eligible_leader_replicas": described.get("eligibleLeaderReplicas"),
        "last_known_elr": described.get("lastKnownElr"),
    }
    if change["metadata_version"] >= DIRECTORIES_SINCE and "directories" in described:
        fields["directories"] = [uuid_of(text) for text in described["directories"]]
    return after(partition, m.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields))


def uuid_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def main(count: int) -> None:
    rng = random.Random(966)
    changes = [random_change(rng) for _ in range(count)]
    described = by_apache(changes)
    different = [
        (change, record)
        for change, record in zip(changes, described, strict=True)
        if by_ours(change) != apaches(change, record)
    ]
    print(f"{count} changes, {len(different)} decided otherwise than Apache Kafka decides them")
    for change, record in different[:3]:
        print(json.dumps(change), json.dumps(record), by_ours(change), sep="\n")
    kept = zip(changes[:KEPT], described[:KEPT], strict=True)
    GOLDEN.write_text("".join(json.dumps({**change, "record": record}) + "\n" for change, record in kept))
    if different:
        sys.exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 20_000)
