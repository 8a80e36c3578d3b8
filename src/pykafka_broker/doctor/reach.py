"""The answer at an address: of a Kafka broker, TLS, HTTP, something else, or none.

`probe` gets it, `about_answer` explains it. The probe sends the first request of every Kafka client,
ApiVersions, to which brokers with SASL answer too; with TLS, if that is what the client uses. TLS and HTTP
servers mostly answer that with an alert or a status line of their own; those that close the connection, or
stay silent, are asked again in their own language.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from typing import TypeVar

from pykafka_broker import __version__
from pykafka_broker.client.blocking import Tls
from pykafka_broker.client.core.frames import request_frame
from pykafka_broker.doctor.findings import Finding, ok, problem
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.frames import foreign_protocol
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.system.host_text import is_loopback
from pykafka_broker.system.named_tuple import NamedTuple

Address = tuple[str, int]
Asked = TypeVar("Asked")
Told = TypeVar("Told")

#: ApiVersions at the version whose request is the simplest; every broker knows it.
_API_VERSIONS_VERSION = 0
_CORRELATION_ID = 0x70796B62
#: The key of Metadata, which controllers do not serve to clients.
METADATA = 3
_HTTP_REQUEST = b"GET / HTTP/1.0\r\n\r\n"
#: A peer that is silent for this long is asked in other protocols before it is given its full time.
SILENCE_S = 1.0
#: The most threads, each of which waits for an answer.
MOST_AT_ONCE = 16
#: The most bytes of a greeting that are quoted.
_GREETING_BYTES = 32


class Kind(Enum):
    """The kind of answer at an address."""

    KAFKA = "kafka"
    TLS = "tls"
    #: To a client that uses TLS:
    PLAIN_TEXT = "plain text"
    UNTRUSTED = "untrusted"
    NO_AGREEMENT = "no agreement"
    HTTP = "http"
    OTHER = "other"
    CLOSES = "closes"
    SILENT = "silent"
    UNKNOWN_HOST = "unknown host"
    REFUSED = "refused"
    TIMED_OUT = "timed out"
    UNREACHABLE = "unreachable"


#: The protocols that the first bytes of an answer may show.
FOREIGN = {"TLS": Kind.TLS, "HTTP": Kind.HTTP}
_NOBODY = frozenset({Kind.UNKNOWN_HOST, Kind.REFUSED, Kind.TIMED_OUT, Kind.UNREACHABLE})


class Answer(NamedTuple):
    """The answer at an address, with the system's words for an error, or the start of a greeting."""

    kind: Kind
    detail: str = ""

    @property
    def is_from_a_listener(self) -> bool:
        """Whether a process accepted the connection, whatever it speaks."""
        return self.kind not in _NOBODY


class StartingBroker(NamedTuple):
    """A process of this machine that is to serve an address and does not yet (`starting.py`).

    `process` describes it. `controller` is its address for administration, "" where it is no controller.
    """

    process: str
    controller: str = ""


