"""A replay whose job, tasks and broker are killed at random moments: nothing lost, nothing twice.

    python -m interop.spark.replay_kills --kills 50 --seed 1
    python -m interop.spark.replay_kills --kills 10 --broker apache

Each round replays a table of generated records into a new topic. Meanwhile SIGKILL ends

    job      the driver with its JVM and all its tasks; it is started again
    worker   one Python process of a task; Spark runs the task again
    broker   it is started again after up to two seconds
    both     job and broker

until the rounds have had as many kills as were asked for. After each round the committed records of the topic
are compared with the table, record by record: key, value, headers, timestamp, partition, order. Transactions
are small and the rate is low, so that most kills hit a transaction.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pykafka_broker.arrow import read_topic
from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.cache import CACHE
from pykafka_broker.testing.processes import BrokerProcess, PykafkaBroker

PARTITIONS = 3
#: A job takes long to start, so that it is killed less often than the others.
KINDS = ("job", "worker", "worker", "broker", "broker", "both")
#: A round without an end for so long is a failure.
PATIENCE_S = 400.0
TIMES = pa.timestamp("us", tz="UTC")
COMPARED = ("partition", "key", "value", "timestamp", "headers")

JOB = """
import sys
from pykafka_broker.spark import kafka_session
from pykafka_broker.spark.replay import Preparation, Settings, Target, replay

