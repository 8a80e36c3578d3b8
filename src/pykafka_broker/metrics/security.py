"""Families of logins, of certificates, of the authorizer and of the quotas of clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pykafka_broker.apis.ports.quotas import Quota
from pykafka_broker.metrics.family import Family, Sample, labelled
from pykafka_broker.metrics.node_parts import Scrape
from pykafka_broker.network.kafka_connections import KafkaConnections
from pykafka_broker.network.listening import Listener
from pykafka_broker.network.sasl_authentication import Sasl
from pykafka_broker.network.transports import Tls
from pykafka_broker.quotas.accounts import Account
from pykafka_broker.quotas.client_quotas import ClientQuotas


def _sasl(listener: Listener) -> Sasl | None:
    factory = listener.service.new_connection
    found = factory.authentication if isinstance(factory, KafkaConnections) else None
    return found if isinstance(found, Sasl) else None


def _successes(listener: Listener) -> int:
    sasl = _sasl(listener)
    return listener.handshakes if sasl is None else sasl.logins


def _failures(listener: Listener) -> int:
    sasl = _sasl(listener)
    return listener.failed_handshakes + (0 if sasl is None else sasl.failed_logins)


def _again(listener: Listener) -> int:
    sasl = _sasl(listener)
    return 0 if sasl is None else sasl.renewals


def _failed_again(listener: Listener) -> int:
    sasl = _sasl(listener)
    return 0 if sasl is None else sasl.failed_renewals


def _logins(name: str, meaning: str, value: Callable[[Listener], int]) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        for listener in list(scrape.node.listeners.listeners.values()):
            if isinstance(listener.service.new_connection, KafkaConnections):
                yield labelled(listener=listener.name, networkProcessor=0), value(listener)

    return Family(
        f"kafka_server_socket_server_metrics_{name.replace('-', '_')}",
        "counter",
        "listener networkProcessor",
        meaning,
        f"kafka.server:type=socket-server-metrics,listener=*,networkProcessor=*, {name}",
        read,
    )


def _certificates(scrape: Scrape) -> Iterable[Sample]:
    for listener in list(scrape.node.listeners.listeners.values()):
        transport = listener.service.transport
        ends_s = transport.not_after_s() if isinstance(transport, Tls) else None
        if ends_s is not None:
            yield labelled(listener=listener.name), ends_s


def _decided(attribute: str, meaning: str) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        if scrape.node.decisions is not None:
            yield "", getattr(scrape.node.decisions, attribute)

    return Family(
        f"kafka_server_authorizer_metrics_authorization_{attribute}_total", "counter", "", meaning, "", read
    )


def _acls(scrape: Scrape) -> Iterable[Sample]:
    if scrape.node.decisions is not None:
        yield "", len(scrape.node.metadata.image.acls)


#: Kafka's names of the quotas.
_QUOTAS = {
    Quota.PRODUCE: "Produce",
    Quota.FETCH: "Fetch",
    Quota.REQUEST: "Request",
    Quota.CONTROLLER_MUTATION: "ControllerMutation",
}


def _quota(
    quota: Quota,
    attribute: str,
    meaning: str,
    value: Callable[[ClientQuotas, Quota], list[tuple[Account, float]]] = ClientQuotas.used,
) -> Family:
    def read(scrape: Scrape) -> Iterable[Sample]:
        quotas = scrape.node.quotas
        if isinstance(quotas, ClientQuotas):
            for (user, client_id), found in value(quotas, quota):
                yield labelled(user=user, client_id=client_id), found

    return Family(
        f"kafka_server_{_QUOTAS[quota].lower()}_{attribute.replace('-', '_')}",
        "gauge",
        "user client_id",
        meaning,
        f"kafka.server:type={_QUOTAS[quota]},user=*,client-id=*, {attribute}",
        read,
    )


def _throttle_time(quota: Quota) -> Family:
    return _quota(
        quota,
        "throttle-time",
        f"Milliseconds of a throttle by `{quota.value}`, on average over the quota's window; 0 without one.",
        ClientQuotas.waits_ms,
    )


FAMILIES = (
    _logins("successful-authentication-total", "Logins, and handshakes of TLS without SASL.", _successes),
    _logins("failed-authentication-total", "Failed logins and handshakes of TLS.", _failures),
    _logins("successful-reauthentication-total", "Sessions that were renewed (KIP-368).", _again),
    _logins("failed-reauthentication-total", "Renewals of sessions that failed.", _failed_again),
    Family(
        "pykafka_broker_certificate_not_after_seconds",
        "gauge",
        "listener",
        "When the first of a listener's certificates ends, in seconds since 1970.",
        "",
        _certificates,
    ),
    _decided("allowed", "Attempts of clients that the authorizer has allowed."),
    _decided("denied", "Attempts that it has denied."),
    Family(
        "kafka_server_authorizer_metrics_acls_total_count",
        "gauge",
        "",
        "ACLs.",
        "kafka.server:type=plugins,config=authorizer.class.name,class=StandardAuthorizer,role=*, "
        "acls-total-count",
        _acls,
    ),
    _quota(
        Quota.PRODUCE,
        "byte-rate",
        "Produce requests of a user and client id, in bytes a second, while any client has such a quota.",
    ),
    _quota(
        Quota.FETCH,
        "byte-rate",
        "Answers to fetches of a user and client id, in bytes a second, while any client has such a quota.",
    ),
    _quota(
        Quota.REQUEST,
        "request-time",
        "Processing time of a user and client id, in per cent of a core, while any client has such a quota.",
    ),
    _quota(
        Quota.CONTROLLER_MUTATION,
        "tokens",
        "Partitions that a user and client id may still create or delete at once; a debt is negative.",
    ),
    *map(_throttle_time, _QUOTAS),
)
