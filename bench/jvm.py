"""Apache Kafka's own performance tools, run against any of the brokers."""

from __future__ import annotations

import re
import subprocess

from pykafka_broker.testing.apache.tools import command


def _run(tool: str, *arguments: str) -> str:
    done = subprocess.run(
        command(f"org.apache.kafka.tools.{tool}", *arguments, jvm_options=("-Xmx512m",)),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{tool} failed: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def producer_performance(address: str, topic: str, records: int) -> dict[str, float]:
    printed = _run(
        "ProducerPerformance",
        *("--bootstrap-server", address, "--topic", topic, "--num-records", str(records)),
        *("--record-size", "100", "--throughput", "-1"),
    )
    found = re.findall(r"records sent, ([\d.]+) records/sec", printed)
    return {"per_s": float(found[-1])}


def consumer_performance(address: str, topic: str, records: int) -> dict[str, float]:
    """Records a second while fetching: joining the group is not counted."""
    printed = _run(
        "ConsumerPerformance",
        *("--bootstrap-server", address, "--topic", topic, "--num-records", str(records)),
        *("--timeout", "60000", "--hide-header"),
    )
    return {"per_s": float(printed.strip().splitlines()[-1].split(",")[-1])}


def end_to_end_latency(address: str, topic: str, records: int) -> dict[str, float]:
    """The tool prints whole milliseconds for its percentiles, so the average is the finer figure."""
    printed = _run(
        "EndToEndLatency",
        *("--bootstrap-server", address, "--topic", topic, "--num-records", str(records)),
        *("--producer-acks", "all", "--record-size", "100"),
    )
    average = re.search(r"Avg latency: ([\d.]+) ms", printed)
    assert average, printed
    return {"mean_us": float(average[1]) * 1000}
