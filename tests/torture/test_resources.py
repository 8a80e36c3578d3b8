"""A full disk, no more descriptors, a disk that stands still: who is told, who goes on, and how service
returns by itself.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pykafka_broker.log.manager.disk_threads import THREADS_PER_DIRECTORY
from tests.torture import mutants
from tests.torture.clients import PATIENCE_S, QUIET, new_consumer
from tests.torture.files import Plan
from tests.torture.harness import TorturedBroker
from tests.torture.mutants import FSYNC

pytestmark = pytest.mark.slow

KIB = 1024
VOLUME_KIB = 3_000
#: `ulimit -n` of the broker that runs out of descriptors.
MAX_FILES = 80
#: So many operations that wait for a disk take all threads for syncs, and all for reads.
CROWD = 2 * THREADS_PER_DIRECTORY


def create(address: str, name: str, partitions: int = 1, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, **QUIET})
    config = {key.replace("_", "."): value for key, value in configs.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(PATIENCE_S)


def send(
    producer: Producer, topic: str, value: bytes, partition: int = 0, timeout_s: float = PATIENCE_S
) -> str | None:
    """Produce one record; None when it was acknowledged, else the error."""
    answers: list[str | None] = []
    producer.produce(
        topic,
        value,
        partition=partition,
        on_delivery=lambda error, _: answers.append(None if error is None else error.name()),
    )
    producer.flush(timeout_s)
    return answers[0] if answers else "no answer"


def values(address: str, topic: str, partition: int = 0) -> list[bytes]:
    consumer = new_consumer(address)
    end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=PATIENCE_S)[1]
    consumer.assign([TopicPartition(topic, partition, 0)])
    found: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < end and time.monotonic() < deadline:
        read = [m.value() for m in consumer.consume(1000, timeout=0.5) if m.error() is None]
        found += [value for value in read if value is not None]
    consumer.close()
    return found


# --- full disk ------------------------------------------------------------------------------------------


def may_mount() -> bool:
    """Whether this user may mount a volume, which needs root."""
    with tempfile.TemporaryDirectory() as folder:
        mounting = subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=False, capture_output=True)
        if mounting.returncode == 0:
            subprocess.run(["umount", folder], check=True)
        return mounting.returncode == 0


#: A full disk is shown by the file layer everywhere, and on a real volume where one can be mounted.
VOLUMES = ["file layer", "tmpfs"] if may_mount() else ["file layer"]


FullDisk = tuple[TorturedBroker, Plan, Callable[[], None]]


@pytest.fixture(params=VOLUMES)
def full_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[FullDisk]:
    """A broker on a small volume, and how to make room there."""
    is_mounted = request.param == "tmpfs"
    # Not below pytest's own folder: a volume that a killed run left mounted there could not be removed.
    folder = Path(tempfile.mkdtemp(prefix="pykafka-broker-volume-"))
    if is_mounted:
        size = f"size={VOLUME_KIB}k"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", str(folder)], check=True)
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(1_500 * KIB if is_mounted else 1))
    plan = Plan() if is_mounted else Plan(space_bytes=1_500 * KIB, space_file=str(ballast))
    broker = TorturedBroker(tmp_path)
    broker.data_dir = folder / "data"
    try:
        yield broker, plan, ballast.unlink
    finally:
        broker.kill()
        if is_mounted:
            subprocess.run(["umount", str(folder)], check=True)
        shutil.rmtree(folder)


def test_a_full_disk_refuses_producers_serves_consumers_and_heals_by_itself(full_disk: FullDisk) -> None:
    fill_the_disk(full_disk)


def fill_the_disk(full_disk: FullDisk, bug: str = "") -> None:
    broker, plan, make_room = full_disk
    plan = replace(plan, mutant=bug)
    broker.run(plan)
    create(broker.address, "orders")
    settings = {"bootstrap.servers": broker.address, "acks": "all", "retries": 0, **QUIET}
    producer = Producer(settings)
    acknowledged: list[bytes] = []
    errors: list[str] = []
    while len(errors) < 5 and len(acknowledged) < VOLUME_KIB // 20:
        value = b"%06d" % len(acknowledged) + bytes(20 * KIB)
        error = send(producer, "orders", value)
        if error is None:
            acknowledged.append(value)
        else:
            errors.append(error)
    assert len(acknowledged) > 10
    assert len(errors) == 5
    assert set(errors) == {"KAFKA_STORAGE_ERROR"}
    assert not broker.has_died()
    assert values(broker.address, "orders") == acknowledged

    broker.kill()
    broker.run(plan)
    assert values(broker.address, "orders") == acknowledged

    make_room()

    assert send(producer, "orders", b"again") is None
    assert values(broker.address, "orders") == [*acknowledged, b"again"]
    broker.stop()


@pytest.mark.skipif(not may_mount() and "CI" not in os.environ, reason="only root may mount a volume")
@pytest.mark.parametrize("full_disk", ["tmpfs"], indirect=True)
def test_a_broker_killed_where_no_byte_is_left_starts_again_and_again(full_disk: FullDisk) -> None:
    broker, plan, make_room = full_disk
    make_room()  # the reserve is made where there is plenty of room
    broker.data_dir.parent.joinpath("ballast").write_bytes(b"")
    subprocess.run(["mount", "-o", "remount,size=12m", str(broker.data_dir.parent)], check=True)
    broker.run(plan)
    create(broker.address, "orders")
    producer = Producer({"bootstrap.servers": broker.address, "acks": "all", "retries": 0, **QUIET})
    acknowledged = [b"%d" % number for number in range(10)]
    for value in acknowledged:
        assert send(producer, "orders", value) is None
    for _ in range(3):
        fill(broker.data_dir.parent / "ballast")
        broker.kill()
        broker.run(plan)
        assert values(broker.address, "orders") == acknowledged
        refused = Producer({"bootstrap.servers": broker.address, "acks": "all", "retries": 0, **QUIET})
        assert send(refused, "orders", bytes(100 * KIB)) == "KAFKA_STORAGE_ERROR"

    make_room()

    assert send(producer, "orders", b"again") is None
    assert values(broker.address, "orders") == [*acknowledged, b"again"]
    broker.stop()


def fill(path: Path) -> None:
    """Write until the volume has no byte left."""
    with path.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4 * KIB)):
            pass
    assert shutil.disk_usage(path).free == 0


# --- descriptors ----------------------------------------------------------------------------------------


def test_a_broker_out_of_descriptors_serves_who_is_there_writes_on_and_takes_new_clients_later(
    tmp_path: Path,
) -> None:
    run_out_of_descriptors(tmp_path)


def run_out_of_descriptors(folder: Path, bug: str = "", patience_s: float = PATIENCE_S) -> None:
    broker = TorturedBroker(folder)
    broker.run(Plan(max_files=MAX_FILES, mutant=bug))
    crowd: list[socket.socket] = []
    try:
        create(broker.address, "orders", partitions=MAX_FILES)
        producer = Producer({"bootstrap.servers": broker.address, **QUIET})
        assert send(producer, "orders", b"first") is None
        for _ in range(2 * MAX_FILES):
            client = socket.socket()
            client.settimeout(0.2)
            with contextlib.suppress(OSError):
                client.connect(("127.0.0.1", broker.port))
            crowd.append(client)

        # More logs than descriptors, while connections have taken most of these.
        for partition in range(MAX_FILES):
            assert send(producer, "orders", b"%d" % partition, partition, patience_s) is None
        log_bytes = broker.log_file.stat().st_size
        time.sleep(1)
        assert broker.log_file.stat().st_size - log_bytes < 2_000, "it tells of it all the time"

        for client in crowd:
            client.close()
        assert values(broker.address, "orders", MAX_FILES - 1) == [b"%d" % (MAX_FILES - 1)]
        broker.stop()
    finally:
        for client in crowd:
            client.close()
        broker.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="lowers the limit of another process")
def test_a_limit_lowered_below_what_is_open_costs_no_write_and_new_clients_are_told_at_once(
    tmp_path: Path,
) -> None:
    broker = TorturedBroker(tmp_path)
    broker.run(Plan())
    try:
        assert broker.process is not None
        pid = broker.process.pid
        create(broker.address, "orders", segment_bytes=str(1024 * KIB))
        producer = Producer({"bootstrap.servers": broker.address, "retries": 0, **QUIET})
        written = [b"%d" % number * 100 * KIB for number in range(9)]
        assert send(producer, "orders", written[0]) is None
        limit = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        crowd = leave_no_descriptor(pid, broker.port)

        for _ in range(3):  # each over a segment roll, and beside clients that are turned away
            assert is_told(broker.port)
            for value in written[1:]:
                assert send(producer, "orders", value, timeout_s=PATIENCE_S) is None
        segments = list((broker.data_dir / "orders-0").glob("*.log"))
        assert len(segments) >= 3
        said = broker.log_file.read_text()
        assert "This process has no file descriptor left: new connections are closed at once" in said
        assert "Too many open files" not in said

        for sock in crowd:
            sock.close()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limit)
        assert values(broker.address, "orders") == [written[0], *written[1:] * 3]
        broker.stop()
    finally:
        broker.kill()


def is_told(port: int) -> bool:
    """Whether a new client is answered, or its connection is closed, before it gives up."""
    api_versions = struct.pack(">ihhih", 10, 18, 0, 1, -1)
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        try:
            client.sendall(api_versions)
            client.recv(1)
        except TimeoutError:
            return False
        except ConnectionError:
            return True
    return True


def leave_no_descriptor(pid: int, port: int) -> list[socket.socket]:
    """Limit a broker to the descriptors it has, and let idle clients take those between them."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    top = max(int(name) for name in os.listdir(f"/proc/{pid}/fd"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (top + 1, hard))
    crowd: list[socket.socket] = []
    deadline = time.monotonic() + PATIENCE_S
    while (taken := len(os.listdir(f"/proc/{pid}/fd"))) <= top:
        assert time.monotonic() < deadline, f"{taken} of {top + 1} descriptors are taken"
        if len(crowd) < top + 1 - taken:
            crowd.append(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S))
        time.sleep(0.01)
    return crowd


