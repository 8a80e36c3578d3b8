"""A broker with SASL and TLS for commands, and the files with which they reach it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import trustme

from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from tests.broker.test_tls_listener import pem
from tests.cli.conftest import RunningBroker

AUTHORITY = trustme.CA()
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PROPERTIES = """\
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config={login} username="bob" password="{password}";
ssl.truststore.type=PEM
ssl.truststore.location={ca}
"""


def make_certificates(folder: Path) -> None:
    """`server.pem` of a broker on this machine, `ca.pem` that vouches for it, `another.pem` that does not."""
    (folder / "server.pem").write_text(pem(AUTHORITY.issue_cert("localhost", "127.0.0.1")))
    AUTHORITY.cert_pem.write_to_path(str(folder / "ca.pem"))
    trustme.CA().cert_pem.write_to_path(str(folder / "another.pem"))


@contextmanager
def secured_broker(folder: Path, mechanisms: str = "PLAIN", overrides: Sequence[str] = ()) -> Iterator[str]:
    """The address of a broker that asks for a user over TLS; bob is a super user, alice may do nothing."""
    settings = {
        "listeners": "CLIENTS://127.0.0.1:0,INSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SASL_SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        "sasl.enabled.mechanisms": mechanisms,
        "listener.name.clients.plain.sasl.jaas.config": (
            f'{PLAIN_LOGIN} user_alice="alice-secret" user_bob="bob-secret";'
        ),
        "listener.name.clients.scram-sha-512.sasl.jaas.config": f"{SCRAM_LOGIN};",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:bob;User:ANONYMOUS",
    }
    given = [f"{key}={value}" for key, value in settings.items()]
    with RunningBroker(folder / "data", None, [*given, *overrides]) as broker:
        yield broker.address


def config_of_bob(folder: Path, password: str = "bob-secret") -> str:
    """A file for `--command-config`."""
    # A file's name is shown, the password is not.
    file = folder / f"{password.encode().hex()}.properties"
    file.write_text(PROPERTIES.format(login=PLAIN_LOGIN, password=password, ca=folder / "ca.pem"))
    return str(file)
