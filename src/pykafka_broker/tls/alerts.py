"""The alert that tells a peer why its handshake has failed.

Event loops drop the alert and close the connection. A Kafka client takes that for a broker that is stopping,
and retries forever; from an alert it learns that its certificate is refused, and gives up.

Source: SslTransportLayer of Apache Kafka, which sends the alert before it closes the connection.
"""

from __future__ import annotations

from ssl import MemoryBIO, SSLContext, SSLError, SSLObject, SSLWantReadError
from typing import Any


class AlertingContext(SSLContext):
    """Adds the alert to the error of a failed handshake (`alert_of`)."""

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
    """The bytes to send to a peer whose handshake failed with `error`, before the connection is closed."""
    alert: bytes = getattr(error, "alert", b"")
    return alert
