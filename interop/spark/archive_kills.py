"""An archive job, its broker or both are killed at random; then the table is the topic, record by record.

    python -m interop.spark.archive_kills --format delta --kills 50 --seed 7
    python -m interop.spark.archive_kills --kills 10 --broker apache

A producer writes all the time. The job is killed with its JVM (`kill -9`) while it starts, plans, writes and
commits, the broker while it serves, and both are started again. At the end the job reads the rest, and every
record of the topic must be in the table once, with its key, value, headers and timestamp, and nothing else.

The jars are those of the Spark tests: `.cache/spark-<version>/jars-tables`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from confluent_kafka import Producer

from pykafka_broker.arrow import KAFKA_COLUMNS, read_topic
from pykafka_broker.client.blocking import Client
from pykafka_broker.spark.archive import Batch, Pace, Table, Topics
from pykafka_broker.spark.archive.settings import TABLE_FORMATS, TableFormat
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.cache import CACHE
from pykafka_broker.testing.processes import BrokerProcess, PykafkaBroker

TOPIC, PARTITIONS = "killed", 3
PROPERTIES = {"num.partitions": str(PARTITIONS), "log.retention.ms": "-1", "log.segment.bytes": "1048576"}
#: How a job ends that does not want to start.
REFUSED = 3
#: Records a second.
RATE = 400
#: Of a batch, so that there are many.
BATCH_RECORDS = 2_000
PATIENCE_S = 300.0


# -- the job, in a process of its own
# -----------------------------------


class Work(NamedTuple):
    """What a job process is told to do."""

    bootstrap: str
    format: TableFormat
    folder: str
    #: Read the rest, and write the table into this file; "": go on until the kill.
    dump: str


def work(told: Work) -> int:
    """Archive; the exit status."""
    from pykafka_broker.spark import kafka_session
    from pykafka_broker.spark.archive import archive_topics
    from pykafka_broker.spark.archive.tables import table_of

    folder = Path(told.folder)
    is_iceberg = told.format == "iceberg"
    table = Table(told.format, "lake.raw.killed" if is_iceberg else str(folder / "table"))
    spark = kafka_session(
        "archive kills",
        master="local[2]",
        tables=[] if told.format == "parquet" else [told.format],
        jars=CACHE / f"spark-{pyspark_version()}" / "jars-tables",
        conf={
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.pollingDelay": "10ms",
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        },
    )
    spark.sparkContext.setLogLevel("ERROR")

    def report(batch: Batch) -> None:
        print(json.dumps(batch._asdict()), flush=True)

    topics = Topics(told.bootstrap, (TOPIC,))
    pace = Pace() if told.dump else Pace(is_endless=True, every_s=0.0, batch_records=BATCH_RECORDS)
    try:
        archive_topics(spark, topics, table, str(folder / "checkpoint"), pace=pace, report=report)
    except SparkError as error:
        print(error, file=sys.stderr, flush=True)
        return REFUSED
    if told.dump:
        found = table_of(spark, table).rows().select(*KAFKA_COLUMNS).toArrow()
        pyarrow.parquet.write_table(found, told.dump)
    spark.stop()
    return 0


def pyspark_version() -> str:
    from pykafka_broker.spark.installation import pyspark_version

    return pyspark_version()


class Job:
    """The process of a job; every line that it prints is a batch."""

    def __init__(self, told: Work) -> None:
        self.log = Path(told.folder) / "job.log"
        command = [sys.executable, "-m", "interop.spark.archive_kills", "--work", json.dumps(told._asdict())]
        self._errors = self.log.open("ab")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True
        )
        self.batches = 0
        self.has_batch = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(b"{"):
                self.batches += 1
                self.has_batch.set()
        self.has_batch.set()

    @property
    def status(self) -> int | None:
        return self.process.poll()

    def wait(self, timeout_s: float) -> int:
        status = self.process.wait(timeout_s)
        self._reader.join()
        return status

    def kill(self) -> None:
        """With its JVM, which is in its process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        self._errors.close()


# -- what is produced meanwhile
# -----------------------------


