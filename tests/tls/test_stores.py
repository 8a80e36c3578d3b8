"""Key and trust stores: what is read, and what is said of those that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from pykafka_broker.config.properties_file import read_properties
from pykafka_broker.tls.contexts import TlsSettings, client_context, server_context
from pykafka_broker.tls.stores import StoreError, StoreSettings, read_key_store, read_trust_store

SECRET = "a-very-secret-password"


class Issued:
    """A key and its chain, of an authority in the middle."""

    def __init__(self) -> None:
        self.root = trustme.CA()
        middle = self.root.create_child_ca()
        leaf = middle.issue_cert("localhost", common_name="broker")
        key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
        assert isinstance(key, EllipticCurvePrivateKey)
        self.key = key
        pems = [*leaf.cert_chain_pems, self.root.cert_pem]
        self.chain = [x509.load_pem_x509_certificate(pem.bytes()) for pem in pems]
        self.chain_pem = "".join(pem.bytes().decode() for pem in leaf.cert_chain_pems)
        self.traditional_pem = leaf.private_key_pem.bytes().decode()

    def key_pem(self, password: str | None = None) -> str:
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    @property
    def root_der(self) -> bytes:
        return self.chain[-1].public_bytes(Encoding.DER)


@pytest.fixture(scope="module")
def issued() -> Issued:
    return Issued()


def test_nothing_is_configured() -> None:
    assert read_key_store(StoreSettings()) == ()
    assert read_trust_store(StoreSettings()) is None


def test_pem_in_the_configuration_and_in_a_file_are_the_same(issued: Issued, tmp_path: Path) -> None:
    inline = read_key_store(StoreSettings("PEM", key=issued.key_pem(), certificates=issued.chain_pem))
    path = tmp_path / "server.pem"
    path.write_text("Bag attributes\n" + issued.chain_pem + issued.key_pem())
    assert read_key_store(StoreSettings("PEM", str(path))) == inline
    assert inline[0].certificates.count(b"BEGIN CERTIFICATE") == 2


def properties_of(path: Path, **pems: str) -> dict[str, str]:
    """What a properties file says whose lines of PEM each go on with a backslash."""
    joined = {name: pem.strip().replace("\n", " \\\n") for name, pem in pems.items()}
    path.write_text("".join(f"{name}={pem}\n" for name, pem in joined.items()))
    return read_properties(path)


@pytest.mark.parametrize("password", [None, SECRET])
def test_pem_of_a_properties_file_whose_lines_are_joined(
    issued: Issued, tmp_path: Path, password: str | None
) -> None:
    root, private = issued.root.cert_pem.bytes().decode(), issued.key_pem(password)
    values = properties_of(tmp_path / "file", key=private, chain=issued.chain_pem, trusted=root)
    assert not any("\n" in text for text in values.values())
    keys = StoreSettings("PEM", key_password=password, key=values["key"], certificates=values["chain"])
    trusted = StoreSettings("PEM", certificates=values["trusted"])
    (key,) = read_key_store(keys)
    (in_lines,) = read_key_store(pem(issued, key=private, key_password=password))
    assert key == in_lines
    assert read_trust_store(trusted) == [issued.root_der]
    # OpenSSL takes them, on a listener as on a client.
    server_context(TlsSettings(keys, trusted, client_auth="required"))
    client_context(TlsSettings(keys, trusted))


def test_headers_of_pem_stay_as_they_are(issued: Issued) -> None:
    block = issued.key_pem().replace("KEY-----\n", "KEY-----\nProc-Type: 4,CLEAR\n\n", 1)
    (key,) = read_key_store(pem(issued, key=block))
    assert key.key.decode() == block.strip()


def test_trusted_pem_in_the_configuration_and_in_a_file(issued: Issued, tmp_path: Path) -> None:
    text = issued.root.cert_pem.bytes().decode()
    path = tmp_path / "ca.pem"
    path.write_text(text)
    assert read_trust_store(StoreSettings("PEM", certificates=text)) == [issued.root_der]
    assert read_trust_store(StoreSettings("PEM", str(path))) == [issued.root_der]


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_pkcs12_whatever_type_is_said_with_its_chain_in_any_order(
    issued: Issued, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "server.p12"
    leaf, middle, root = issued.chain
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"server", issued.key, leaf, [root, middle], BestAvailableEncryption(SECRET.encode())
        )
    )
    (key,) = read_key_store(StoreSettings(kind, str(path), SECRET))
    assert key.certificates == b"".join(c.public_bytes(Encoding.PEM) for c in (leaf, middle, root))
    assert key.key.decode() == issued.key_pem()


def test_trusted_pkcs12(issued: Issued, tmp_path: Path) -> None:
    path = tmp_path / "trust.p12"
    trusted = pkcs12.PKCS12Certificate(issued.chain[-1], b"ca")
    path.write_bytes(pkcs12.serialize_java_truststore([trusted], BestAvailableEncryption(SECRET.encode())))
    assert read_trust_store(StoreSettings("PKCS12", str(path), SECRET)) == [issued.root_der]
    with pytest.raises(StoreError, match="the password is wrong, or the file is damaged"):
        read_trust_store(StoreSettings("PKCS12", str(path), "another"))


def test_an_encrypted_key_keeps_its_password_to_itself(issued: Issued) -> None:
    settings = StoreSettings(
        "PEM", key_password=SECRET, key=issued.key_pem(SECRET), certificates=issued.chain_pem
    )
    (key,) = read_key_store(settings)
    assert key.password == SECRET
    assert SECRET not in repr((settings, key))
    assert "BEGIN" not in repr((settings, key))


def pem(issued: Issued, **others: str | None) -> StoreSettings:
    fields = {"key": issued.key_pem(), "certificates": issued.chain_pem, **others}
    return StoreSettings("PEM", **fields)


def test_key_stores_that_make_no_sense(issued: Issued, tmp_path: Path) -> None:
    text = tmp_path / "words"
    text.write_text("words")
    cases = [
        (StoreSettings("JKS", key="k", certificates="c"), "only for PEM, but key store type is JKS"),
        (pem(issued, certificates=None), "certificate chain is not specified"),
        (pem(issued, key=None), "private key is not specified"),
        (pem(issued, location="x"), "Both SSL key store location and separate private key"),
        (pem(issued, password=SECRET), "password cannot be specified with PEM format"),
        (StoreSettings(password=SECRET), "key store is not specified, but key store password is"),
        (StoreSettings(location="x"), "key store is specified, but key store password is not"),
        (StoreSettings("BKS", "x", SECRET), "type BKS is not one of PEM, PKCS12 and JKS"),
        (StoreSettings("PKCS12", str(tmp_path / "none"), SECRET), "cannot be read: No such file"),
        (StoreSettings("PKCS12", str(text), SECRET), "words of type PKCS12: the password is wrong, or"),
        (StoreSettings("PEM", str(text)), "Expected one private key in PEM, but found 0"),
        (pem(issued, key=issued.key_pem() * 2), "Expected one private key in PEM, but found 2"),
        (pem(issued, key=issued.key_pem(SECRET)), "encrypted, but ssl.key.password is not specified"),
        (pem(issued, key=issued.traditional_pem), "openssl pkcs8 -topk8"),
        (
            pem(issued, key="-----BEGIN PRIVATE KEY----- MI!! -----END PRIVATE KEY-----"),
            "The private key is not in base64",
        ),
        (pem(issued, certificates="none"), "At least one certificate expected"),
    ]
    for settings, words in cases:
        with pytest.raises(StoreError, match=words) as raised:
            read_key_store(settings)
        assert SECRET not in str(raised.value)


def test_trust_stores_that_make_no_sense() -> None:
    cases = [
        (StoreSettings("JKS", certificates="c"), "only for PEM, but trust store type is JKS"),
        (StoreSettings("PEM", "x", certificates="c"), "Both SSL trust store location and separate"),
        (StoreSettings("PEM", password=SECRET, certificates="c"), "password cannot be specified for PEM"),
        (StoreSettings(password=SECRET), "trust store is not specified, but trust store password is"),
        (StoreSettings("PEM", certificates="c"), "At least one certificate expected"),
    ]
    for settings, words in cases:
        with pytest.raises(StoreError, match=words) as raised:
            read_trust_store(settings)
        assert SECRET not in str(raised.value)


def test_a_file_without_end_is_not_read() -> None:
    with pytest.raises(StoreError, match="has more than"):
        read_key_store(StoreSettings("PEM", "/dev/zero"))