# --- a disk that stands still --------------------------------------------------------------------------


def test_a_disk_that_stands_still_does_not_hold_up_the_partitions_of_another(tmp_path: Path) -> None:
    stop_one_disk(tmp_path)


def stop_one_disk(folder: Path, bug: str = "", patience_s: float = PATIENCE_S) -> None:
    """Every acknowledgement waits for a sync; many partitions of the disk that stands still are written and
    read at once, by as many clients.
    """
    slow, fast, stuck_file = folder / "slow", folder / "fast", folder / "stuck"
    broker = TorturedBroker(folder, FSYNC)
    broker.data_dir = Path(f"{fast},{slow}")
    broker.run(Plan(stuck=(f"sync {slow}", f"pread {slow}"), stuck_file=str(stuck_file), mutant=bug))
    stop = threading.Event()
    threads: list[threading.Thread] = []
    try:
        create(broker.address, "orders", partitions=16)
        on_slow = sorted(int(name.name.rpartition("-")[2]) for name in slow.glob("orders-*"))
        on_fast = sorted(set(range(16)) - set(on_slow))
        assert len(on_slow) == len(on_fast) == 8
        writer = Producer({"bootstrap.servers": broker.address, "linger.ms": 0, **QUIET})
        producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 0, **QUIET})
        for partition in on_slow:
            assert send(writer, "orders", b"before", partition) is None

        def read(partition: int) -> None:
            reader = new_consumer(broker.address)
            while not stop.is_set():
                reader.assign([TopicPartition("orders", partition, 0)])
                reader.consume(1, timeout=1.5)
            reader.close()

        stuck_file.touch()
        threads += [threading.Thread(target=read, args=[partition]) for partition in on_slow]
        for thread in threads:
            thread.start()
        for partition in on_slow:
            writer.produce("orders", b"slow", partition=partition)
        writer.poll(0)
        deadline = time.monotonic() + PATIENCE_S
        while stuck_file.stat().st_size < CROWD:
            assert time.monotonic() < deadline, "no thread waits for the disk"
            time.sleep(0.01)

        for number in range(30):
            partition = on_fast[number % len(on_fast)]
            assert send(producer, "orders", b"fast", partition, patience_s) is None
        reader = new_consumer(broker.address)
        reader.assign([TopicPartition("orders", on_fast[0], 0)])
        assert len(reader.consume(3, timeout=patience_s)) == 3
        reader.close()
        assert len(writer) == len(on_slow)

        stuck_file.unlink()
        assert writer.flush(PATIENCE_S) == 0
    finally:
        stop.set()
        stuck_file.unlink(missing_ok=True)
        for thread in threads:
            thread.join()
        broker.kill()


# --- planted bugs ---------------------------------------------------------------------------------------


def test_an_acknowledgement_of_what_a_full_disk_refused_is_noticed(full_disk: FullDisk) -> None:
    with pytest.raises(AssertionError):
        fill_the_disk(full_disk, mutants.acknowledge_what_a_full_disk_refused.__name__)


def test_descriptors_that_are_not_given_back_are_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_out_of_descriptors(tmp_path, mutants.keep_the_descriptors_of_all_logs.__name__, patience_s=10)


def test_disks_that_share_their_threads_are_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        stop_one_disk(tmp_path, mutants.share_the_threads_of_all_disks.__name__, patience_s=10)
