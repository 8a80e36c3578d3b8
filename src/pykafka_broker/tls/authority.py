"""A small certificate authority for a laptop or a test; keys are on the curve P-256.

Needs the library `cryptography` (`pip install 'pykafka-broker[tls]'`). Blocking.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

from pykafka_broker.system.named_tuple import NamedTuple
from pykafka_broker.tls.stores import StoreError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, GeneralName, Name

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import pkcs12
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    raise StoreError(
        "Certificates need the library cryptography: pip install 'pykafka-broker[tls]'"
    ) from None

#: A certificate is valid from this time before it was made, as clocks differ.
LEEWAY = timedelta(hours=1)
_SIGNS = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
AUTHORITY_NAME = "pykafka_broker authority"


class Issued(NamedTuple):
    """A key and its certificate. `repr` shows no secret."""

    key: ec.EllipticCurvePrivateKey
    certificate: Certificate

    @property
    def key_pem(self) -> bytes:
        """The key, PKCS #8."""
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    @property
    def certificate_pem(self) -> bytes:
        """The certificate."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def pkcs12(self, name: str, authority: Certificate, password: str) -> bytes:
        """A key store of Java with the key, its certificate and that of the authority."""
        encryption = serialization.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            name.encode(), self.key, self.certificate, [authority], encryption
        )


class Authority:
    """Signs certificates of servers and clients for `days`, counted from `now`."""

    def __init__(self, own: Issued, now: datetime, days: int) -> None:
        self.own = own
        self._now = now
        self._days = days

    @classmethod
    def new(cls, now: datetime, days: int) -> Authority:
        """An authority with a key of its own."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _named(AUTHORITY_NAME)
        certificate = (
            _begun(name, name, key, now, days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(_SIGNS, critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(Issued(key, certificate), now, days)

    @classmethod
    def read(cls, key: bytes, certificate: bytes, now: datetime, days: int) -> Authority:
        """The authority of these files.

        Raises:
            StoreError: they cannot be read, or the key is of another kind.
        """
        try:
            read = serialization.load_pem_private_key(key, None)
            found = x509.load_pem_x509_certificate(certificate)
        except (ValueError, TypeError) as error:
            raise StoreError(f"The authority cannot be read: {error}") from None
        if not isinstance(read, ec.EllipticCurvePrivateKey):
            raise StoreError("The key of the authority is of another kind than those that this program makes")
        return cls(Issued(read, found), now, days)

    def for_server(self, hosts: Iterable[str]) -> Issued:
        """A certificate for a node with these names and addresses, also as a client of other nodes."""
        names = [_general_name(host) for host in hosts]
        first = next(iter(hosts))
        usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._issue(_named(first), usage, names)

    def for_client(self, user: str) -> Issued:
        """A certificate for the user with this name (CN)."""
        return self._issue(_named(user), [ExtendedKeyUsageOID.CLIENT_AUTH], [])

    def _issue(self, subject: Name, usage: list[x509.ObjectIdentifier], names: list[GeneralName]) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self.own.certificate
        builder = (
            _begun(subject, issuer.subject, key, self._now, self._days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.own.key.public_key()), critical=False
            )
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Issued(key, builder.sign(self.own.key, hashes.SHA256()))


def _begun(
    subject: Name, issuer: Name, key: ec.EllipticCurvePrivateKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LEEWAY)
        .not_valid_after(now + timedelta(days=days))
    )


def _named(name: str) -> Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
