"""What a console is told: the cluster, where it listens, and whether it may write."""

from __future__ import annotations

from pykafka_broker import __version__
from pykafka_broker.cli.explain.history import OwnHistory
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import SOFTWARE_NAME, ClientSecurity, Identity
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka_broker.sasl.plain import PLAIN
from pykafka_broker.system.named_tuple import NamedTuple

CONSOLE = Identity(f"{SOFTWARE_NAME}-console", __version__, kind="console")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
WILDCARDS = frozenset({"", "0.0.0.0", "::"})


class Settings(NamedTuple):
    """A console: the cluster that it shows, and what visitors may do."""

    bootstrap: str
    timeout_s: float = 10.0
    #: Of the connections to brokers; the login is the visitor's.
    security: ClientSecurity | None = None
    write: bool = False
    #: The URL of a schema registry, and a file of Protobuf descriptors, to read values with.
    registry: str | None = None
    protobuf: str | None = None
    host: str = "127.0.0.1"
    port: int = 9080
    #: The names by which browsers may call the console besides those of the loopback and `host`.
    host_names: tuple[str, ...] = ()
    #: Of the broker that serves the console.
    history: OwnHistory | None = None

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """The names that the header Host may have: no others, so that a page elsewhere cannot have its own
        name resolved to this console (DNS rebinding).
        """
        return frozenset(name.lower() for name in (*LOOPBACK, self.host, *self.host_names)) - WILDCARDS

    def connect(self, security: ClientSecurity | None = None) -> Client:
        """A client of the cluster, secured as its visitor is; without one, by what the console was told."""
        return Client(
            self.bootstrap, self.timeout_s, identity=CONSOLE._replace(security=security or self.security)
        )

    def asks_for_user(self) -> bool:
        """Whether the cluster has its clients log in. A listener without SASL refuses the handshake.

        Raises:
            KafkaError, OSError: no broker answers.
        """
        with self.connect() as client:
            answer = client.send(SaslHandshakeRequest(mechanism=PLAIN))
        return bool(answer.error_code != ErrorCode.ILLEGAL_SASL_STATE)
