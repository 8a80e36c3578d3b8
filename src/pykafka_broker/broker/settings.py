"""The settings of each part of a broker, from the configuration: one function for each part.

`shared_server.py`, `node_logs.py` and `served_listeners.py` call them when they make a part; the latter two
call them again when the configuration changes.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator, Mapping
from functools import partial

from pykafka_broker.apis.api import BROKER_LISTENER, CONTROLLER_LISTENER
from pykafka_broker.config import BrokerConfig
from pykafka_broker.config.keys import ConfigError
from pykafka_broker.config.listeners import Endpoint
from pykafka_broker.config.typed_values import NumberKey
from pykafka_broker.log.check.scrubber import ScrubSettings
from pykafka_broker.log.cleaner.cleaner import CleanerSettings
from pykafka_broker.log.manager.settings import Intervals, LogSettings
from pykafka_broker.machine.clock import Clock, processing_ns
from pykafka_broker.machine.history import Tell
from pykafka_broker.network.endpoint import METRICS_LISTENER, ListenerEndpoint, ListenerLimits
from pykafka_broker.network.host_names import limits_by_address
from pykafka_broker.network.limits import ConnectionLimits
from pykafka_broker.protocol.messages import GET_TELEMETRY_SUBSCRIPTIONS_KEY, PUSH_TELEMETRY_KEY
from pykafka_broker.quotas.client_quotas import ClientQuotas
from pykafka_broker.quotas.rates import Window
from pykafka_broker.telemetry.client_metrics import TelemetrySettings

logger = logging.getLogger("kafka.server.BrokerServer")

#: The most connections to one listener of metrics: scrapers and probes need few.
MOST_METRICS_CONNECTIONS = 32


def endpoints(config: BrokerConfig) -> Iterator[ListenerEndpoint]:
    """The endpoints to listen on, with kinds, advertised addresses and limits; clients' listeners first."""
    advertised: dict[str, Endpoint] = {}
    if config["advertised.listeners"] is not None:
        told = (*config.advertised_listeners, *config.advertised_controller_listeners)
        advertised = {endpoint.name: endpoint for endpoint in told}
    inter_broker = config.inter_broker_listener_name
    for endpoint in config.broker_listeners:
        is_inter_broker = endpoint.name == inter_broker
        yield _endpoint(endpoint, advertised, config, is_privileged=is_inter_broker, serves=BROKER_LISTENER)
    for endpoint in config.controller_listeners:
        yield _endpoint(endpoint, advertised, config, is_privileged=True, serves=CONTROLLER_LISTENER)
    for endpoint in config.metrics_listeners:
        # Privileged: a probe must be answered when clients have all connections.
        yield ListenerEndpoint(
            endpoint.name,
            endpoint.host,
            endpoint.port,
            endpoint.security_protocol,
            is_privileged=True,
            max_connections=MOST_METRICS_CONNECTIONS,
            serves=METRICS_LISTENER,
        )


def _endpoint(
    endpoint: Endpoint,
    advertised: Mapping[str, Endpoint],
    config: BrokerConfig,
    *,
    is_privileged: bool,
    serves: str,
) -> ListenerEndpoint:
    told = advertised.get(endpoint.name)
    own = partial(config.for_listener, endpoint.name)
    return ListenerEndpoint(
        endpoint.name,
        endpoint.host,
        endpoint.port,
        endpoint.security_protocol,
        None if told is None else told.host,
        None if told is None else told.port,
        is_privileged=is_privileged,
        max_connections=own("max.connections"),
        max_connection_creation_rate=own("max.connection.creation.rate"),
        serves=serves,
    )


def connection_limits(config: BrokerConfig) -> ConnectionLimits:
    """The limits of one connection."""
    return ConnectionLimits(
        request_max_bytes=config["socket.request.max.bytes"], idle_ms=config["connections.max.idle.ms"]
    )


