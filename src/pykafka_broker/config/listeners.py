"""Listeners: their addresses, advertised addresses and security protocols."""

from __future__ import annotations

from typing import Final

from pykafka_broker.config.keys import ConfigError
from pykafka_broker.config.typed_values import TypedValues
from pykafka_broker.system.named_tuple import NamedTuple

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
#: The key that gives each listener its security protocol.
PROTOCOL_MAP: Final = "listener.security.protocol.map"


class Endpoint(NamedTuple):
    """One `NAME://host:port` entry. An empty host means every interface; port 0 any free port."""

    name: str
    host: str
    port: int
    security_protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_map(name: str, text: str) -> dict[str, str]:
    """A `key:value,key:value` setting; the last colon of an entry separates.

    Raises:
        ConfigError: an entry has no colon.
    """
    result = {}
    for entry in text.split(","):
        if not entry.strip():
            continue
        key, colon, value = entry.rpartition(":")
        if not colon:
            raise ConfigError(f"Error parsing configuration property '{name}': no ':' in {entry.strip()}")
        result[key.strip()] = value.strip()
    return result


def security_protocol_map(values: TypedValues, *, is_explicit: bool) -> dict[str, str]:
    """Listener name -> security protocol.

    Without an explicit map, controller listeners are PLAINTEXT unless a listener is named after TLS or SASL.
    """
    result = {}
    for listener, protocol in parse_map(PROTOCOL_MAP, values[PROTOCOL_MAP]).items():
        if protocol not in SECURITY_PROTOCOLS:
            raise ConfigError(f"Invalid security protocol `{protocol}` defined in {PROTOCOL_MAP}")
        result[listener.upper()] = protocol
    if not is_explicit:
        controllers = values["controller.listener.names"]
        used = {*controllers, *(entry.partition(":")[0] for entry in values["listeners"])}
        if not used & set(SECURITY_PROTOCOLS[1:]):
            for listener in controllers:
                result.setdefault(listener.upper(), "PLAINTEXT")
    return result


def parse_endpoints(
    entries: tuple[str, ...], protocols: dict[str, str], *, ports_must_differ: bool
) -> tuple[Endpoint, ...]:
    """The endpoints of a listener setting.

    Raises:
        ConfigError: an entry cannot be read, has no security protocol, or clashes with another.
    """
    shown = f"[{', '.join(entries)}]"
    try:
        endpoints = tuple(_endpoint(entry, protocols) for entry in entries)
        if len({endpoint.name for endpoint in endpoints}) != len(endpoints):
            raise ConfigError(f"Each listener must have a different name, listeners: {shown}")
        if ports_must_differ:
            _check_ports(endpoints, shown)
    except ConfigError as error:
        refusal = ConfigError(f"Error creating broker listeners from '{shown}': {error}")
        for remedy in getattr(error, "__notes__", ()):
            refusal.add_note(remedy)
        raise refusal from None
    return endpoints


def parse_http_listeners(key: str, entries: tuple[str, ...]) -> tuple[Endpoint, ...]:
    """The endpoints of a key like `metrics.listeners`, named by their URLs as no other listener is.

    Raises:
        ConfigError: an entry is no URL of HTTP without a path.
    """
    http = {"HTTP": "PLAINTEXT"}
    try:
        endpoints = [
            (entry.strip().rstrip("/"), _endpoint(entry.strip().rstrip("/"), http)) for entry in entries
        ]
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}: write http://host:port") from None
    return tuple(endpoint._replace(name=url) for url, endpoint in endpoints)


def _endpoint(entry: str, protocols: dict[str, str]) -> Endpoint:
    name, separator, address = entry.partition("://")
    host, colon, port = address.rpartition(":")
    if not (name and separator and colon and port.removeprefix("-").isdecimal()):
        raise ConfigError(f"Unable to parse {entry} to a broker endpoint")
    listener = name.upper()
    if listener not in protocols:
        # The text is exactly Apache Kafka's; the remedy in the note is shown when the start fails.
        refusal = ConfigError(f"No security protocol defined for listener {listener}")
        refusal.add_note(f"{PROTOCOL_MAP} has to name it, as in {listener}:PLAINTEXT")
        raise refusal
    number = int(port)
    if not 0 <= number <= 65_535:
        raise ConfigError(f"Port {number} of listener {listener} is not between 0 and 65535")
    if not _is_host(host):
        raise ConfigError(f"{host!r} of listener {listener} is no host name")
    return Endpoint(listener, host.strip("[]"), number, protocols[listener])


def _is_host(host: str) -> bool:
    """Whether the name can be looked up at all; an empty host means every interface."""
    try:
        # Only names in other alphabets need the codec, which takes time to load.
        encoded = host.encode("ascii" if host.isascii() else "idna")
    except UnicodeError:
        return False
    return not host or all(0 < len(label) < 64 for label in encoded.removesuffix(b".").split(b"."))


def _check_ports(endpoints: tuple[Endpoint, ...], shown: str) -> None:
    """One port serves one listener, or one IPv4 and one IPv6 address."""
    by_port: dict[int, list[Endpoint]] = {}
    for endpoint in endpoints:
        if endpoint.port:
            by_port.setdefault(endpoint.port, []).append(endpoint)
    for port, sharers in by_port.items():
        if len(sharers) == 1:
            continue
        families = [_family(endpoint.host) for endpoint in sharers]
        if None in families:
            raise ConfigError(f"Each listener must have a different port, listeners: {shown}")
        if len(sharers) > 2:
            raise ConfigError(
                "Each listener must have a different port unless exactly one listener has an IPv4 address "
                f"and the other IPv6 address, listeners: {shown}, port: {port}"
            )
        if set(families) != {4, 6}:
            raise ConfigError(
                "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, "
                f"listeners: {shown}, port: {port}"
            )


def _family(host: str) -> int | None:
    """4 or 6 for an address, None for a name."""
    if ":" in host:
        return 6
    parts = host.split(".")
    return 4 if len(parts) == 4 and all(part.isdecimal() and int(part) < 256 for part in parts) else None
