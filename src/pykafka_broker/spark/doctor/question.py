"""The subjects of an examination. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pykafka_broker.client.blocking import Client
from pykafka_broker.doctor.brokers import Connect
from pykafka_broker.system.named_tuple import NamedTuple

SECURITY_PROTOCOL = "kafka.security.protocol"
#: The time that brokers may take to answer.
TIMEOUT_S = 30.0


class Question(NamedTuple):
    """The subjects of an examination."""

    bootstrap_servers: str
    topics: Sequence[str] = ()
    #: Options of the source, as a program gives them.
    options: Mapping[str, str] = {}
    jars: Path | None = None
    checkpoint: Path | None = None
    #: The master of the session to start; None: no session, and nothing that needs one.
    master: str | None = "local[2]"
    timeout_s: float = TIMEOUT_S
    #: Connects to brokers, to ask them without Spark.
    connect: Connect = Client

    def __repr__(self) -> str:
        """The fields without the values of options, some of which are secrets."""
        return f"Question({self.bootstrap_servers!r}, {self.topics!r}, [{', '.join(self.options)}])"

    @property
    def speaks_plain(self) -> bool:
        """Whether the listener is for clients without TLS and SASL."""
        return self.options.get(SECURITY_PROTOCOL, "PLAINTEXT").upper() == "PLAINTEXT"
