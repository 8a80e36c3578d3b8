"""Families of RequestMetrics: counts, errors, and quantiles of stages (`network/request_times.py`), which are
over the requests of the last minutes (`copies.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pykafka_broker.metrics.copies import Copies, quantiles
from pykafka_broker.metrics.family import Family, Sample, labelled
from pykafka_broker.metrics.node_parts import NodeParts, Scrape
from pykafka_broker.network.kafka_connections import KafkaConnections
from pykafka_broker.network.request_times import CONSUMER_FETCH, FOLLOWER_FETCH, Times
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.system.histogram import NS_PER_UNIT
from pykafka_broker.system.named_tuple import NamedTuple


class Stage(NamedTuple):
    """A stage of requests, or another quantity of each of them."""

    name: str
    mbean: str
    meaning: str
    of: Callable[[Times], list[int]]
    #: What a unit of the histogram is in the unit of the metric.
    scale: float


_MS = NS_PER_UNIT / 1e6
STAGES = (
    Stage("requestbytes", "RequestBytes", "size in bytes", lambda times: times.request_bytes, 1),
    Stage(
        "requestqueuetimems",
        "RequestQueueTimeMs",
        "milliseconds until the handler begins",
        lambda times: times.request_queue,
        _MS,
    ),
    Stage(
        "localtimems",
        "LocalTimeMs",
        "milliseconds of the handler before its first wait",
        lambda times: times.local,
        _MS,
    ),
    Stage(
        "remotetimems",
        "RemoteTimeMs",
        "milliseconds of waiting for followers, records or commits",
        lambda times: times.remote,
        _MS,
    ),
    Stage(
        "throttletimems",
        "ThrottleTimeMs",
        "milliseconds for which the client is throttled",
        lambda times: times.throttle,
        1,
    ),
    Stage(
        "responsequeuetimems",
        "ResponseQueueTimeMs",
        "milliseconds behind earlier answers of the connection",
        lambda times: times.response_queue,
        _MS,
    ),
    Stage(
        "responsesendtimems",
        "ResponseSendTimeMs",
        "milliseconds of encoding and sending the answer",
        lambda times: times.response_send,
        _MS,
    ),
    Stage("totaltimems", "TotalTimeMs", "milliseconds in all", lambda times: times.total, _MS),
)


def _all_times(node: NodeParts) -> list[tuple[str, list[Times]]]:
    """By name, the times to add up: "Fetch" is of consumers and followers."""
    times = node.listeners.shared.times
    if times is None:
        return []
    named = [(name, [one]) for name, one in times.by_name.items()]
    fetches = [times.by_name[name] for name in (CONSUMER_FETCH, FOLLOWER_FETCH) if name in times.by_name]
    if fetches:
        named.append(("Fetch", fetches))
    for one in times.by_name.values():
        one.scraped()
    return named


def _quantiles(stage: Stage) -> Callable[[Scrape], Iterable[Sample]]:
    def read(scrape: Scrape) -> Iterable[Sample]:
        now_ms, copies = scrape.node.clock.monotonic_ms(), scrape.node.copies
        for name, some in scrape.once(_all_times):
            histogram = stage.of(some[0])
            for other in some[1:]:
                histogram = [a + b for a, b in zip(histogram, stage.of(other), strict=True)]
            kept = copies.setdefault((name, stage.name), Copies())
            timed = sum(one.timed for one in some)
            for quantile, value in quantiles(*kept.since(now_ms, timed, histogram)):
                yield labelled(request=name, quantile=quantile), round(value * stage.scale, 6)

    return read


def _count(scrape: Scrape) -> Iterable[Sample]:
    for name, some in scrape.once(_all_times):
        yield labelled(request=name), sum(one.requests for one in some)


def _requests(scrape: Scrape) -> Iterable[Sample]:
    counts: dict[tuple[str, int], int] = {}
    dispatches = {
        id(factory.dispatch): factory.dispatch
        for listener in scrape.node.listeners.listeners.values()
        if isinstance(factory := listener.service.new_connection, KafkaConnections)
    }
    for dispatch in dispatches.values():
        for route in dispatch.routes.values():
            key = route.name, route.version
            counts[key] = counts.get(key, 0) + route.requests
            if route.follower_times is not None:
                for name, count in (
                    (CONSUMER_FETCH, route.requests - route.follower_requests),
                    (FOLLOWER_FETCH, route.follower_requests),
                ):
                    if count:
                        counts[name, route.version] = counts.get((name, route.version), 0) + count
    for (name, version), count in counts.items():
        yield labelled(request=name, version=version), count


def _errors(scrape: Scrape) -> Iterable[Sample]:
    for name, some in scrape.once(_all_times):
        if name in (CONSUMER_FETCH, FOLLOWER_FETCH):
            continue  # Kafka counts them together
        errors: dict[int, int] = {}
        for times in some:
            for code, count in times.errors.items():
                errors[code] = errors.get(code, 0) + count
        for code, count in errors.items():
            if not count:
                continue
            yield labelled(request=name, error=_error_name(code)), count


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def _of_stage(stage: Stage) -> tuple[Family, Family]:
    name = f"kafka_network_requestmetrics_{stage.name}"
    bean = f"kafka.network:type=RequestMetrics,name={stage.mbean},request=*"
    return (
        Family(
            name,
            "gauge",
            "request quantile",
            f"Quantiles of the requests of the last minutes: {stage.meaning}.",
            f"{bean}, *Percentile",
            _quantiles(stage),
        ),
        Family(
            f"{name}_count",
            "untyped",
            "request",
            "Requests, also those that wait.",
            f"{bean}, Count",
            _count,
        ),
    )


FAMILIES = (
    Family(
        "kafka_network_requestmetrics_requests_total",
        "counter",
        "request version",
        "Requests that have begun, once the peer has authenticated.",
        "kafka.network:type=RequestMetrics,name=RequestsPerSec,request=*,version=*, Count",
        _requests,
    ),
    Family(
        "kafka_network_requestmetrics_errors_total",
        "counter",
        "request error",
        "Error codes in answers, NONE included.",
        "kafka.network:type=RequestMetrics,name=ErrorsPerSec,request=*,error=*, Count",
        _errors,
    ),
    *(family for stage in STAGES for family in _of_stage(stage)),
)
