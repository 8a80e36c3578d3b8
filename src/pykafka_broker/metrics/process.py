"""Families of the process and of its garbage collector, as prometheus-client collects them; some of them
again under the names that dashboards for Kafka ask a JVM for.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterable
from functools import cache, partial
from typing import Any

from pykafka_broker.metrics.family import Family, Sample, labelled
from pykafka_broker.metrics.node_parts import NodeParts, Scrape
from pykafka_broker.system.processes import disk_bytes


class GcTimes:
    """The time that collections of this process have taken since this was made, by generation."""

    def __init__(self) -> None:
        self.count = [0, 0, 0]
        self.spent_ns = [0, 0, 0]
        self._started_ns = 0
        gc.callbacks.append(self._called)

    def _called(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._started_ns = time.perf_counter_ns()
        else:
            generation = info["generation"]
            self.count[generation] += 1
            self.spent_ns[generation] += time.perf_counter_ns() - self._started_ns


@cache
def gc_times() -> GcTimes:
    """The times of garbage collection in this process, which all of its nodes share."""
    return GcTimes()


@cache
def collectors() -> tuple[Any, ...]:
    """Those of prometheus-client."""
    from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

    return ProcessCollector(registry=None), PlatformCollector(registry=None), GCCollector(CollectorRegistry())


def begin() -> None:
    """Load prometheus-client, and begin to time garbage collection.

    Raises:
        ImportError: prometheus-client is not installed.
    """
    collectors()
    gc_times()


def collected(_: NodeParts) -> dict[str, list[tuple[str, float]]]:
    """The samples of prometheus-client's collectors, by name."""
    samples: dict[str, list[tuple[str, float]]] = {}
    for collector in collectors():
        for metric in collector.collect():
            for sample in metric.samples:
                samples.setdefault(sample.name, []).append((labelled(**sample.labels), sample.value))
    return samples


def _of_collectors(name: str, scrape: Scrape) -> Iterable[Sample]:
    return scrape.once(collected).get(name, ())


def _memory(scrape: Scrape) -> Iterable[Sample]:
    for _, value in scrape.once(collected).get("process_resident_memory_bytes", ()):
        yield labelled(area="heap"), value


def _threads(scrape: Scrape) -> Iterable[Sample]:
    yield "", threading.active_count()


def _collections(scrape: Scrape) -> Iterable[Sample]:
    for generation, count in enumerate(gc_times().count):
        yield labelled(gc=f"generation {generation}"), count


def _collection_seconds(scrape: Scrape) -> Iterable[Sample]:
    for generation, spent_ns in enumerate(gc_times().spent_ns):
        yield labelled(gc=f"generation {generation}"), spent_ns / 1e9


def _disk(name: str, index: int, meaning: str) -> Family:
    def read(_: Scrape) -> Iterable[Sample]:
        told = disk_bytes()
        if told is not None:
            yield "", told[index]

    return Family(
        f"kafka_server_kafkaserver_{name.replace('-', '_')}",
        "gauge",
        "",
        meaning,
        f"kafka.server:type=KafkaServer,name={name}",
        read,
    )


def _row(name: str, kind: Any, labels: str, meaning: str) -> Family:
    return Family(name, kind, labels, meaning, "", partial(_of_collectors, name))


FAMILIES = (
    _row("process_cpu_seconds_total", "counter", "", "Processor time of the process."),
    _row("process_resident_memory_bytes", "gauge", "", "Memory of the process in RAM."),
    _row("process_virtual_memory_bytes", "gauge", "", "Memory of the process in its address space."),
    _row("process_open_fds", "gauge", "", "Open file descriptors."),
    _row("process_max_fds", "gauge", "", "The most file descriptors that the process may open."),
    _row("process_start_time_seconds", "gauge", "", "When the process started, in seconds since 1970."),
    _row(
        "python_info",
        "gauge",
        "version implementation major minor patchlevel",
        "The Python that runs; always 1.",
    ),
    _row("python_gc_objects_collected_total", "counter", "generation", "Objects that were garbage."),
    _row(
        "python_gc_objects_uncollectable_total", "counter", "generation", "Garbage that could not be freed."
    ),
    _row("python_gc_collections_total", "counter", "generation", "Collections of garbage."),
    _disk("linux-disk-read-bytes", 0, "Bytes that the process has had read from disks. On Linux."),
    _disk("linux-disk-write-bytes", 1, "Bytes that the process has had written to disks. On Linux."),
    Family(
        "jvm_memory_used_bytes",
        "gauge",
        "area",
        "`process_resident_memory_bytes`, under the name that dashboards ask for.",
        "java.lang:type=Memory, HeapMemoryUsage.used",
        _memory,
    ),
    Family(
        "jvm_threads_current",
        "gauge",
        "",
        "Threads of this process, under the name that dashboards ask for.",
        "java.lang:type=Threading, ThreadCount",
        _threads,
    ),
    Family(
        "jvm_gc_collection_seconds_count",
        "untyped",
        "gc",
        "Collections of garbage, under the name that dashboards ask for.",
        "java.lang:type=GarbageCollector,name=*, CollectionCount",
        _collections,
    ),
    Family(
        "jvm_gc_collection_seconds_sum",
        "untyped",
        "gc",
        "Seconds of garbage collection, under the name that dashboards ask for.",
        "java.lang:type=GarbageCollector,name=*, CollectionTime",
        _collection_seconds,
    ),
)
