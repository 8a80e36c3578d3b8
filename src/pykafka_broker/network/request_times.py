"""How long requests take, stage by stage: Kafka's RequestMetrics. Kept only where metrics are on, or single
requests are watched: for the log of slow ones, or for OpenTelemetry.

    request queue    from the wake-up that brought the request until it is its turn: the requests before it in
                     the same round
    local            its decoding, and the handler up to its first wait
    remote           from there until the answer is ready: acks of followers, records to fetch, commits
    response queue   until the answers before it have been sent
    response send    encoding it, and handing it to the transport
    total            all of them

A stage is a histogram (`system/histogram.py`). Every request counts, but not every one is timed: of each kind
the first `TIMED_AFTER_SCRAPE` after a scrape, then one in `TIMED_ONE_IN`; where they are watched, all. Four
looks at the clock and five increments take 2 us, while one record is acknowledged in 56 us. Stages that an
answer does not have, such as `remote` of an answer that is ready at once, are not recorded: the missing ones
among the timed requests count as zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pykafka_broker.protocol.codegen import Source
from pykafka_broker.protocol.fields import Field, schema_of
from pykafka_broker.system.histogram import BUCKETS, TABLE_UNITS, UNIT_SHIFT, new_histogram, record
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.apis.context import Context

#: The names under which Kafka counts fetches apart, besides "Fetch".
CONSUMER_FETCH = "FetchConsumer"
FOLLOWER_FETCH = "FetchFollower"
TIMED_AFTER_SCRAPE = 256
#: A power of two.
TIMED_ONE_IN = 16
NS_PER_MS = 1_000_000
#: More requests than any node serves.
_ALL = 1 << 63


class Times:
    """The requests of one kind: how many, which errors, and the histograms of those that are timed."""

    __slots__ = (
        "errors",
        "local",
        "remote",
        "request_bytes",
        "request_queue",
        "requests",
        "response_queue",
        "response_send",
        "throttle",
        "timed",
        "timed_until",
        "total",
    )

    def __init__(self, *, all_timed: bool = False) -> None:
        #: Those that have been answered, or wait for their answers.
        self.requests = 0
        #: Those whose times are recorded.
        self.timed = 0
        #: Below this number of requests all are timed.
        self.timed_until = _ALL if all_timed else TIMED_AFTER_SCRAPE
        self.request_queue = new_histogram()
        self.local = new_histogram()
        self.remote = new_histogram()
        #: Of throttle times, which are whole milliseconds.
        self.throttle = new_histogram()
        self.response_queue = new_histogram()
        self.response_send = new_histogram()
        self.total = new_histogram()
        #: Of sizes in bytes.
        self.request_bytes = new_histogram()
        #: How often answers told each error, NONE included, by its code.
        self.errors: dict[int, int] = {0: 0}

    def is_timed(self) -> bool:
        """Count a request; whether its times are to be recorded."""
        self.requests = requests = self.requests + 1
        return not requests & (TIMED_ONE_IN - 1) or requests <= self.timed_until

    def scraped(self) -> None:
        """Time the next requests: quantiles of rare ones must not wait for the sixteenth."""
        self.timed_until = max(self.timed_until, self.requests + TIMED_AFTER_SCRAPE)

    def answered(self, size_bytes: int, began_ns: int, handled_ns: int, ready_ns: int, sent_ns: int) -> None:
        """A request was answered at once. It came in at `began_ns`."""
        self.timed += 1
        buckets = BUCKETS
        queue = handled_ns - began_ns >> UNIT_SHIFT
        local = ready_ns - handled_ns >> UNIT_SHIFT
        send = sent_ns - ready_ns >> UNIT_SHIFT
        total = sent_ns - began_ns >> UNIT_SHIFT
        if total < TABLE_UNITS and size_bytes < TABLE_UNITS:
            self.request_queue[buckets[queue]] += 1
            self.local[buckets[local]] += 1
            self.response_send[buckets[send]] += 1
            self.total[buckets[total]] += 1
            self.request_bytes[buckets[size_bytes]] += 1
        else:
            record(self.request_queue, queue)
            record(self.local, local)
            record(self.response_send, send)
            record(self.total, total)
            record(self.request_bytes, size_bytes)

    def began(self, size_bytes: int, began_ns: int, handled_ns: int, waits_ns: int) -> None:
        """A request has begun to wait for its answer."""
        record(self.request_queue, handled_ns - began_ns >> UNIT_SHIFT)
        record(self.local, waits_ns - handled_ns >> UNIT_SHIFT)
        record(self.request_bytes, size_bytes)

    def ended(self, began_ns: int, waits_ns: int, ready_ns: int, encoded_ns: int, sent_ns: int) -> None:
        """The answer of such a request has been sent; it was ready at `ready_ns`, encoded at `encoded_ns`."""
        self.timed += 1
        record(self.remote, ready_ns - waits_ns >> UNIT_SHIFT)
        record(self.response_send, encoded_ns - ready_ns >> UNIT_SHIFT)
        record(self.response_queue, sent_ns - encoded_ns >> UNIT_SHIFT)
        record(self.total, sent_ns - began_ns >> UNIT_SHIFT)


class RequestTimes:
    """The times of all kinds of requests on one node, by Kafka's names of them.

    `watch` is told of each request that has been answered, before the next one is served.
    """

    def __init__(self, watch: Callable[[Answered], None] | None = None) -> None:
        self.watch = watch
        self.by_name: dict[str, Times] = {}

    def of(self, name: str) -> Times:
        """Those of requests with this name."""
        times = self.by_name.get(name)
        if times is None:
            times = self.by_name[name] = Times(all_timed=self.watch is not None)
        return times


class Answered(NamedTuple):
    """A request that has been answered, and the ends of its stages by `perf_counter_ns`."""

    context: Context[Any]
    began_ns: int
    #: Its handler began.
    handled_ns: int
    #: The handler began to wait; `ready_ns` if it did not.
    waits_ns: int
    ready_ns: int
    encoded_ns: int
    sent_ns: int
    throttle_ms: int = 0
    #: How much of its waiting the client has asked for.
    asked_wait_ms: int = 0
    #: The first error in the answer or in its parts; 0 without one.
    error_code: int = 0

    @property
    def unasked_ns(self) -> int:
        """Its time without the waiting that the client has asked for."""
        asked_ns = min(self.ready_ns - self.waits_ns, self.asked_wait_ms * NS_PER_MS)
        return self.sent_ns - self.began_ns - asked_ns

    @property
    def stages_ms(self) -> Mapping[str, float]:
        """The milliseconds of all stages and of each, by the names in Apache Kafka's log of requests."""
        return {
            "totalTimeMs": _ms(self.sent_ns - self.began_ns),
            "requestQueueTimeMs": _ms(self.handled_ns - self.began_ns),
            "localTimeMs": _ms(self.waits_ns - self.handled_ns),
            "remoteTimeMs": _ms(self.ready_ns - self.waits_ns),
            "throttleTimeMs": self.throttle_ms,
            "responseQueueTimeMs": _ms(self.sent_ns - self.encoded_ns),
            "sendTimeMs": _ms(self.encoded_ns - self.ready_ns),
        }

    @property
    def log_fields(self) -> Mapping[str, object]:
        """The fields of a log line about its times."""
        return {**self.context.log_fields, **self.stages_ms}


