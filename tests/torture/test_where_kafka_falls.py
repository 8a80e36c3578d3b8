"""Where Apache Kafka 4.3.1 itself falls on one node, and the test here that shows we do not.

Each row was measured on Apache Kafka with a checker outside of it. The tests are where their subject is; this
list is checked so that none is lost. The row on killed leaders, followers and controllers needs three nodes.
"""

from __future__ import annotations

import ast
import os
import shutil
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pykafka_broker.log.config import LogConfig
from pykafka_broker.log.disk.checkpoints import encode_offsets
from pykafka_broker.log.disk.environment import Environment
from pykafka_broker.log.disk.files import OsFileSystem
from pykafka_broker.log.disk.names import (
    HIGH_WATERMARK_CHECKPOINT,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
)
from pykafka_broker.log.partition.state import LogIdentity
from pykafka_broker.log.recovery.new_partition import create_log
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.testing.processes import PykafkaBroker
from tests.support.pages import REPOSITORY
from tests.torture.clients import QUIET, TOPIC, create_ledger

#: What was done -> the tests that show what we do.
SHOWN_BY = {
    "SIGKILL with several unanswered batches of a producer: retries are recognised, no copies": [
        "log/partition/test_producers.py::"
        "test_any_of_the_last_five_batches_may_be_retried_and_is_answered_with_its_own_offsets",
        "torture/test_kills.py::"
        "test_kills_at_random_moments_and_at_crash_points_cost_nothing_that_was_acknowledged",
    ],
    "restart after SIGKILL: ready at once, not when its session has run out": [
        "torture/test_where_kafka_falls.py::test_a_killed_broker_answers_again_before_its_session_runs_out",
    ],
    "a flipped bit in the base offset or leader epoch of the last batch: not served": [
        "log/recovery/test_load_partition.py::"
        "test_a_flip_outside_the_checksum_of_the_last_batch_is_noticed_even_after_a_clean_stop",
        "log/recovery/test_load_partition.py::"
        "test_every_flipped_bit_of_a_segment_is_noticed_and_costs_one_batch_at_most",
    ],
    "damage in the middle of a segment, then an unclean stop: fenced, what follows is served": [
        "log/recovery/test_load_partition.py::test_damage_inside_a_segment_is_fenced_and_everything_behind_it_is_served",
        "torture/test_damage.py::test_no_damage_of_any_file_makes_a_broker_serve_a_wrong_byte",
    ],
    "garbage in a leader-epoch, recovery-point or high-watermark checkpoint: rebuilt or set aside": [
        "log/recovery/test_load_partition.py::test_leader_epochs_garbled_or_past_the_end_are_put_right",
        "torture/test_damage.py::test_no_damage_of_any_file_makes_a_broker_serve_a_wrong_byte",
    ],
    "partition.metadata lost: recognised from the metadata, written again": [
        "broker/test_formatting.py::test_a_lost_partition_metadata_does_not_make_a_stray",
    ],
    "disk full: producers are told, consumers served, service returns": [
        "torture/test_resources.py::test_a_full_disk_refuses_producers_serves_consumers_and_heals_by_itself",
    ],
    "a second process on the same folder: refused before it touches anything": [
        "broker/test_process.py::test_a_second_process_on_a_folder_is_refused_and_the_first_serves_on",
    ],
    "frames of 20 million tagged fields or empty names: refused, memory bounded": [
        "protocol/test_compile.py::test_more_than_ten_thousand_tags_are_refused",
        "protocol/test_hostile.py::test_too_many_tags_in_a_header_are_refused_before_they_are_looked_at",
        "protocol/test_hostile.py::test_a_claim_of_billions_costs_nothing",
    ],
    "300 connections announce 100 MB each and fall silent: memory follows what arrives": [
        "network/test_connection.py::"
        "test_a_thousand_peers_that_announce_100_mb_and_fall_silent_cost_next_to_nothing",
    ],
    "2,000 fetches that wait 500 s, clients gone: noticed and freed": [
        "network/test_purgatory.py::test_two_thousand_parked_clients_disconnect_and_everything_is_freed",
        "network/test_purgatory.py::"
        "test_two_thousand_connections_parked_in_a_handler_disconnect_and_nothing_is_left",
    ],
    "out of descriptors: those connected are served, one line per interval": [
        "torture/test_resources.py::"
        "test_a_broker_out_of_descriptors_serves_who_is_there_writes_on_and_takes_new_clients_later",
    ],
    "84,000 malformed frames: one line per kind and interval": [
        "network/test_connection.py::test_a_misbehaving_peer_fills_no_log",
        "system/test_repeated_lines.py::test_the_first_line_is_written_at_once_and_the_rest_counted",
    ],
    "offset deltas out of order, a producer id without epoch, half a second batch: INVALID_RECORD": [
        "log/partition/test_validation.py::test_offset_deltas_must_count_up_from_zero",
        "log/partition/test_validation.py::test_a_batch_that_is_not_as_it_should_be_is_refused_untouched",
    ],
    "5,000 partitions: a start takes seconds and less than 200 MB": [
        "torture/test_where_kafka_falls.py::"
        "test_thousands_of_partitions_of_four_segments_start_in_seconds_and_in_less_than_200_mb",
    ],
}


