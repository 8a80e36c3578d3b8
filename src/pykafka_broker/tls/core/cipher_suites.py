"""The names of cipher suites: those of Java, which are IANA's, and those of OpenSSL.

TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256   ECDHE-RSA-AES128-GCM-SHA256
TLS_RSA_WITH_AES_256_CBC_SHA            AES256-SHA
TLS_AES_128_GCM_SHA256                  the same: suites of TLS 1.3 name no key exchange
"""

from __future__ import annotations

from collections.abc import Sequence

#: All that OpenSSL offers with TLS 1.3 unless it is configured otherwise.
TLS_1_3_SUITES = frozenset(
    {"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"}
)


def openssl_name(suite: str) -> str:
    """OpenSSL's name of a suite of TLS 1.2 or older, whether OpenSSL has that suite or not.

    Raises:
        ValueError: this is no such name.
    """
    prefix, _, rest = suite.partition("_")
    exchange, separator, cipher = rest.partition("_WITH_")
    if prefix not in ("TLS", "SSL") or not separator:
        raise ValueError(f"Unsupported CipherSuite: {suite}")
    parts = cipher.split("_")
    if parts[0] == "AES" and len(parts) > 2:
        # OpenSSL's name has no mode for CBC.
        mode = [] if parts[2] == "CBC" else [parts[2]]
        parts = [parts[0] + parts[1], *mode, *parts[3:]]
    elif parts[:2] == ["CHACHA20", "POLY1305"]:
        parts = parts[:2]
    if parts[-2:] == ["CCM", "8"]:
        parts[-2:] = ["CCM8"]
    return "-".join([*([] if exchange == "RSA" else exchange.split("_")), *parts])


def split_suites(suites: Sequence[str]) -> tuple[list[str], list[str]]:
    """Suites of TLS 1.3 in Java's names, and older ones in OpenSSL's.

    Raises:
        ValueError: one is no name of a suite.
    """
    newest = [suite for suite in suites if suite in TLS_1_3_SUITES]
    return newest, [openssl_name(suite) for suite in suites if suite not in TLS_1_3_SUITES]
