"""Key stores and trust stores of Java, on a listener of controllers that asks clients for certificates.

The node itself is one of its clients, with the certificate of the same key store.

The files in `stores/` hold the certificates of one authority for a node and for a client, and that of another
authority for a client. `Authority` (`pykafka_broker.tls`) made them, valid for a hundred years. keytool of
OpenJDK 17 wrote the stores: `-importkeystore` with a password for the store and, in JKS, another one for the
key, and `-importcert` of the authority.
"""

from __future__ import annotations

import hashlib
import ssl
from functools import partial
from pathlib import Path

from interop.conformance.conversation import conversation
from interop.conformance.talk import E, Talk
from pykafka_broker.client.blocking import connect
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from pykafka_broker.protocol.messages.describe_cluster import DescribeClusterRequest

STORES = Path(__file__).parents[1] / "stores"


def with_stores(kind: str, ending: str, key_password: str) -> dict[str, str]:
    """A node with stores of this type, where who has no ACL may do nothing."""
    return {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
        "ssl.keystore.type": kind,
        "ssl.keystore.location": str(STORES / f"node.{ending}"),
        "ssl.keystore.password": "store-secret",
        "ssl.key.password": key_password,
        "ssl.truststore.type": kind,
        "ssl.truststore.location": str(STORES / f"trust.{ending}"),
        "ssl.truststore.password": "trust-secret",
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+)$/$1/, DEFAULT",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:127.0.0.1;User:ANONYMOUS",
    }


WITH_JKS = with_stores("JKS", "jks", "key-secret")
WITH_PKCS12 = with_stores("PKCS12", "p12", "store-secret")


def context(certificate: str | None, newest: ssl.TLSVersion) -> ssl.SSLContext:
    """Of a client with this certificate, that trusts the authority."""
    made = ssl.create_default_context(cafile=STORES / "ca.pem")
    made.maximum_version = newest
    if certificate is not None:
        made.load_cert_chain(STORES / certificate)
    return made


@conversation(settings=WITH_JKS)
def stores_of_the_type_jks(talk: Talk) -> None:
    certificates_are_shown_and_asked_for(talk)


@conversation(settings=WITH_PKCS12)
def stores_of_the_type_pkcs12(talk: Talk) -> None:
    certificates_are_shown_and_asked_for(talk)


def certificates_are_shown_and_asked_for(talk: Talk) -> None:
    for newest in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        client = talk.controllers(tls=partial(context, "client.pem", newest))
        shown = client.wire.socket
        assert isinstance(shown, ssl.SSLSocket)
        talk.note("the protocol", str(shown.version()))
        talk.note("the certificate of the node", hashlib.sha256(shown.getpeercert(True) or b"").hexdigest())
        asked = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=2)
        client.ask(asked, E.CLUSTER_AUTHORIZATION_FAILED)
    assert talk.side.controller_address is not None
    address = parse_address(talk.side.controller_address)
    for certificate in ("foreign.pem", None):
        # In TLS 1.3 the handshake of the client ends before that of the node.
        tls = partial(context, certificate, ssl.TLSVersion.TLSv1_2)
        try:
            connect(address, tls=tls).close()
            said = "enters"
        except ConnectionError:
            # By another alert from Java than from OpenSSL.
            said = "is refused in the handshake"
        talk.note(f"a client with {certificate or 'no certificate'}", said)
