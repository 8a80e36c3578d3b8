"""The certificate of a TLS client as its authentication: the principal is made of the name in it.

A client without a certificate is anonymous; the handshake decides whether that is allowed
(`ssl.client.auth`). A client whose name no rule maps is refused, as by Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.network.identity import ANONYMOUS, Identifiable, Identity
from pykafka_broker.tls.core.distinguished_names import subject_of
from pykafka_broker.tls.core.principal_mapping import PrincipalMapping

if TYPE_CHECKING:
    from pykafka_broker.network.dispatch import Dispatch
    from pykafka_broker.network.faults import Faults
    from pykafka_broker.network.transports import TransportPeer


class ByCertificate:
    """The authentication of a listener with TLS and without SASL."""

    def __init__(self, mapping: PrincipalMapping, faults: Faults) -> None:
        self._mapping = mapping
        self._faults = faults

    def begin(self, connection: Identifiable, dispatch: Dispatch[Any], peer: TransportPeer) -> Identity:
        if peer.certificate is None:
            return Identity(ANONYMOUS, dispatch)
        try:
            name = self._mapping.name_of(subject_of(peer.certificate))
        except ValueError as error:
            what = f"its certificate names no user: {error}"
            self._faults.of_peer(connection, "certificate", what)
            connection.close_when_answered()
            return Identity(ANONYMOUS, dispatch.restricted(lambda api: None, "the peer has no name"))
        return Identity(f"User:{name}", dispatch)