class Feeder:
    """Writes records of all kinds, through every death of the broker."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        self._random = random.Random(seed)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 0,
                "linger.ms": 5,
                "log_level": 0,
            }
        )
        self.sent = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._feed)
        self._thread.start()

    def _feed(self) -> None:
        while not self._ends.wait(0.05):
            for _ in range(round(RATE * 0.05)):
                self._produce()
            self._producer.poll(0)

    def _produce(self) -> None:
        number, chance = self.sent, self._random
        with contextlib.suppress(BufferError):
            self._producer.produce(
                TOPIC,
                value=chance.choice([None, b"", f"value {number}".encode()]),
                key=f"key {number}".encode() if number % 3 else None,
                partition=chance.randrange(PARTITIONS),
                headers=[("n", str(number).encode()), ("n", None)] if number % 2 else None,
                timestamp=1_700_000_000_000 + number,
            )
            self.sent += 1

    def end(self) -> None:
        self._ends.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_S) == 0, "not all records were delivered"


# -- the story
# ------------


class Killings(NamedTuple):
    """What a run has done, and found right."""

    format: str
    seed: int
    kills: int
    by_target: dict[str, int]
    #: How often a job ended by itself, because its broker was away, and was started again.
    own_ends: int
    batches: int
    records: int
    seconds: float


def run(
    format_: TableFormat, kills: int, seed: int, folder: Path, kind: type[BrokerProcess] = PykafkaBroker
) -> Killings:
    """Kill so often, and compare. `kind` is the broker.

    Raises:
        AssertionError: a record is missing, is there twice or is another one; or the job refused to go on.
    """
    started_s, chance = time.monotonic(), random.Random(seed)
    targets: Counter[str] = Counter()
    own_ends = batches = 0
    with kind(PROPERTIES, folder / "broker") as broker:
        told = Work(broker.address, format_, str(folder), "")
        with Client(broker.address) as client:
            create(client)
        feeder = Feeder(broker.address, seed)
        try:
            job = Job(told)
            try:
                for _ in range(kills):
                    wait_for_moment(job, chance)
                    target = chance.choice(["job", "broker", "both"])
                    targets[target] += 1
                    if target in ("broker", "both"):
                        broker.kill()
                    if target == "both" or (target == "job" and job.status is None):
                        job.kill()
                    time.sleep(chance.uniform(0, 1.0))
                    if broker.process is None:
                        broker.start()
                    if job.status is not None:
                        own_ends += target == "broker"
                        assert job.status != REFUSED, job.log.read_text()[-2000:]
                        batches += job.batches
                        job.kill()
                        job = Job(told)
            finally:
                job.kill()
        finally:
            feeder.end()
        dump = folder / "table.parquet"
        last = Job(told._replace(dump=str(dump)))
        try:
            assert last.wait(PATIENCE_S) == 0, last.log.read_text()[-4000:]
        finally:
            last.kill()
        batches += job.batches + last.batches
        expected = by_place(read_topic(TOPIC, broker.address).read_all())
        compare(expected, by_place(pyarrow.parquet.read_table(dump)))
    seconds = round(time.monotonic() - started_s, 1)
    return Killings(format_, seed, kills, dict(targets), own_ends, batches, len(expected), seconds)


def wait_for_moment(job: Job, chance: random.Random) -> None:
    """Sometimes while the job starts; else when it has archived something, and a little later."""
    if chance.random() < 0.2:
        time.sleep(chance.uniform(0, 6))
        return
    job.has_batch.wait(PATIENCE_S)
    time.sleep(chance.uniform(0, 2))


def create(client: Client) -> None:
    from pykafka_broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

    topic = CreatableTopic(
        name=TOPIC, num_partitions=PARTITIONS, replication_factor=1, assignments=[], configs=[]
    )
    client.send(CreateTopicsRequest(topics=[topic], timeout_ms=30_000))


def by_place(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows by partition and offset."""
    columns = [
        (table[name].cast(pa.timestamp("ms", "UTC")) if name == "timestamp" else table[name]).to_pylist()
        for name in KAFKA_COLUMNS
    ]
    return sorted(zip(*columns, strict=True), key=lambda row: row[2:5])


def compare(expected: list[tuple[Any, ...]], found: list[tuple[Any, ...]]) -> None:
    """Every record once, and as it was."""
    places = Counter(row[2:5] for row in found)
    twice = [place for place, count in places.items() if count > 1]
    missing = [row[2:5] for row in expected if row[2:5] not in places]
    assert not twice, f"{len(twice)} records are there twice, the first at {twice[0]}"
    assert not missing, f"{len(missing)} records are missing, the first at {missing[0]}"
    assert found == expected, "a record is not as it was"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", choices=TABLE_FORMATS, default="delta")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--broker", choices=("ours", "apache"), default="ours")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        sys.exit(work(Work(**json.loads(options.work))))
    seed = options.seed if options.seed is not None else random.randrange(1_000_000)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="archive-kills-") as folder:
        kind = ApacheBroker if options.broker == "apache" else PykafkaBroker
        print(json.dumps(run(options.format, options.kills, seed, Path(folder), kind)._asdict()))


if __name__ == "__main__":
    main()