folder, address, topic, rate, jars = sys.argv[1:]
spark = kafka_session("kills", master="local[3,8]", jars=jars, conf={
    "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
spark.sparkContext.setLogLevel("OFF")
print("writing", flush=True)
settings = Settings(batch_bytes=2_000, transaction_records=60, records_per_s=float(rate))
target = Target(address, topic, Preparation.CREATE)
done = replay(spark.read.parquet(folder), target, settings=settings)
print("replayed", done.records, flush=True)
"""


def table(records: int, dice: random.Random) -> pa.Table:
    """Records of all kinds, in Spark's kafka format; offsets have gaps, as transactions leave them."""
    rows: dict[str, list[Any]] = {name: [] for name in ("key", "value", "partition", "offset", "timestamp")}
    headers = []
    for partition in range(PARTITIONS):
        offset = 0
        for number in range(records):
            offset += dice.choice((1, 1, 1, 2))
            rows["key"].append(dice.choice((None, b"", b"k%d" % (number % 5))))
            rows["value"].append(dice.choice((None, b"%d-%d" % (partition, number), dice.randbytes(80))))
            rows["partition"].append(partition)
            rows["offset"].append(offset)
            rows["timestamp"].append(dice.choice((-1, dice.randrange(1_700_000_000_000))) * 1000)
            headers.append(dice.choice((None, [{"key": "h", "value": None}, {"key": "h", "value": b"\0"}])))
    columns = {
        "key": pa.array(rows["key"], pa.binary()),
        "value": pa.array(rows["value"], pa.binary()),
        "topic": pa.array(["source"] * len(headers)),
        "partition": pa.array(rows["partition"], pa.int32()),
        "offset": pa.array(rows["offset"], pa.int64()),
        "timestamp": pa.array(rows["timestamp"], TIMES),
        "timestampType": pa.array([0] * len(headers), pa.int32()),
        "headers": pa.array(headers, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    }
    return pa.table(columns)


def rows_of(found: pa.Table) -> list[tuple[Any, ...]]:
    """What a replay keeps of records, in the order of partition and offset."""
    ordered = found.sort_by([("partition", "ascending"), ("offset", "ascending")])
    columns = [
        (
            ordered[name].cast(pa.timestamp("ms", tz="UTC")) if name == "timestamp" else ordered[name]
        ).to_pylist()
        for name in COMPARED
    ]
    return list(zip(*columns, strict=True))


class Round:
    """One topic that is replayed, with its job and broker."""

    def __init__(self, broker: BrokerProcess, source: Path, topic: str, rate: float, log: Path) -> None:
        self.broker, self.topic, self.log = broker, topic, log
        jars = next(CACHE.glob("spark-4.0*/jars"))
        self._command = [sys.executable, "-c", JOB, str(source), broker.address, topic, str(rate), str(jars)]
        self.runs = 0
        self.job: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the job, and wait until its session is there."""
        self.runs += 1
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        with self.log.open("ab") as log:
            log.write(f"-- run {self.runs} of {self.topic}\n".encode())
            begin = log.tell()
            self.job = subprocess.Popen(
                self._command, stdout=log, stderr=log, start_new_session=True, env=environment
            )
        deadline = time.monotonic() + PATIENCE_S
        while b"writing" not in self.log.read_bytes()[begin:]:
            if self.job.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the job did not start:\n{self.tail()}")
            time.sleep(0.05)

    def is_done(self) -> bool:
        """Whether the job has ended; one that has failed is started again, as a scheduler would."""
        assert self.job is not None
        status = self.job.poll()
        if status:
            print(f"  the job ended with {status}: {self.tail(1)}", flush=True)
            self.start()
        return status == 0

    def kill_job(self) -> None:
        assert self.job is not None
        os.killpg(self.job.pid, signal.SIGKILL)
        self.job.wait()

    def kill_worker(self, dice: random.Random) -> bool:
        """Kill one of the Python processes that the JVM has started; whether there was one."""
        assert self.job is not None
        workers = [pid for pid in session_of(self.job.pid) if b"pyspark.daemon" in command_line(pid)]
        # The first is the daemon, which forks the others.
        if len(workers) < 2:
            return False
        os.kill(dice.choice(workers[1:]), signal.SIGKILL)
        return True

    def tail(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def session_of(leader: int) -> list[int]:
    """The processes of a session, in the order of their ids."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if os.getsid(int(entry.name)) == leader:
                    found.append(int(entry.name))
            except OSError:
                continue
    return sorted(found)


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def run_round(round_: Round, dice: random.Random, kills: Counter[str], wanted: int, span_s: float) -> None:
    """Replay a topic, with kills at random moments until there were enough of them."""
    round_.start()
    deadline = time.monotonic() + PATIENCE_S
    while not round_.is_done():
        if time.monotonic() > deadline:
            raise SystemExit(f"the replay does not end:\n{round_.tail()}")
        if kills.total() >= wanted:
            time.sleep(0.1)
            continue
        until = time.monotonic() + dice.uniform(0.2, span_s)
        while time.monotonic() < until and not round_.is_done():
            time.sleep(0.02)
        if round_.is_done():
            break
        kind = dice.choice(KINDS)
        if kind == "worker" and not round_.kill_worker(dice):
            continue
        kills[kind] += 1
        if kind in ("job", "both"):
            round_.kill_job()
        if kind in ("broker", "both"):
            round_.broker.kill()
            time.sleep(dice.uniform(0, 2))
            round_.broker.start()
        if kind in ("job", "both"):
            round_.start()


def main() -> None:
    """Run rounds until there were enough kills; exit status 1 where records were lost or repeated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--broker", choices=("ours", "apache"), default="ours")
    parser.add_argument("--records", type=int, default=3_000, help="of each partition")
    parser.add_argument("--seconds", type=float, default=12.0, help="that a replay takes at least")
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    print(f"seed {arguments.seed}, {arguments.broker}", flush=True)
    kills: Counter[str] = Counter()
    rounds = runs = compared = 0
    with tempfile.TemporaryDirectory(prefix="replay-kills-") as name:
        folder = Path(name)
        made = table(arguments.records, dice)
        (folder / "source").mkdir()
        pq.write_table(made, folder / "source" / "records.parquet")
        wanted = rows_of(made)
        rate = len(wanted) / arguments.seconds
        kind = PykafkaBroker if arguments.broker == "ours" else ApacheBroker
        properties = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}
        with kind(properties, folder / "broker") as broker:
            while kills.total() < arguments.kills or not rounds:
                rounds += 1
                topic = f"again-{rounds}"
                one = Round(broker, folder / "source", topic, rate, folder / "job.log")
                run_round(one, dice, kills, arguments.kills, arguments.seconds)
                runs += one.runs
                found = rows_of(
                    read_topic(topic, broker.address, isolation_level="read_committed").read_all()
                )
                if found != wanted:
                    print(f"{topic}: {len(found)} records where {len(wanted)} were replayed; they differ")
                    print(one.tail())
                    sys.exit(1)
                compared += len(found)
                print(
                    f"{topic}: {len(found)} records as they were, in {one.runs} runs; kills so far: "
                    f"{dict(kills)}",
                    flush=True,
                )
    print(
        f"seed {arguments.seed}, {arguments.broker}: {kills.total()} kills {dict(kills)} in {rounds} rounds "
        f"and {runs} runs, {compared} records compared: nothing lost, nothing twice",
        flush=True,
    )


if __name__ == "__main__":
    main()
