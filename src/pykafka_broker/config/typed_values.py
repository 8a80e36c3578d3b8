"""Reading a broker's configuration with types: mypy knows the type of `config["num.partitions"]`.

The lists contain the broker keys that code reads by name, grouped by the type of their values. Reading any
other name fails type checking. The tables in `broker.py` define the keys; `tests/config/test_typed_values.py`
compares the lists with them. Names that are built at run time are looked up in `values`, which has every key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Union, overload

BooleanKey = Literal[
    "auto.create.topics.enable",
    "auto.leader.rebalance.enable",
    "console.write",
    "controlled.shutdown.enable",
    "controller.quorum.auto.join.enable",
    "delete.topic.enable",
    "log.cleaner.enable",
    "otel.traces.enable",
    "telemetry.receiver.enable",
    "transaction.partition.verification.enable",
]
NumberKey = Literal[
    "node.id",
    "broker.id",
    "broker.heartbeat.interval.ms",
    "broker.session.timeout.ms",
    "initial.broker.registration.timeout.ms",
    "log.dir.failure.timeout.ms",
    "controller.socket.timeout.ms",
    "socket.connection.setup.timeout.ms",
    "controller.quorum.election.timeout.ms",
    "controller.quorum.fetch.timeout.ms",
    "controller.quorum.election.backoff.max.ms",
    "controller.quorum.request.timeout.ms",
    "controller.quorum.retry.backoff.ms",
    "controller.quorum.fetch.snapshot.max.bytes",
    "controller.quorum.fetch.max.bytes",
    "leader.imbalance.check.interval.seconds",
    "metadata.log.max.record.bytes.between.snapshots",
    "metadata.log.max.snapshot.interval.ms",
    "metadata.log.segment.bytes",
    "metadata.log.segment.ms",
    "unclean.leader.election.interval.ms",
    "delegation.token.max.lifetime.ms",
    "delegation.token.expiry.time.ms",
    "delegation.token.expiry.check.interval.ms",
    "socket.send.buffer.bytes",
    "socket.receive.buffer.bytes",
    "socket.request.max.bytes",
    "socket.listen.backlog.size",
    "max.connections",
    "max.connections.per.ip",
    "max.connection.creation.rate",
    "connections.max.idle.ms",
    "connection.failed.authentication.delay.ms",
    "queued.max.request.bytes",
    "request.timeout.ms",
    "max.request.partition.size.limit",
    "num.partitions",
    "default.replication.factor",
    "fetch.max.bytes",
    "max.incremental.fetch.session.cache.slots",
    "log.retention.hours",
    "log.retention.check.interval.ms",
    "log.flush.scheduler.interval.ms",
    "log.flush.offset.checkpoint.interval.ms",
    "log.flush.start.offset.checkpoint.interval.ms",
    "num.recovery.threads.per.data.dir",
    "log.initial.task.delay.ms",
    "log.cleaner.threads",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.size",
    "log.cleaner.backoff.ms",
    "replica.lag.time.max.ms",
    "replica.socket.timeout.ms",
    "replica.fetch.wait.max.ms",
    "replica.fetch.max.bytes",
    "replica.fetch.response.max.bytes",
    "replica.fetch.min.bytes",
    "replica.fetch.backoff.ms",
    "num.replica.fetchers",
    "replica.high.watermark.checkpoint.interval.ms",
    "offsets.topic.replication.factor",
    "offsets.topic.num.partitions",
    "offsets.topic.segment.bytes",
    "offsets.topic.compression.codec",
    "offsets.load.buffer.size",
    "offsets.commit.timeout.ms",
    "offset.metadata.max.bytes",
    "offsets.retention.minutes",
    "offsets.retention.check.interval.ms",
    "group.min.session.timeout.ms",
    "group.max.session.timeout.ms",
    "group.initial.rebalance.delay.ms",
    "group.max.size",
    "group.consumer.max.size",
    "group.consumer.regex.refresh.interval.ms",
    "share.coordinator.state.topic.num.partitions",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
    "share.coordinator.state.topic.segment.bytes",
    "share.coordinator.state.topic.compression.codec",
    "share.coordinator.state.topic.prune.interval.ms",
    "share.coordinator.snapshot.update.records.per.snapshot",
    "share.coordinator.cold.partition.snapshot.interval.ms",
    "share.coordinator.load.buffer.size",
    "share.coordinator.write.timeout.ms",
    "group.share.max.size",
    "group.share.initialize.retry.interval.ms",
    "group.share.max.share.sessions",
    "group.streams.max.size",
    "producer.id.expiration.check.interval.ms",
    "transaction.state.log.replication.factor",
    "transaction.state.log.num.partitions",
    "transaction.state.log.min.isr",
    "transaction.state.log.segment.bytes",
    "transaction.state.log.load.buffer.size",
    "transaction.max.timeout.ms",
    "transactional.id.expiration.ms",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    "add.partitions.to.txn.retry.backoff.ms",
    "add.partitions.to.txn.retry.backoff.max.ms",
    "log.scrub.interval.ms",
    "log.scrub.io.max.bytes.per.second",
    "log.slow.requests.ms",
    "replica.alter.log.dirs.io.max.bytes.per.second",
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replication.quota.window.num",
    "replication.quota.window.size.seconds",
    "quota.window.num",
    "quota.window.size.seconds",
    "controller.quota.window.num",
    "controller.quota.window.size.seconds",
    "telemetry.max.bytes",
]
FractionKey = Literal[
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.io.buffer.load.factor",
]
TextKey = Literal[
    "authorizer.class.name",
    "listener.security.protocol.map",
    "security.inter.broker.protocol",
    "sasl.mechanism.inter.broker.protocol",
    "sasl.mechanism.controller.protocol",
    "max.connections.per.ip.overrides",
    "group.consumer.migration.policy",
]
ListKey = Literal[
    "process.roles",
    "controller.listener.names",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
    "listeners",
    "log.dir",
    "cordoned.log.dirs",
    "group.coordinator.rebalance.protocols",
    "group.consumer.assignors",
    "group.share.assignors",
    "metrics.listeners",
    "console.listeners",
    "console.host.names",
]
OptionalNumberKey = Literal[
    "log.roll.ms",
    "log.roll.jitter.ms",
    "log.retention.ms",
    "log.retention.minutes",
    "num.replica.alter.log.dirs.threads",
]
OptionalTextKey = Literal[
    "broker.rack",
    "metadata.log.dir",
    "inter.broker.listener.name",
    "replica.selector.class",
    "console.command.config",
]
OptionalListKey = Literal[
    "advertised.listeners",
    "early.start.listeners",
    "log.dirs",
]
BrokerKey = Union[
    BooleanKey,
    NumberKey,
    FractionKey,
    TextKey,
    ListKey,
    OptionalNumberKey,
    OptionalTextKey,
    OptionalListKey,
]


class TypedValues:
    """The typed values of one broker's keys.

    Attributes:
        values: by name, including `listener.name.<listener>.<key>`.
    """

    __slots__ = ("values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    @overload
    def __getitem__(self, name: BooleanKey) -> bool: ...

    @overload
    def __getitem__(self, name: NumberKey) -> int: ...

    @overload
    def __getitem__(self, name: FractionKey) -> float: ...

    @overload
    def __getitem__(self, name: TextKey) -> str: ...

    @overload
    def __getitem__(self, name: ListKey) -> tuple[str, ...]: ...

    @overload
    def __getitem__(self, name: OptionalNumberKey) -> int | None: ...

    @overload
    def __getitem__(self, name: OptionalTextKey) -> str | None: ...

    @overload
    def __getitem__(self, name: OptionalListKey) -> tuple[str, ...] | None: ...

    def __getitem__(self, name: BrokerKey) -> Any:
        return self.values[name]