def listener_limits(config: BrokerConfig, by_address: Mapping[str, int]) -> ListenerLimits:
    """The limits of connections; `by_address` has those of single addresses, already looked up."""
    return ListenerLimits(
        max_connections=config["max.connections"],
        max_connections_per_ip=config["max.connections.per.ip"],
        max_connections_per_ip_overrides=by_address,
        max_connection_creation_rate=config["max.connection.creation.rate"],
        socket_listen_backlog_size=config["socket.listen.backlog.size"],
        socket_send_buffer_bytes=_socket_buffer_bytes(config, "socket.send.buffer.bytes"),
        socket_receive_buffer_bytes=_socket_buffer_bytes(config, "socket.receive.buffer.bytes"),
    )


def quota_window(config: BrokerConfig) -> Window:
    """The time window of client quotas and of rates of connections."""
    return Window(config["quota.window.num"], config["quota.window.size.seconds"] * 1_000)


def client_quotas(config: BrokerConfig, clock: Clock, tell: Tell) -> ClientQuotas:
    """The client quotas, without values yet."""
    controller_window = Window(
        config["controller.quota.window.num"], config["controller.quota.window.size.seconds"] * 1_000
    )
    return ClientQuotas(clock, processing_ns, quota_window(config), controller_window, tell)


def _socket_buffer_bytes(config: BrokerConfig, name: NumberKey) -> int:
    """The configured size, -1 if none is configured: Kafka's default of 100 KiB would switch off the system's
    own tuning, which needs a third less CPU for large batches.
    """
    return config[name] if name in config.originals else -1


async def limits_by_address_or(before: Mapping[str, int], config: BrokerConfig) -> Mapping[str, int]:
    """The limits of single addresses; `before` if one of the new hosts is unknown."""
    try:
        return await limits_by_address(config.connections_per_ip_overrides)
    except ConfigError as error:
        logger.error("Limits of single addresses stay as they are: %s", error)
        return before


def log_settings(config: BrokerConfig) -> LogSettings:
    """The settings of the work on all logs."""
    return LogSettings(
        intervals(config),
        cleaner_settings(config),
        scrub_settings(config),
        config["num.recovery.threads.per.data.dir"],
    )


def intervals(config: BrokerConfig) -> Intervals:
    """The intervals of the work on logs."""
    return Intervals(
        initial_delay_ms=config["log.initial.task.delay.ms"],
        retention_check_ms=config["log.retention.check.interval.ms"],
        flush_check_ms=config["log.flush.scheduler.interval.ms"],
        recovery_point_checkpoint_ms=config["log.flush.offset.checkpoint.interval.ms"],
        log_start_checkpoint_ms=config["log.flush.start.offset.checkpoint.interval.ms"],
        high_watermark_checkpoint_ms=config["replica.high.watermark.checkpoint.interval.ms"],
        producer_expiration_check_ms=config["producer.id.expiration.check.interval.ms"],
    )


def cleaner_settings(config: BrokerConfig) -> CleanerSettings:
    """The settings of compaction."""
    return CleanerSettings(
        enable=config["log.cleaner.enable"],
        threads=config["log.cleaner.threads"],
        dedupe_buffer_bytes=config["log.cleaner.dedupe.buffer.size"],
        io_buffer_bytes=config["log.cleaner.io.buffer.size"],
        io_buffer_load_factor=config["log.cleaner.io.buffer.load.factor"],
        io_max_bytes_per_second=config["log.cleaner.io.max.bytes.per.second"],
        backoff_ms=config["log.cleaner.backoff.ms"],
    )


def unlisted_apis(config: BrokerConfig) -> Container[int]:
    """The keys of the APIs that ApiVersions does not list although they are served.

    As in Apache Kafka a client pushes metrics only if it is told so, for which there has to be a receiver.
    """
    return (
        () if config["telemetry.receiver.enable"] else (GET_TELEMETRY_SUBSCRIPTIONS_KEY, PUSH_TELEMETRY_KEY)
    )


def telemetry_settings(config: BrokerConfig) -> TelemetrySettings:
    """The settings of the metrics that clients push."""
    return TelemetrySettings(
        max_bytes=config["telemetry.max.bytes"], keeps_series=config["telemetry.receiver.enable"]
    )


def scrub_settings(config: BrokerConfig) -> ScrubSettings:
    """The interval at which closed segments are read again, and the limit of the rate."""
    return ScrubSettings(config["log.scrub.interval.ms"], config["log.scrub.io.max.bytes.per.second"])
