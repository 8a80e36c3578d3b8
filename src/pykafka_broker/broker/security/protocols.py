"""The security protocols of a node: each makes the transport and the authentication of a listener.

Further protocols go here. A node makes the table once, and calls a row for each listener, so a row can make
parts for that listener alone: SSL an `ssl.SSLContext` of its `ssl.*` keys, SASL the mechanisms that its
`sasl.enabled.mechanisms` allows. Credentials are in the metadata, which is read after the listeners are
bound: a row that needs credentials gets a closure over the metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.config import BrokerConfig
from pykafka_broker.network.endpoint import ListenerEndpoint
from pykafka_broker.network.identity import Anonymous, Authentication
from pykafka_broker.network.shared import Shared
from pykafka_broker.network.transports import Plaintext, Tls, Transport
from pykafka_broker.system.named_tuple import NamedTuple


class ListenerSecurity(NamedTuple):
    """The transport of a listener, and the authentication of its peers."""

    transport: Transport
    authentication: Authentication


#: Makes the security of one listener.
SecurityProtocol = Callable[[ListenerEndpoint], ListenerSecurity]


def security_protocols(
    shared: Shared, config: Callable[[], BrokerConfig], image: Callable[[], ClusterImage]
) -> Mapping[str, SecurityProtocol]:
    """All offered protocols, by their names in `listener.security.protocol.map`.

    `config` is the configuration in force, `image` the newest committed metadata.
    """

    def sasl_plaintext(endpoint: ListenerEndpoint) -> ListenerSecurity:
        # Imported late: most nodes have no such listener.
        from pykafka_broker.broker.security.sasl_offer import sasl_of_listener

        return ListenerSecurity(Plaintext(), sasl_of_listener(config(), endpoint.name, shared, image))

    def sasl_ssl(endpoint: ListenerEndpoint) -> ListenerSecurity:
        return sasl_plaintext(endpoint)._replace(transport=tls(endpoint))

    def ssl(endpoint: ListenerEndpoint) -> ListenerSecurity:
        from pykafka_broker.config.tls_listeners import principal_mapping
        from pykafka_broker.network.certificate_authentication import ByCertificate

        return ListenerSecurity(
            tls(endpoint), ByCertificate(principal_mapping(config(), endpoint.name), shared.faults)
        )

    def tls(endpoint: ListenerEndpoint) -> Transport:
        from pykafka_broker.broker.security.tls_offer import ListenerContext
        from pykafka_broker.tls.contexts import server_context
        from pykafka_broker.tls.trial import node_context

        connects_nodes = endpoint.name == config().inter_broker_listener_name and not config().standalone
        make = node_context if connects_nodes else server_context
        context = ListenerContext(config, endpoint.name, endpoint.security_protocol, make)
        return Tls(context, context.not_after_s)

    return {
        "PLAINTEXT": lambda endpoint: ListenerSecurity(Plaintext(), Anonymous()),
        "SASL_PLAINTEXT": sasl_plaintext,
        "SASL_SSL": sasl_ssl,
        "SSL": ssl,
    }


def security_of(endpoint: ListenerEndpoint, protocols: Mapping[str, SecurityProtocol]) -> ListenerSecurity:
    """The security of a listener.

    Raises:
        ValueError: its protocol is not offered.
    """
    protocol = protocols.get(endpoint.security_protocol)
    if protocol is None:
        raise ValueError(
            f"Listener {endpoint.name}: security protocol {endpoint.security_protocol} is not offered, "
            f"only {' and '.join(protocols)}"
        )
    return protocol(endpoint)
