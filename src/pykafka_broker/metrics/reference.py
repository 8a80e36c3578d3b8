"""The page `docs/metrics.md`, from the declarations of families; `make fix` writes it."""

from __future__ import annotations

from pykafka_broker.metrics.families import FAMILIES

INTRODUCTION = """\
# Metrics and health

`pykafka-broker start --metrics 127.0.0.1:9644`, or `metrics.listeners=http://127.0.0.1:9644` in the
properties file, serves these pages over HTTP:

| page | answer |
|---|---|
| `/metrics` | all metrics below, in the text format of Prometheus |
| `/health/live` | 200: the process answers |
| `/health/ready` | 200 if the node serves clients; otherwise 503, and the reason as text |
| `/explain` | on a loopback address only: what `pykafka-broker explain` shows of this node, as JSON |

A node is ready when it has started, hears from the active controller and has taken up all committed metadata,
and a broker when it is unfenced as well.

Metrics need `prometheus-client`, which [the extra](operations.md#installing) `metrics` brings
(`pip install '.[metrics]'` in a checkout) and which is imported only if a listener is configured. The pages
are for everyone who reaches the address: there is neither TLS nor a login, so bind an address that only your
monitoring reaches. `/explain` has principals, client ids and addresses of clients: a listener on any other
address than a loopback one (127.0.0.1, ::1, localhost) refuses it, as does one that is asked by another host
name. If your monitoring is elsewhere, list two listeners:
`metrics.listeners=http://0.0.0.0:9644,http://127.0.0.1:9645`.

Names, labels and types are those that the MBeans of Apache Kafka get from the JMX exporter with Strimzi's
rules, and those of the Kafka exporter for offsets and lags. So Strimzi's Grafana dashboards for Kafka, KRaft
and the Kafka exporter, and alerts written for them, show data without a change. A counter counts from the
start of the node.

Every broker shows the partitions that it holds and the groups that it coordinates, so that sums over all
brokers are those of the cluster. A lag is shown where the coordinator of the group has a replica of the
partition; [rules for Prometheus](operations.md#metrics) compute the other lags.

What clients push ([operations.md](operations.md#metrics-of-clients)) follows the metrics below. A pushed
metric is named `client_` plus the client's name for it; a counter also ends in `_total`. Every character but
letters and digits becomes `_`, as in `client_org_apache_kafka_producer_connection_creation_rate`. Labels
are `client_id`, `client_instance_id` and those of the client.
"""

LEFT_OUT = """
## What is left out

| in Apache Kafka | why it is not here |
|---|---|
"""

#: Names in Apache Kafka, and why they are not here.
REASONS = (
    (
        "`EventQueueTimeMs`, `EventQueueProcessingTimeMs`, `AvgIdleRatio` of the controller; "
        "`event-queue-*`, `event-processing-time-ms`, `thread-idle-ratio-avg` of coordinators",
        "The event loop calls the controller and the coordinators: they have no queue and no threads.",
    ),
    (
        "`LastAppliedRecordTimestamp`, `LastAppliedRecordLagMs`, `last-applied-record-timestamp`, "
        "`last-applied-record-lag-ms`",
        "An idle leader writes no records, so the time of the last record tells no lag. Compare "
        "`lastappliedrecordoffset` with `lastcommittedrecordoffset`, and with that of the active "
        "controller.",
    ),
    (
        "`MetadataErrorCount`, `metadata-load-error-count`",
        "A node that cannot read metadata stops.",
    ),
    (
        "`remainingSegmentsToRecover`",
        "`remaininglogstorecover` counts whole logs.",
    ),
    (
        "`uncleanable-bytes`, `max-compaction-delay-secs`, `cleaner-recopy-percent`, "
        "`max-buffer-utilization-percent`",
        "The cleaner keeps no such numbers; it logs the bytes before and after each compaction.",
    ),
    (
        "`InvalidMagicNumberRecordsPerSec`, `ProduceMessageConversionsPerSec`, "
        "`FetchMessageConversionsPerSec`",
        "Produce refuses older formats of records before it looks at the partition, and no records "
        "are converted.",
    ),
    (
        "`TotalShareAcknowledgementRequestsPerSec`, `FailedShareAcknowledgementRequestsPerSec`",
        "`kafka_network_requestmetrics_requests_total` and `_errors_total` count ShareAcknowledge.",
    ),
    (
        "`ExpiredConnectionsKilledCount`",
        "`pykafka_broker_connections_closed_for_errors_total` has connections that are closed "
        "because their sessions are over.",
    ),
    (
        "`connections_tls_info`",
        "Connections are not counted by cipher.",
    ),
    (
        "`mutation-rate` of ControllerMutation",
        "`tokens` is what the quota goes by.",
    ),
    (
        "`Remote*`",
        "There is no tiered storage.",
    ),
)

ALL = """
## All metrics

| name | type | labels | meaning | in Apache Kafka |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    rows = (
        f"| `{family.name}` | {family.kind} | {', '.join(f'`{label}`' for label in family.labels.split())} "
        f"| {family.meaning} | {f'`{family.mbean}`' if family.mbean else ''} |\n"
        for family in FAMILIES
    )
    reasons = (f"| {names} | {reason} |\n" for names, reason in REASONS)
    return "".join((INTRODUCTION, LEFT_OUT, *reasons, ALL, *rows))