def shown(address: Address) -> str:
    """An address as one writes it."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def probe(address: Address, timeout_s: float, tls: Tls | None = None) -> Answer:
    """Connect, and see who answers; with `tls`, as a client that uses TLS."""
    try:
        if tls is not None:
            return _asked_in_tls(address, timeout_s, tls)
        answer = _asked_in_kafka(address, timeout_s, min(SILENCE_S, timeout_s))
        if answer.kind in (Kind.OTHER, Kind.CLOSES, Kind.SILENT):
            answer = _asked_otherwise(address, min(SILENCE_S, timeout_s)) or answer
        if answer.kind is Kind.SILENT:
            # It may be a broker that is busy.
            answer = _asked_in_kafka(address, timeout_s, timeout_s)
    except socket.gaierror as error:
        return Answer(Kind.UNKNOWN_HOST, error.strerror or str(error))
    except UnicodeError:
        return Answer(Kind.UNKNOWN_HOST, "it is no host name")
    except ConnectionRefusedError:
        return Answer(Kind.REFUSED)
    except TimeoutError:
        return Answer(Kind.TIMED_OUT)
    except OSError as error:
        return Answer(Kind.UNREACHABLE, error.strerror or str(error))
    return answer


def all_at_once(ask: Callable[[Asked], Told], asked: Iterable[Asked]) -> list[Told]:
    """The results of `ask`, in the order of its arguments, each of which may take its whole time-out. At most
    `MOST_AT_ONCE` calls run at a time.

    Raises:
        Exception: one that `ask` raises.
    """
    from threading import Thread

    subjects = list(asked)
    waiting = iter(range(len(subjects)))
    told: dict[int, Told] = {}
    failed: list[Exception] = []

    def work() -> None:
        # The threads share one iterator: each takes the next subject.
        for at in waiting:
            try:
                told[at] = ask(subjects[at])
            except Exception as error:
                failed.append(error)
                return

    # Not a pool, which waits for its threads at the end: Ctrl-C must end a command at once.
    threads = [Thread(target=work, daemon=True) for _ in subjects[1:MOST_AT_ONCE]]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return [told[at] for at in range(len(subjects))]


def is_answered(address: Address, timeout_s: float) -> bool:
    """Whether a process answers there at all, even with a TLS alert or by closing the connection. Only
    Kafka's protocol is tried: a broker that hangs would later find other protocols in its log.
    """
    try:
        return _asked_in_kafka(address, timeout_s, timeout_s).kind is not Kind.SILENT
    except (OSError, UnicodeError):
        return False


def _asked_in_kafka(address: Address, timeout_s: float, patience_s: float) -> Answer:
    """Connect within the time-out, and see who answers ApiVersions within `patience_s`.

    Raises:
        OSError: no connection comes about.
    """
    with socket.create_connection(address, timeout_s) as connection:
        connection.settimeout(patience_s)
        start = _first_bytes(connection, _kafka_request())
    return _recognised(start) or Answer(Kind.SILENT if start is None else Kind.CLOSES)


def _asked_in_tls(address: Address, timeout_s: float, tls: Tls) -> Answer:
    """Connect, and see who answers ApiVersions in TLS; one that does not speak TLS is asked without.

    Raises:
        OSError: no connection comes about.
    """
    import ssl

    context = tls()
    with socket.create_connection(address, timeout_s) as connection:
        try:
            with context.wrap_socket(connection, server_hostname=address[0]) as secured:
                start = _first_bytes(secured, _kafka_request())
        except ssl.SSLCertVerificationError as error:
            return Answer(Kind.UNTRUSTED, error.verify_message)
        except ssl.SSLEOFError:
            reason = "it closes the connection"
        except ssl.SSLError as error:
            reason = (error.reason or str(error)).replace("_", " ").lower()
        except OSError:
            reason = "it does not answer the handshake"
        else:
            return _recognised(start) or Answer(Kind.SILENT if start is None else Kind.CLOSES)
    answer = probe(address, timeout_s)
    if answer.kind is Kind.KAFKA:
        return Answer(Kind.PLAIN_TEXT)
    return Answer(Kind.NO_AGREEMENT, reason) if answer.kind is Kind.TLS else answer


def _asked_otherwise(address: Address, patience_s: float) -> Answer | None:
    if _speaks_tls(address, patience_s):
        return Answer(Kind.TLS)
    return Answer(Kind.HTTP) if _speaks_http(address, patience_s) else None


def _kafka_request() -> bytes:
    request = ApiVersionsRequest(client_software_name="doctor", client_software_version=__version__)
    return request_frame(request, _API_VERSIONS_VERSION, _CORRELATION_ID, "pykafka-broker-doctor")


def _first_bytes(connection: socket.socket, request: bytes) -> bytes | None:
    """The first bytes that come back; none at all if the peer closes, None if it stays silent."""
    received = b""
    try:
        try:
            connection.sendall(request)
        except TimeoutError:
            raise
        except OSError:
            # The peer has closed the connection already, and may have said why.
            pass
        while len(received) < _GREETING_BYTES and (data := connection.recv(_GREETING_BYTES - len(received))):
            received += data
            if _recognised(received) is not None:
                break
    except TimeoutError:
        return received or None
    except ConnectionError:
        # Reset by the peer: it has closed the connection without reading all of the request.
        pass
    return received


def _recognised(start: bytes | None) -> Answer | None:
    """The answer that begins with these bytes; None if that cannot be told yet."""
    if not start:
        return None
    if foreign := foreign_protocol(start[:4]):
        return Answer(FOREIGN[foreign])
    if len(start) < 8:
        return None
    if struct.unpack_from(">i", start, 4) == (_CORRELATION_ID,):
        return Answer(Kind.KAFKA)
    greeting = start.decode("latin-1").split("\r")[0].split("\n")[0]
    return Answer(Kind.OTHER, greeting if greeting.isprintable() else start.hex(" "))


def _speaks_tls(address: Address, timeout_s: float) -> bool:
    """Whether a TLS handshake gets a TLS answer, with any certificate."""
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection(address, timeout_s) as connection,
            context.wrap_socket(connection, server_hostname=address[0]),
        ):
            return True
    except ssl.SSLError as error:
        # An alert is an answer in TLS; WRONG_VERSION_NUMBER is an answer in something else.
        return "ALERT" in (error.reason or "")
    except (OSError, ValueError):
        return False


def _speaks_http(address: Address, timeout_s: float) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(address, timeout_s) as connection:
        return (_first_bytes(connection, _HTTP_REQUEST) or b"").startswith(b"HTTP/")
    return False


# --- what it means ----------------------------------------------------------------------------------


#: How a broker refuses a user, and what to do.
_LOGIN_REMEDIES = {
    ErrorCode.SASL_AUTHENTICATION_FAILED: "Check the user and the password, and that the password is "
    "one for this mechanism (sasl.mechanism). Where users have SCRAM "
    "credentials, a super user sees them all:\n  pykafka-broker users list --user SUPER_USER",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "Give the client a sasl.mechanism that the broker offers, or have "
    "the broker offer it (sasl.enabled.mechanisms).",
    ErrorCode.ILLEGAL_SASL_STATE: "The listener asks for no user: give the client "
    "security.protocol=PLAINTEXT (with TLS, SSL) and no --user, or the port of a listener with SASL.",
}


#: By kind, the finding's message and its remedy; names in braces are filled in.
_ANSWERS: Mapping[Kind, tuple[str, str]] = {
    Kind.TLS: (
        "{where} speaks TLS{by}, and this client speaks plain text. A client without TLS settings "
        "sees its connection closed, or waits.",
        "Give the client security.protocol=SSL (or SASL_SSL) and the certificate authority, or ask "
        "for a PLAINTEXT listener of the broker, mostly another port. This command takes --ca, or "
        "--command-config.",
    ),
    Kind.PLAIN_TEXT: (
        "{where} speaks Kafka's protocol without TLS, and this client is to use TLS.",
        "Give the client security.protocol=PLAINTEXT (or SASL_PLAINTEXT) and no authority (--ca), or "
        "the port of a listener with TLS.",
    ),
    Kind.UNTRUSTED: (
        "{where} shows a certificate{by} that this client does not trust: {detail}.",
        "Give the client the authority that has signed it (--ca, ssl.truststore.location), and an "
        "address that stands in the certificate.",
    ),
    Kind.NO_AGREEMENT: (
        "{where} speaks TLS{by}, and does not agree with this client: {detail}.",
        "The broker may ask for the client's certificate (ssl.client.auth=required: "
        "ssl.keystore.location of the client), or for another version (ssl.enabled.protocols).",
    ),
    Kind.HTTP: (
        "{where} is a web server{by}: it answers in HTTP.",
        "Use the port of the broker's listener (9092 by default); this one may belong to a REST "
        "proxy, a schema registry or a web console.",
    ),
    Kind.OTHER: (
        "{where} is no Kafka broker{by}: it answers {detail!r}.",
        "Look for the broker's port in its `listeners`.",
    ),
    Kind.CLOSES: (
        "{where} accepts the connection and closes it without an answer{by}.",
        "The broker refuses this client (max.connections, a firewall or proxy in between), or what "
        "listens is no broker. Its log says which.",
    ),
    Kind.SILENT: (
        "{where} accepts the connection and does not answer{by}.",
        "The broker hangs or is overloaded, or what listens is no broker. Look at its log and its CPU time.",
    ),
    Kind.UNKNOWN_HOST: (
        "The host name {host!r} is not known here: {detail}.",
        "Check the spelling. Names of containers are known inside their Docker network only: from "
        "outside, use localhost and the published port.",
    ),
    Kind.REFUSED: (
        "No process listens at {where}.",
        "A broker prints its address in the line `Bootstrap servers:` when it has started.",
    ),
    Kind.TIMED_OUT: (
        "{where} does not answer the request for a connection.",
        "The machine is down, the address is wrong, or a firewall drops the packets: check with "
        "`nc -vz {host} {port}` from another machine, too.",
    ),
    Kind.UNREACHABLE: (
        "{where} cannot be reached: {detail}.",
        "Check the network and the address.",
    ),
}


def about_answer(
    address: Address,
    answer: Answer,
    listener: str = "",
    starting: StartingBroker | None = None,
    *,
    is_only: bool = True,
) -> Finding:
    """Explain an answer at the bootstrap address.

    Args:
        address: The bootstrap address.
        answer: The answer there.
        listener: The process that listens there on this machine, if that is known.
        starting: The broker of this machine that is to listen there and does not yet, if there is one.
        is_only: Whether there is no other bootstrap address: several are those of a cluster, which a new
            broker does not join by its address.
    """
    where, (host, port) = shown(address), address
    if answer.kind is Kind.KAFKA:
        return ok("connection", where, f"{where} speaks Kafka's protocol.")
    known = {
        "where": where,
        "host": host,
        "port": port,
        "by": f" ({listener})" if listener else "",
        "detail": answer.detail,
    }
    message, remedy = (text.format(**known) for text in _ANSWERS[answer.kind])
    if answer.kind is Kind.REFUSED and starting is not None:
        message = f"Nothing listens at {where} yet: {starting.process} is to, and is still starting."
        remedy = (
            "Start no other one. A broker serves clients once its logs are recovered and a controller leads, "
            "which takes more than half of the voters: its log says which of them do not answer."
        )
        if starting.controller:
            remedy += f"\n  pykafka-broker quorum describe --bootstrap-controller {starting.controller}"
    elif answer.kind is Kind.REFUSED and not is_only:
        remedy += " Start the broker of this address again as it was started before, or look at its log."
    elif answer.kind is Kind.REFUSED and is_loopback(host):
        remedy += f" To start one here:\n  pykafka-broker start --listen {where}"
    return problem("connection", where, message, remedy)


def about_listener(
    address: Address, apis: Collection[int] | None, refusal: Exception | None
) -> Finding | None:
    """Whether clients may use the listener that answered ApiVersions; None if nothing keeps them out.

    Args:
        address: The address that was asked.
        apis: The keys of the APIs that it serves; None if it refused before it was asked for them.
        refusal: The error of the login or of Metadata; None if neither failed.
    """
    where = shown(address)
    if apis is not None and METADATA not in apis:
        return problem(
            "connection",
            where,
            f"{where} is a listener for controllers: it serves the quorum, not clients.",
            "Use a listener of the broker: one of `listeners` that is not among controller.listener.names.",
        )
    if refusal is None:
        return None
    if isinstance(refusal, ConnectionError) and "closed" in str(refusal):
        return problem(
            "connection",
            where,
            f"{where} closes the connection as soon as it is asked for metadata: it wants the client to "
            "authenticate first (SASL), or refuses it.",
            "Give the client security.protocol=SASL_PLAINTEXT (with TLS, SASL_SSL), sasl.mechanism and its "
            "credentials; the log of the broker has the reason. This command takes --user, or "
            "--command-config.",
        )
    if isinstance(refusal, KafkaError) and refusal.code in _LOGIN_REMEDIES:
        return problem(
            "connection",
            where,
            f"{where} does not let this user in: {(refusal.message or refusal.code.name).rstrip('.')}.",
            _LOGIN_REMEDIES[refusal.code],
        )
    return problem(
        "connection",
        where,
        f"{where} does not give its metadata: {refusal}.",
        "Look at the log of the broker and at its CPU time.",
    )
