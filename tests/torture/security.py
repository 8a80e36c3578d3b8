"""What secures a tortured cluster: TLS with certificates of both sides between the nodes, users with
passwords over TLS for the clients, and ACLs. Nobody but the nodes is a super user.
"""

from __future__ import annotations

from contextlib import closing
from itertools import cycle
from pathlib import Path
from secrets import randbits
from ssl import SSLContext, SSLSocket

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from pykafka_broker.client.blocking import BlockingConnection, connect
from pykafka_broker.client.core import connection as identities
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.core.authentication import Login
from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.sasl.scram_keys import RANDOM_BITS, random_text
from pykafka_broker.testing.apache.nodes import Node, Nodes, acl_count
from pykafka_broker.testing.processes import free_port
from tests.torture.certificates import HOST, NodeCertificates
from tests.torture.clients import PATIENCE_S, QUIET
from tests.torture.secured_users import (
    GRANTS,
    LOGIN_MODULE,
    MECHANISM,
    NAMES,
    OF_JAVA,
    SecuredUsers,
    bindings,
)

ITERATIONS = 4096
#: Short, so that clients log in again and again on their connections.
SESSION_MS = 5_000


class Security:
    """Of a cluster that `secure` has made of nodes."""

    def __init__(self, folder: Path, node_ids: tuple[int, ...]) -> None:
        self.certificates = NodeCertificates(folder / "certificates", node_ids)
        self.users = SecuredUsers(self.certificates.public_ca)
        self._for_nodes = {node_id: f"{HOST}:{free_port()}" for node_id in node_ids}
        #: How often the passwords have changed.
        self._changes = 0

    def secure(self, node: Node) -> None:
        """Set what a node needs before it is started for the first time."""
        node_id, certificates = node.node_id, self.certificates
        node.tls = lambda: certificates.context(node_id)
        node.format_options = (*node.format_options, *self.users.format_options())
        node.properties |= {
            "listeners": f"CLIENTS://{node.address},NODES://{self._for_nodes[node_id]},"
            f"CONTROLLER://{node.controller_address}",
            "listener.security.protocol.map": "CLIENTS:SASL_SSL,NODES:SSL,CONTROLLER:SSL",
            "inter.broker.listener.name": "NODES",
            "ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificates.shown_to_nodes(node_id)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificates.trusted_by(node_id)),
            "listener.name.clients.ssl.client.auth": "none",
            "listener.name.clients.ssl.keystore.location": str(certificates.shown_to_clients(node_id)),
            "sasl.enabled.mechanisms": MECHANISM,
            f"listener.name.clients.{MECHANISM.lower()}.sasl.jaas.config": f"{LOGIN_MODULE} required;",
            "connections.max.reauth.ms": str(SESSION_MS),
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": ";".join(f"User:CN=node-{each}" for each in self._for_nodes),
        }

    # -- what only a super user may do -----------------------------------------------------------------------

    def grant(self, nodes: Nodes) -> None:
        """Create the ACLs, and return when all nodes have them."""
        admin = self._super_user(nodes)  # which the results need until they are there
        for created in admin.create_acls(bindings()).values():
            created.result(PATIENCE_S)
        nodes.comes(
            lambda: all(self._acls_of(node) == len(GRANTS) for node in nodes), "not all nodes have the ACLs"
        )

    def change_passwords(self, nodes: Nodes) -> None:
        """Change those of all who can learn theirs, and return when all nodes know them, and no others."""
        self._changes += 1
        old = dict(self.users.passwords)
        new = {user: f"{user}-{self._changes}" for user in NAMES if user not in OF_JAVA}
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
        admin = self._super_user(nodes)
        wanted: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(user, credential, new[user].encode()) for user in new
        ]
        for changed in admin.alter_user_scram_credentials(wanted).values():
            changed.result(PATIENCE_S)
        self.users.passwords |= new

        def all_know() -> bool:
            # They change at once: a node that knows one knows all.
            return all(
                self._logs_in(node, user, new[user]) and not self._logs_in(node, user, old[user])
                for user, node in zip(new, cycle(nodes), strict=False)
            )

        nodes.comes(all_know, "the passwords are not changed everywhere")

    def _super_user(self, nodes: Nodes) -> AdminClient:
        node_id = next(iter(nodes)).node_id
        key = str(self.certificates.shown_to_nodes(node_id))
        return AdminClient(
            {
                "bootstrap.servers": ",".join(self._for_nodes.values()),
                "security.protocol": "SSL",
                "ssl.ca.location": str(self.certificates.trusted_by(node_id)),
                "ssl.certificate.location": key,
                "ssl.key.location": key,
                **QUIET,
            }
        )

    def super_user(self, node: Node) -> BlockingConnection:
        """A connection of a node's own user to its listener for nodes. Raises as `BlockingConnection`."""
        return opened(self._for_nodes[node.node_id], self.certificates.context(node.node_id))

    def _acls_of(self, node: Node) -> int:
        """How many ACLs a node has."""
        with closing(self.super_user(node)) as connection:
            return acl_count(connection)

    # -- what anybody may try ----------------------------------------------------------------------------

    def login(
        self, address: str, user: str, password: str, mechanism: str = MECHANISM, *, by_token: bool = False
    ) -> BlockingConnection:
        """A connection of a user to the listener for clients at an address; `by_token` as in `Login`.

        Raises as `BlockingConnection`.
        """
        login = Login(mechanism, user, password, lambda: random_text(randbits(RANDOM_BITS)), by_token)
        return opened(address, self.certificates.public_context(), login)

    def _logs_in(self, node: Node, user: str, password: str) -> bool:
        try:
            self.login(node.address, user, password).close()
        except KafkaError as error:
            assert error.code is ErrorCode.SASL_AUTHENTICATION_FAILED
            return False
        return True

    # -- certificates ----------------------------------------------------------------------------------------

    def replace_certificates(self, nodes: Nodes) -> None:
        """Replace them and the authority that has signed them, while all nodes run; half of a file leaves a
        node with what it has. In the end no node accepts the last certificates, or none.
        """
        certificates = self.certificates
        last = {node.node_id: self._shown(node) for node in nodes}
        retired = {node.node_id: certificates.context(node.node_id) for node in nodes}
        certificates.trust_another()
        for node in nodes:
            certificates.begin_to_write(node.node_id)
            assert self._shown(node, retired[node.node_id]) == last[node.node_id]
        certificates.show_others()
        for node in nodes:
            assert not set(self._shown(node)) & set(last[node.node_id])
        certificates.trust_no_other()
        for node in nodes:
            retired[node.node_id].load_verify_locations(str(certificates.trusted_by(node.node_id)))
            for address in (self._for_nodes[node.node_id], node.controller_address):
                assert is_accepted(address, certificates.context(node.node_id))
                assert not is_accepted(address, retired[node.node_id])
                assert not is_accepted(address, certificates.context_without(node.node_id))

    def _shown(self, node: Node, context: SSLContext | None = None) -> list[bytes]:
        """The certificates that a node shows clients, brokers and controllers."""
        found = []
        for address in (node.address, self._for_nodes[node.node_id], node.controller_address):
            tls = context or self.certificates.context(node.node_id)
            found.append(shown_at(address, tls))
        return found


def shown_at(address: str, tls: SSLContext) -> bytes:
    with connect(parse_address(address), tls=lambda: tls) as connected:
        assert isinstance(connected, SSLSocket)
        certificate = connected.getpeercert(True)
    assert certificate is not None
    return certificate


def opened(address: str, context: SSLContext, login: Login | None = None) -> BlockingConnection:
    """A connection with TLS. Raises as `BlockingConnection`."""
    security = identities.ClientSecurity(login, lambda: context)
    return BlockingConnection(parse_address(address), identity=identities.Identity(security=security))


def is_accepted(address: str, context: SSLContext) -> bool:
    """Whether a listener answers who shows this certificate."""
    try:
        opened(address, context).close()
    except OSError:
        return False
    return True
