r"""SASL/OAUTHBEARER as a client runs it (RFC 7628): its bearer token, and extensions, in one message.

    n,,\x01auth=Bearer <token>\x01<extension>=<value>\x01\x01

A server that refuses the token answers with JSON. The client answers `ACKNOWLEDGED`, and gets the error.

Source: Apache Kafka's OAuthBearerClientInitialResponse and OAuthBearerSaslClient.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

#: The answer to the JSON of a refusal.
ACKNOWLEDGED = b"\x01"
_RESERVED_NAME = "auth"
_NAME = re.compile("[A-Za-z]+")
_VALUE = re.compile("[\x21-\x7e \t\r\n]+")


def first_message(token: str, extensions: Mapping[str, str]) -> bytes:
    """The only message of an exchange that succeeds."""
    pairs = "".join(f"{name}={value}\x01" for name, value in extensions.items())
    return f"n,,\x01auth=Bearer {token}\x01{pairs}\x01".encode()


def check_extensions(extensions: Mapping[str, str]) -> None:
    """Raise ValueError if a message cannot hold them."""
    for name, value in extensions.items():
        if name == _RESERVED_NAME or _NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} cannot be the name of an extension of OAUTHBEARER")
        if _VALUE.fullmatch(value) is None:
            raise ValueError(f"The extension {name} of OAUTHBEARER has a value that cannot be sent")
