"""The voters that `--initial-controllers` names: `id@host:port:directory-id`, separated by commas.

The error texts are those of Apache Kafka 4.3.
"""

from __future__ import annotations

import re
import socket
import struct

from pykafka_broker.log.disk.checkpoints import MalformedFile, uuid_bytes
from pykafka_broker.raft.core.quorum import ReplicaKey, Voter, VoterSet


def parse_initial_controllers(text: str, listener: str) -> VoterSet:
    """The voters, reached by `listener`.

    Raises:
        ValueError: the text is malformed.
    """
    voters: dict[int, Voter] = {}
    for entry in filter(None, text.split(",")):
        voter = _voter(entry.strip(), listener)
        if voter.key.node_id in voters:
            raise ValueError(f"Node id {voter.key.node_id} was specified more than once.")
        voters[voter.key.node_id] = voter
    if not voters:
        raise ValueError("No voters given.")
    return VoterSet(dict(sorted(voters.items())))


def _voter(entry: str, listener: str) -> Voter:
    node_id, at, address = entry.partition("@")
    if not at:
        raise ValueError("No @ found in dynamic voter string.")
    if not node_id:
        raise ValueError("Invalid @ at beginning of dynamic voter string.")
    if not re.fullmatch(r"[+-]?\d+", node_id, re.ASCII):
        raise ValueError("Failed to parse node id in dynamic voter string.")
    if int(node_id) < 0:
        raise ValueError(f"Invalid negative node id {int(node_id)} in dynamic voter string.")
    if not address:
        raise ValueError("No hostname found after node id.")
    host, rest = _host(address)
    if not rest.startswith(":"):
        raise ValueError("Port section must start with a colon.")
    port, colon, directory = rest[1:].partition(":")
    if not colon:
        raise ValueError("No colon following port could be found.")
    if not re.fullmatch(r"[+-]?\d+", port, re.ASCII):
        raise ValueError("Failed to parse port in dynamic voter string.")
    if not 0 <= int(port) <= 65_535:
        raise ValueError(f"Invalid port {int(port)} in dynamic voter string.")
    try:
        directory_id = uuid_bytes(directory)
    except MalformedFile:
        raise ValueError("Failed to parse directory ID in dynamic voter string.") from None
    return Voter(ReplicaKey(int(node_id), directory_id), {listener: (written_host(host), int(port))})


def _host(address: str) -> tuple[str, str]:
    """The host, and what follows it."""
    if address.startswith("["):
        host, bracket, rest = address[1:].partition("]")
        if not bracket:
            raise ValueError("Hostname began with left bracket, but no right bracket was found.")
        return host, rest
    host, colon, rest = address.partition(":")
    if not colon:
        raise ValueError("No colon following hostname could be found.")
    return host, colon + rest


def written_host(host: str) -> str:
    """A host as Apache Kafka writes it: IPv6 addresses with all eight groups."""
    try:
        groups = struct.unpack(">8H", socket.inet_pton(socket.AF_INET6, host))
    except OSError:
        return host
    return ":".join(f"{group:x}" for group in groups)
