"""The processor time that TLS by itself takes on this machine: OpenSSL in Python, no socket, no broker.

What a broker moves with TLS cannot cost less than what it moves without, and this.
"""

from __future__ import annotations

import functools
import ssl
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, cast

from pykafka_broker.tls.authority import Authority

#: As much is encrypted or decrypted at once as an event loop reads and writes at once.
PIECE_BYTES = 256 * 1024
PIECES = 2_000
GB = 1_000_000_000


class Cipher(NamedTuple):
    """The cipher that both sides settle on, and its costs in seconds per GB."""

    name: str
    encrypt: float
    decrypt: float


@functools.cache
def cipher() -> Cipher:
    client, server, wires = _sides()
    to_server, to_client = wires
    piece, room = bytes(PIECE_BYTES), memoryview(bytearray(PIECE_BYTES))
    encrypting = decrypting = 0.0
    for _ in range(PIECES):
        begun = time.process_time()
        client.write(piece)
        encrypting += time.process_time() - begun
        sent = to_server[0].read()
        begun = time.process_time()
        to_server[1].write(sent)
        filled = 0
        while filled < PIECE_BYTES:
            # Into a buffer it answers the number of bytes, which its stub does not say.
            filled += cast(int, server.read(PIECE_BYTES - filled, room[filled:]))
        decrypting += time.process_time() - begun
    assert not to_client[0].pending
    chosen = server.cipher()
    assert chosen is not None
    moved_gb = PIECES * PIECE_BYTES / GB
    return Cipher(chosen[0], encrypting / moved_gb, decrypting / moved_gb)


Wire = tuple[ssl.MemoryBIO, ssl.MemoryBIO]


def _sides() -> tuple[ssl.SSLObject, ssl.SSLObject, tuple[Wire, Wire]]:
    """A client and a server whose handshake is over; what one writes is carried by hand, from the first of a
    wire to the second: to the server, and to the client.
    """
    authority = Authority.new(datetime.now(UTC), days=1)
    issued = authority.for_server(["localhost"])
    trusting = ssl.create_default_context(cadata=authority.own.certificate_pem.decode())
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.pem"
        path.write_bytes(issued.key_pem + issued.certificate_pem)
        serving.load_cert_chain(path)
    to_server, to_client = ((ssl.MemoryBIO(), ssl.MemoryBIO()) for _ in range(2))
    client = trusting.wrap_bio(to_client[1], to_server[0], server_hostname="localhost")
    server = serving.wrap_bio(to_server[1], to_client[0], server_side=True)
    over: set[ssl.SSLObject] = set()
    while len(over) < 2:
        for side in (client, server):
            try:
                side.do_handshake()
                over.add(side)
            except ssl.SSLWantReadError:
                continue
            finally:
                for wire in (to_server, to_client):
                    wire[1].write(wire[0].read())
    # The server's last words, which the client reads beside its first record.
    return client, server, (to_server, to_client)


def describe() -> str:
    """A line for the table."""
    found = cipher()
    return f"{found.name}: {found.encrypt:.2f} s/GB to encrypt, {found.decrypt:.2f} s/GB to decrypt"
