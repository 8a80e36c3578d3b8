"""SaslHandshake (API key 17): choose a SASL mechanism.

v1 wraps the tokens that follow in SaslAuthenticate requests; after v0 they come as bare frames. It never
became flexible, since old clients negotiate it wrongly (KAFKA-9577).
"""

from __future__ import annotations

from pykafka_broker.protocol.schema import array, i16, message, string


@message(api_key=17, versions="0-1", listeners="broker controller")
class SaslHandshakeRequest:
    mechanism: str = string()


@message(api_key=17, versions="0-1")
class SaslHandshakeResponse:
    error_code: int = i16()
    mechanisms: list[str] = array(string())