def _ms(duration_ns: int) -> float:
    return round(duration_ns / NS_PER_MS, 3)


#: Adds the errors of an answer to the counts by code.
ErrorCounter = Callable[[Any, dict[int, int]], None]


def error_counter(response: type) -> ErrorCounter:
    """The function that adds every error code of an answer, NONE included, to the counts by code."""
    source = Source(f"<errors of {response.__name__}>")
    with source.block("def count(answer, errors):"):
        _write_counting(source, response, "answer")
        source.line("return")
    return source.load_function("count")


def _write_counting(source: Source, struct: type, name: str) -> None:
    part = f"part{source.depth}"
    for field in schema_of(struct).fields:
        inner = _struct_of(field)
        if field.name == "error_code":
            source.line(f"errors[{name}.error_code] = errors.get({name}.error_code, 0) + 1")
        elif inner is not None and _has_errors(inner):
            source.line(f"{part} = {name}.{field.name}")
            with source.block(f"for {part} in {part} or ():" if field.element else f"if {part} is not None:"):
                _write_counting(source, inner, part)


def _has_errors(struct: type) -> bool:
    return any(
        field.name == "error_code" or ((inner := _struct_of(field)) is not None and _has_errors(inner))
        for field in schema_of(struct).fields
    )


def _struct_of(field: Field) -> type | None:
    return field.struct if field.element is None else field.element.struct