#: `make torture` has them all.
PARTITIONS = 5_000 if "TORTURE_ROUNDS" in os.environ else 1_000
SEGMENTS_EACH = 4
#: Of processor time, which does not depend on what else the machine does: 2 s for 5,000.
START_BOUND_S = PARTITIONS / 500
#: The last segment of each is read and checked: 2.4 s for 5,000.
RECOVERY_BOUND_S = 3 * PARTITIONS / 1000
#: 60 of them are there before the first partition.
MEMORY_BOUND_MB = 60 + 140 * PARTITIONS / 5_000
#: Longer than any of these tests.
SESSION = {"broker.session.timeout.ms": "3600000"}


@pytest.mark.parametrize("row", SHOWN_BY)
def test_every_row_is_shown_by_tests_that_exist(row: str) -> None:
    assert SHOWN_BY[row]
    for shown_by in SHOWN_BY[row]:
        path, _, name = shown_by.partition("::")
        module = ast.parse((REPOSITORY / "tests" / path).read_text())
        functions = {
            node.name for node in module.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        }
        assert name in functions, shown_by


@pytest.mark.slow
def test_a_killed_broker_answers_again_before_its_session_runs_out(tmp_path: Path) -> None:
    """Its session does not have to run out: the controller is the same process, and knows who comes back."""
    with PykafkaBroker(SESSION, tmp_path) as broker:
        create_ledger(broker.address, 10)
        producer = Producer({"bootstrap.servers": broker.address, **QUIET})
        for number in range(3):
            broker.kill()
            broker.start()
            producer.produce(TOPIC, b"%d" % number)
            assert producer.flush(60) == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_thousands_of_partitions_of_four_segments_start_in_seconds_and_in_less_than_200_mb(
    tmp_path: Path,
) -> None:
    with PykafkaBroker(folder=tmp_path) as broker:
        create_ledger(broker.address, PARTITIONS, retention_ms="-1")
        broker.stop()
        fill_logs(broker.data_dir, tmp_path / "template")
        broker.start()
        after_a_stop_s = processor_s(broker.pid)
        assert f"Skipping recovery of {PARTITIONS} logs" in broker.log_tail()
        memory_mb = resident_mb(broker.pid)
        broker.stop()
        broker.start()
        partitions = [TopicPartition(TOPIC, number) for number in (0, PARTITIONS - 1)]
        consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "g", **QUIET})
        assert [consumer.get_watermark_offsets(p) for p in partitions] == [(0, SEGMENTS_EACH)] * 2
        consumer.close()
        broker.kill()
        broker.start()
        after_a_kill_s = processor_s(broker.pid)
        memory_mb = max(memory_mb, resident_mb(broker.pid))
    assert after_a_stop_s < START_BOUND_S
    assert after_a_kill_s < RECOVERY_BOUND_S
    assert memory_mb < MEMORY_BOUND_MB
    print(
        f"{after_a_stop_s:.1f} s after a clean stop, {after_a_kill_s:.1f} s after a kill, {memory_mb:.0f} MB"
    )


def fill_logs(data_dir: Path, template: Path) -> None:
    """Give every partition of the ledger `SEGMENTS_EACH` segments, as a clean stop leaves them."""
    config = LogConfig()
    log = create_log(Environment(OsFileSystem()), LogIdentity(str(template), TOPIC, 0, bytes(16)), config)
    now_ms = int(time.time() * 1000)
    for number in range(SEGMENTS_EACH):
        log.roller.roll()
        batch = build_batch([(now_ms, None, b"%d" % number * 6_000, ())])
        log.writer.append(bytearray(batch), leader_epoch=0, now_ms=now_ms)
    assert log.close()
    files = [path for path in template.iterdir() if path.name != PARTITION_METADATA]
    for partition in range(PARTITIONS):
        for path in files:
            shutil.copyfile(path, data_dir / f"{TOPIC}-{partition}" / path.name)
    ends = {(TOPIC, partition): SEGMENTS_EACH for partition in range(PARTITIONS)}
    for name in (RECOVERY_POINT_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT):
        (data_dir / name).write_bytes(encode_offsets(ends.items()))


def processor_s(pid: int) -> float:
    """What a process has taken of the processor so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    [line] = [line for line in status if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024
