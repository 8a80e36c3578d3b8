"""Log directories: offline ones, and disks that are full or will be soon."""

from __future__ import annotations

from collections.abc import Sequence

from pykafka_broker.cli.health import LEAST_USABLE_BYTES
from pykafka_broker.cli.wording import human_size
from pykafka_broker.client.blocking import Client
from pykafka_broker.doctor.findings import Finding, ok, problem, warning
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.system.wording import counted

#: A disk is nearly full if its free space is below this share of the disk, and also below this size.
NEARLY_FULL_SHARE = 0.1
NEARLY_FULL_BYTES = 5 << 30


class Directory(NamedTuple):
    """A log directory of a broker, sizes in bytes, -1 where the broker does not tell."""

    node_id: int
    path: str
    error_code: int
    total_bytes: int
    usable_bytes: int


def look(client: Client) -> list[Directory]:
    """The directories of every broker that tells."""
    from pykafka_broker.protocol.messages.describe_log_dirs import DescribeLogDirsRequest

    found = []
    for node_id in sorted(client.brokers.addresses):
        try:
            # No topics: the sizes of partitions are not wanted here.
            results = client.send(DescribeLogDirsRequest(topics=[]), node_id).results
        except KafkaError:
            continue
        found += [
            Directory(node_id, result.log_dir, result.error_code, result.total_bytes, result.usable_bytes)
            for result in results
        ]
    return found


def judge(directories: Sequence[Directory]) -> list[Finding]:
    """Whether there is room to write."""
    findings = [finding for directory in directories if (finding := _about(directory))]
    if findings or not directories:
        return findings
    known = [d.usable_bytes for d in directories if d.usable_bytes >= 0]
    room = f", {human_size(min(known))} free on the fullest disk" if known else ""
    number = counted(len(directories), "log directory", "log directories")
    return [ok("disks", "", f"{number} online{room}.")]


def _about(directory: Directory) -> Finding | None:
    node_id, path, error_code, total, usable = directory
    if error_code:
        return problem(
            "disks",
            path,
            f"Broker {node_id} has taken {path} out of service after an error of the disk "
            f"({ErrorCode(error_code).name}): the partitions in it are offline.",
            "The log of the broker has the error. Mend the disk, then restart the broker.",
        )
    if usable < 0 or total <= 0:
        return None
    free = f"{human_size(usable)} of {human_size(total)} free"
    if usable < LEAST_USABLE_BYTES:
        return problem(
            "disks",
            path,
            f"The disk of {path} on broker {node_id} is full ({human_size(usable)} free): producers are "
            "refused with KAFKA_STORAGE_ERROR.",
            _make_room(),
        )
    if usable < NEARLY_FULL_BYTES and usable < total * NEARLY_FULL_SHARE:
        return warning(
            "disks", path, f"The disk of {path} on broker {node_id} is nearly full: {free}.", _make_room()
        )
    return None


def _make_room() -> str:
    return (
        "Keep less: the largest topics first,\n"
        "  pykafka-broker configs alter --topic TOPIC --set retention.bytes=1073741824\n"
        "or enlarge the disk. The broker takes up writing again by itself."
    )
