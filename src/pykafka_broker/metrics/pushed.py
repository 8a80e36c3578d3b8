"""What clients have pushed (`telemetry/series.py`), as families, and how much was not kept.

A client names its metrics as it likes. All of these begin with `client_`, as none of the broker's do, and
have what the text format allows in a name; of series that are alike in it, the first is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from pykafka_broker.metrics import family
from pykafka_broker.metrics.family import Family, Sample, labelled
from pykafka_broker.metrics.node_parts import Scrape
from pykafka_broker.telemetry.client_metrics import ClientMetrics
from pykafka_broker.telemetry.series import Kind

#: The event loop runs other work after this many series have been sorted, which takes 1 ms.
SERIES_PER_SLICE = 200
_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_]")


def pushed_families(scrape: Scrape) -> Iterator[Family | None]:
    """A family for each name that clients have pushed; None where the event loop may run other work."""
    broker = scrape.node.broker
    if broker is None:
        return
    by_name: dict[str, tuple[Kind, dict[str, float]]] = {}
    for number, series in enumerate(broker.telemetry.series.newest(scrape.node.clock.monotonic_ms()), 1):
        labels = {_label(name): value for name, value in series.labels}
        labels |= {"client_id": series.client_id, "client_instance_id": series.client_instance_id}
        total = "_total" if series.kind is Kind.COUNTER else ""
        name = f"client_{_NOT_ALLOWED.sub('_', series.name)}{total}"
        by_name.setdefault(name, (series.kind, {}))[1].setdefault(labelled(**labels), series.value)
        if not number % SERIES_PER_SLICE:
            yield None
    for name, (kind, samples) in by_name.items():
        yield Family(name, kind.value, "", "Pushed by clients.", "", partial(_samples, samples))


def _label(name: str) -> str:
    """A client's label as Prometheus takes it: it begins neither with a digit nor like one of its own."""
    allowed = _NOT_ALLOWED.sub("_", name)
    return f"label_{allowed}" if not allowed or allowed[0].isdigit() or allowed.startswith("__") else allowed


def _samples(samples: dict[str, float], _: Scrape) -> Iterable[Sample]:
    return samples.items()


def _count(name: str, kind: family.Kind, meaning: str, value: Callable[[ClientMetrics], int]) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        if scrape.node.broker is not None:
            yield "", value(scrape.node.broker.telemetry)

    return Family(f"kafka_server_client_metrics_{name}", kind, "", meaning, "", read)


FAMILIES = (
    _count("instances", "gauge", "Instances of clients that push metrics.", len),
    _count("series", "gauge", "Series that they have pushed.", lambda told: len(told.series)),
    _count(
        "dropped_total",
        "counter",
        "Values that were pushed and not kept, because they are too many or too long.",
        lambda told: told.series.dropped,
    ),
    _count(
        "unread_total",
        "counter",
        "Pushes that were not read, because opentelemetry-proto is not installed.",
        lambda told: told.unread,
    ),
)
