"""A trial of the keys of nodes: a handshake in memory between a client and a server configuration.

The configuration of a listener between nodes has to work at both ends, as each node is server and client.

Source: SslEngineValidator of Apache Kafka's SslFactory, whose client compares no host names either.
"""

from __future__ import annotations

import ssl
from collections import deque
from dataclasses import replace

from pykafka_broker.tls.contexts import TlsConfigError, TlsSettings, client_context, server_context

#: The most turns of both ends together; TLS 1.2 with certificates of both takes three each.
MAX_TURNS = 20


def node_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context of a listener between nodes: `server_context`, tried with a client of the same keys.

    Raises:
        StoreError: a store cannot be read.
        TlsConfigError: another setting is not available, or such nodes cannot connect to each other.
    """
    context = server_context(settings)
    check_handshake(settings, settings)
    return context


def check_handshake(client: TlsSettings, server: TlsSettings) -> None:
    """Check that a client can connect to a server with these configurations.

    Raises:
        StoreError: a store cannot be read.
        TlsConfigError: the handshake fails, or another setting is not available.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    nameless = client_context(replace(client, endpoint_identification=""))
    asking = nameless.wrap_bio(to_client, to_server)
    serving = server_context(server).wrap_bio(to_server, to_client, server_side=True)
    turns = deque([asking, serving])
    for _ in range(MAX_TURNS):
        side = turns.popleft()
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            turns.append(side)
        except ssl.SSLError as error:
            reason = (error.reason or str(error)).lower().replace("_", " ")
            raise TlsConfigError(
                "A client SSLEngine created with the provided settings can't connect to a server SSLEngine "
                f"created with those settings: {reason}"
            ) from None
        if not turns:
            return
    raise TlsConfigError(f"A handshake did not end in {MAX_TURNS} turns")
