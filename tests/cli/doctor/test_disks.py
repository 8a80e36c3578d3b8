"""Log directories, judged from what brokers tell of them."""

from __future__ import annotations

from pykafka_broker.cli.doctor.disks import Directory, judge
from pykafka_broker.doctor.findings import Finding, Level, ok
from pykafka_broker.protocol.errors import ErrorCode

GB = 1_000_000_000


def judged(usable_bytes: int, total_bytes: int = 100 * GB) -> Finding:
    (finding,) = judge([Directory(1, "/data", 0, total_bytes, usable_bytes)])
    return finding


def test_room_enough_is_fine() -> None:
    assert judged(50 * GB) == ok("disks", "", "1 log directory online, 50.0 GB free on the fullest disk.")


def test_a_full_disk_refuses_producers() -> None:
    finding = judged(64 << 10)
    assert (finding.level, finding.subject) == (Level.PROBLEM, "/data")
    assert finding.message == (
        "The disk of /data on broker 1 is full (65.5 kB free): producers are refused with "
        "KAFKA_STORAGE_ERROR."
    )


def test_a_disk_that_is_nearly_full_is_a_warning() -> None:
    finding = judged(2 * GB)
    assert finding.level is Level.WARNING
    assert finding.message.endswith("is nearly full: 2.0 GB of 100.0 GB free.")


def test_little_room_on_a_small_disk_is_enough() -> None:
    assert judged(2 * GB, 4 * GB).level is Level.OK


def test_a_directory_out_of_service_is_a_problem() -> None:
    (finding,) = judge([Directory(1, "/data", int(ErrorCode.KAFKA_STORAGE_ERROR), -1, -1)])
    assert finding.level is Level.PROBLEM
    assert "out of service" in finding.message


def test_a_broker_that_does_not_tell_its_room_is_believed_online() -> None:
    assert judged(-1, -1) == ok("disks", "", "1 log directory online.")
