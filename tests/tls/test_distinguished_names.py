"""Names in certificates, as Java prints them."""

from __future__ import annotations

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from pykafka_broker.tls.core.distinguished_names import name_of, subject_of

#: The bytes of names and what `X500Principal.getName()` of OpenJDK 17 made of them.
OF_JAVA = [
    (
        "304a310b300906035504061302555331193017060355040a131053756e204d6963726f73797374656d73"
        "3111300f060355040b13084a617661536f6674310d300b0603550403130444756b65",
        "CN=Duke,OU=JavaSoft,O=Sun Microsystems,C=US",
    ),
    (
        "301e311c301a06035504030c13612c623d632b643c653e6623673b6822695c6a",
        r"CN=a\,b\=c\+d\<e\>f\#g\;h\"i\\j",
    ),
    (
        "3022310a300806035504031301783114301206092a864886f70d01090116056140622e63",
        "1.2.840.113549.1.9.1=#16056140622e63,CN=x",
    ),
    ("30153113301106035504030c0a5a6fc3ab20c3bce4b8ad", "CN=Zoë ü中"),
    (
        "306d310b3009060355040513023132310a30080603550407130167310a3008060355040813016631"
        "0a300806035504091301653111300f060a0992268993f22c6401011301643111300f060a0992268993f22c"
        "6401191601633114300806035504031301613008060355040b130162",
        "CN=a+OU=b,DC=c,UID=d,STREET=e,ST=f,L=g,2.5.4.5=#13023132",
    ),
    (
        "3034310b300906035504030c022361310a30080603550404130142310b3009060355040c13024472"
        "310c300a060355042a1303416e6e",
        r"2.5.4.42=#1303416e6e,2.5.4.12=#13024472,2.5.4.4=#130142,CN=\#a",
    ),
    (
        "3021310c300a06035504030c037800793111300f060355040a0c087461620968657265",
        "O=tab\there,CN=x\\00y",
    ),
    ("3000", ""),
]


@pytest.mark.parametrize(("encoded", "printed"), OF_JAVA)
def test_names_that_java_printed(encoded: str, printed: str) -> None:
    assert name_of(bytes.fromhex(encoded)) == printed


def test_white_space_at_the_ends_is_escaped() -> None:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "  a b \r")])
    assert name_of(name.public_bytes()) == "CN=\\ \\ a b\\ \\\r"
    blank = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "  ")])
    assert name_of(blank.public_bytes()) == "CN=\\ \\ "


def certificate() -> bytes:
    issued = trustme.CA().issue_cert("alice@example.org", common_name="alice", organization_name="Org")
    pem = issued.cert_chain_pems[0].bytes()
    return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)


def test_the_subject_of_a_certificate() -> None:
    # trustme numbers its certificates in a unit of the organization.
    subject = subject_of(certificate())
    assert subject.startswith("CN=alice,OU=Testing cert")
    assert subject.endswith(",O=Org")


def test_a_certificate_cut_anywhere_is_refused() -> None:
    whole = certificate()
    for end in range(len(whole)):
        with pytest.raises(ValueError, match=r"DER|cut"):
            subject_of(whole[:end])


@pytest.mark.parametrize(
    "encoded",
    ["", "30", "3080", "30850000000000", "3003020101", "300431020101", "3006310430020600", "30000000"],
)
def test_what_is_no_name_is_refused(encoded: str) -> None:
    with pytest.raises(ValueError, match=r"DER|attribute"):
        name_of(bytes.fromhex(encoded))
