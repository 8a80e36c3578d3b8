"""The alert that tells a peer why its handshake has failed.

Event loops drop it, and close the connection. A client of Kafka takes that for a broker that is about to
stop, and tries again and again; from an alert it learns that its certificate is refused, and gives up.

Source: SslTransportLayer of Apache Kafka, which sends the alert before it closes the connection.
"""

from __future__ import annotations

from ssl import MemoryBIO, SSLContext, SSLError, SSLObject, SSLWantReadError
from typing import Any


class AlertingContext(SSLContext):
    """An error of a handshake over memory has the bytes that are to be sent to the peer (`alert_of`)."""

    def wrap_bio(self, incoming: MemoryBIO, outgoing: MemoryBIO, *args: Any, **settings: Any) -> SSLObject:
        made = super().wrap_bio(incoming, outgoing, *args, **settings)
        assert isinstance(made, _Handshaking)
        made.outgoing = outgoing
        return made


class _Handshaking(SSLObject):
    outgoing: MemoryBIO

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except SSLWantReadError:
            raise
        except SSLError as error:
            error.alert = self.outgoing.read()  # type: ignore[attr-defined]
            raise


AlertingContext.sslobject_class = _Handshaking


def alert_of(error: OSError) -> bytes:
    """What to send to a peer whose handshake failed with this error, before the connection is closed."""
    alert: bytes = getattr(error, "alert", b"")
    return alert
