"""Contexts: handshakes between a server and a client that `ssl.*` keys describe."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_der_x509_certificate

from pykafka_broker.tls import newest_suites
from pykafka_broker.tls.contexts import TlsConfigError, TlsSettings, client_context, server_context
from pykafka_broker.tls.core.cipher_suites import TLS_1_3_SUITES
from pykafka_broker.tls.core.distinguished_names import subject_of
from pykafka_broker.tls.core.jks import read_jks
from pykafka_broker.tls.stores import StoreSettings
from tests.tls.test_jks import KEY_STORE

AUTHORITY = trustme.CA()
SERVER = AUTHORITY.issue_cert("localhost")
CLIENT = AUTHORITY.issue_cert("alice@example.org", common_name="alice")


def key_store(issued: trustme.LeafCert, password: str | None = None) -> StoreSettings:
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return StoreSettings(
        "PEM",
        key_password=password,
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode(),
        certificates="".join(pem.bytes().decode() for pem in issued.cert_chain_pems),
    )


def trusting(authority: trustme.CA = AUTHORITY) -> StoreSettings:
    return StoreSettings("PEM", certificates=authority.cert_pem.bytes().decode())


def server(**others: Any) -> TlsSettings:
    return replace(TlsSettings(key_store(SERVER), trusting()), **others)


def client(**others: Any) -> TlsSettings:
    return replace(TlsSettings(trust_store=trusting()), **others)


def handshake(
    of_server: TlsSettings, of_client: TlsSettings, host: str = "localhost"
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both ends, connected in memory; what the handshake raises is raised here."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    serving = server_context(of_server).wrap_bio(to_server, to_client, server_side=True)
    asking = client_context(of_client).wrap_bio(to_client, to_server, server_hostname=host)
    steps: list[Callable[[], None]] = [asking.do_handshake, serving.do_handshake]
    while steps:
        for step in tuple(steps):
            try:
                step()
                steps.remove(step)
            except ssl.SSLWantReadError:
                pass
    serving.write(b"x")
    # In TLS 1.3 a client learns with its first bytes that the server refuses its certificate.
    assert asking.read() == b"x"
    return serving, asking


def test_a_handshake_has_the_newest_version_and_the_servers_name_is_compared() -> None:
    serving, asking = handshake(server(), client())
    assert (serving.version(), asking.version()) == ("TLSv1.3", "TLSv1.3")
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(server(), client(), host="elsewhere")


def test_without_identification_any_name_will_do_but_not_any_authority() -> None:
    careless = client(endpoint_identification="")
    handshake(server(), careless, host="elsewhere")
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate verify failed"):
        handshake(server(), replace(careless, trust_store=trusting(trustme.CA())))


def test_the_certificate_of_a_client() -> None:
    with_key = client(key_store=key_store(CLIENT))
    serving, _ = handshake(server(client_auth="required"), with_key)
    certificate = serving.getpeercert(binary_form=True)
    assert certificate is not None
    assert subject_of(certificate).startswith("CN=alice,")
    for mode, client_settings in (("none", with_key), ("requested", client())):
        serving, _ = handshake(server(client_auth=mode), client_settings)
        assert serving.getpeercert(binary_form=True) is None


def test_a_client_without_or_with_a_foreign_certificate_is_refused() -> None:
    with pytest.raises(ssl.SSLError, match="peer did not return a certificate"):
        handshake(server(client_auth="required"), client())
    foreign = client(key_store=key_store(trustme.CA().issue_cert("x@example.org")))
    for mode in ("requested", "required"):
        with pytest.raises(ssl.SSLCertVerificationError, match="verify failed"):
            handshake(server(client_auth=mode), foreign)


def test_a_certificate_between_is_an_anchor_as_in_java() -> None:
    middle = AUTHORITY.create_child_ca()
    settings = server(key_store=key_store(middle.issue_cert("localhost")))
    handshake(settings, client(trust_store=trusting(middle)))


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_store_of_keys_trusts_their_own_certificates_as_in_java(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "server"
    if kind == "JKS":
        path.write_bytes(KEY_STORE)
        store = StoreSettings(kind, str(path), "store-secret", "key-secret")
    else:
        path.write_bytes(self_signed_pkcs12(b"store-secret"))
        store = StoreSettings(kind, str(path), "store-secret")
    both = {"key_store": store, "trust_store": replace(store, key_password=None)}
    ends = handshake(
        server(client_auth="required", **both), client(endpoint_identification="", **both), host="broker"
    )
    assert [subject_of(end.getpeercert(True) or b"") for end in ends] == ["CN=broker,O=Org"] * 2
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate verify failed"):
        handshake(server(), client(trust_store=both["trust_store"]))


def self_signed_pkcs12(password: bytes) -> bytes:
    [entry] = read_jks(KEY_STORE, "store-secret").keys
    key = load_der_private_key(entry.key("key-secret"), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    own = load_der_x509_certificate(entry.certificates[0])
    return pkcs12.serialize_key_and_certificates(b"server", key, own, None, BestAvailableEncryption(password))


def test_the_password_of_a_key() -> None:
    handshake(server(key_store=key_store(SERVER, "key-secret")), client())
    wrong = replace(key_store(SERVER, "key-secret"), key_password="another-secret")
    with pytest.raises(TlsConfigError, match=r"ssl\.key\.password right") as raised:
        server_context(server(key_store=wrong))
    assert "secret" not in str(raised.value)


def test_a_key_that_is_not_of_its_certificate() -> None:
    mixed = replace(key_store(SERVER), key=key_store(CLIENT).key)
    with pytest.raises(TlsConfigError, match="key values mismatch"):
        server_context(server(key_store=mixed))


@pytest.mark.parametrize(
    ("settings", "version", "suite"),
    [
        ({"enabled_protocols": ("TLSv1.2",)}, "TLSv1.2", None),
        ({"enabled_protocols": ("TLSv1.1", "TLSv1.2")}, "TLSv1.2", None),
        ({"enabled_protocols": ("TLSv1.3",)}, "TLSv1.3", None),
        ({"enabled_protocols": ()}, "TLSv1.3", None),
        (
            {"cipher_suites": ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",)},
            "TLSv1.2",
            "ECDHE-ECDSA-AES256-GCM-SHA384",
        ),
        (
            {"cipher_suites": ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",)},
            "TLSv1.2",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
        ),
        (
            {"cipher_suites": ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",)},
            "TLSv1.2",
            "ECDHE-ECDSA-AES128-SHA256",
        ),
        ({"cipher_suites": ("TLS_AES_128_GCM_SHA256",)}, "TLSv1.3", "TLS_AES_128_GCM_SHA256"),
        (
            {"cipher_suites": ("TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_256_GCM_SHA384")},
            "TLSv1.3",
            "TLS_CHACHA20_POLY1305_SHA256",
        ),
        (
            {
                "cipher_suites": ("TLS_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
                "enabled_protocols": ("TLSv1.2",),
            },
            "TLSv1.2",
            "ECDHE-ECDSA-AES256-GCM-SHA384",
        ),
    ],
)
def test_versions_and_suites(settings: dict[str, object], version: str, suite: str | None) -> None:
    serving, _ = handshake(server(**settings), client())
    assert serving.version() == version
    chosen = serving.cipher()
    assert chosen is not None
    assert suite is None or chosen[0] == suite


def test_a_client_that_has_none_of_the_chosen_suites_is_refused() -> None:
    chosen = {"cipher_suites": ("TLS_AES_128_GCM_SHA256",)}
    with pytest.raises(ssl.SSLError, match=r"no shared cipher|handshake failure"):
        handshake(server(**chosen), client(cipher_suites=("TLS_AES_256_GCM_SHA384",)))
    _, asking = handshake(server(), client(**chosen))
    assert asking.cipher() == ("TLS_AES_128_GCM_SHA256", "TLSv1.3", 128)


def test_a_python_that_cannot_choose_takes_all_of_the_newest_suites_or_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(newest_suites, "_KNOWN_RELEASES", ((2, 0), (2, 8)))
    newest_suites._library.cache_clear()
    with pytest.raises(TlsConfigError, match="names some suites of TLS"):
        server_context(server(cipher_suites=("TLS_AES_128_GCM_SHA256",)))
    handshake(server(cipher_suites=tuple(sorted(TLS_1_3_SUITES))), client())


def test_a_suite_that_openssl_does_not_have_is_refused() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with pytest.raises(ValueError, match="does not have all of TLS_SM4_NONE"):
        newest_suites.choose_suites(context, ["TLS_SM4_NONE"])


def test_a_client_offers_no_newer_version_than_its_protocol() -> None:
    _, asking = handshake(server(), client(protocol="TLSv1.2", enabled_protocols=()))
    assert asking.version() == "TLSv1.2"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"enabled_protocols": ("TLSv1", "TLSv1.1")}, "No version of TLS is left"),
        ({"enabled_protocols": ("TLSv9",)}, "TLSv9 is unknown"),
        ({"cipher_suites": ("AES128-SHA",)}, "Unsupported CipherSuite: AES128-SHA"),
        ({"cipher_suites": ("TLS_RSA_WITH_NOTHING", "TLS_RSA_WITH_AES_128_CBC_SHA")}, "No cipher can be"),
        (
            {"cipher_suites": ("TLS_RSA_WITH_AES_128_CBC_SHA",), "enabled_protocols": ("TLSv1.3",)},
            "No version of TLS is left",
        ),
        ({"client_auth": "maybe"}, "is not one of none, requested, required"),
        ({"key_store": StoreSettings()}, "TLS needs a key"),
    ],
)
def test_what_a_server_cannot_be(settings: dict[str, object], words: str) -> None:
    with pytest.raises(TlsConfigError, match=words):
        server_context(server(**settings))


def test_what_a_client_cannot_be() -> None:
    with pytest.raises(TlsConfigError, match="neither https nor empty"):
        client_context(client(endpoint_identification="ldaps"))


def test_settings_show_no_secret() -> None:
    assert "BEGIN" not in repr(server(key_store=key_store(SERVER, "key-secret")))
    assert "key-secret" not in repr(server(key_store=key_store(SERVER, "key-secret")))
