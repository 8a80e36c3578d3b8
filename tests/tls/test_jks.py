"""JKS, read from files that keytool of OpenJDK 17 wrote."""

from __future__ import annotations

import base64

import pytest

from pykafka_broker.tls.core.distinguished_names import subject_of
from pykafka_broker.tls.core.jks import WrongPassword, read_jks

# keytool -genkeypair -keyalg EC -dname CN=broker,O=Org -storetype JKS -storepass store-secret
#     -keypass key-secret
KEY_STORE = base64.b64decode(
    "/u3+7QAAAAIAAAABAAAAAQAGc2VydmVyAAABogoKsuIAAAB/MH0wDgYKKwYBBAEqAhEBAQUABGuPePRBrdInKJZNDKzD6r6u"
    "LICMJhxcLcFs79jqqZf9sK6R+TBgkQvmoyuCH/zz4EkXb18ibq1z1d6hUh7n6xEIjSvTkVpSQtGZwNIVS0djDspH97f5ZJJP"
    "i0GA1MSbs0qQA8pPlKkDf8QqmgAAAAEABVguNTA5AAABWzCCAVcwgf2gAwIBAgIIa5oqTPozjnYwCgYIKoZIzj0EAwIwHzEM"
    "MAoGA1UEChMDT3JnMQ8wDQYDVQQDEwZicm9rZXIwIBcNMjYxMTIzMjAxMzIzWhgPMjEyNjEwMzAyMDEzMjNaMB8xDDAKBgNV"
    "BAoTA09yZzEPMA0GA1UEAxMGYnJva2VyMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE0r08yoHFiTSNO+SJAlnyoVOoj+7i"
    "mHXWIvrdwsfDLMIKgeWOrudSk+W7/+OFehWhtlb2nNNgCpmLMNN5CAiZZaMhMB8wHQYDVR0OBBYEFMCmBAepaA0zd5+atiU6"
    "z7sHSWyLMAoGCCqGSM49BAMCA0kAMEYCIQDEnCDqrIlVFmJaWQMZMK0/iI6gwfIrFir0vMrExqSlIwIhAJ5jHAlgP8moJtQ+"
    "fB1qrCURMjXhZmijUMxwp+ruHT78OMxiCAkdHqEvP4ojRcNR9wVHJnA="
)
# keytool -importcert -storetype JKS -storepass trust-secret, of that certificate
TRUST_STORE = base64.b64decode(
    "/u3+7QAAAAIAAAABAAAAAgACY2EAAAGiCgq2FAAFWC41MDkAAAFbMIIBVzCB/aADAgECAghrmipM+jOOdjAKBggqhkjOPQQD"
    "AjAfMQwwCgYDVQQKEwNPcmcxDzANBgNVBAMTBmJyb2tlcjAgFw0yNjExMjMyMDEzMjNaGA8yMTI2MTAzMDIwMTMyM1owHzEM"
    "MAoGA1UEChMDT3JnMQ8wDQYDVQQDEwZicm9rZXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATSvTzKgcWJNI075IkCWfKh"
    "U6iP7uKYddYi+t3Cx8MswgqB5Y6u51KT5bv/44V6FaG2Vvac02AKmYsw03kICJlloyEwHzAdBgNVHQ4EFgQUwKYEB6loDTN3"
    "n5q2JTrPuwdJbIswCgYIKoZIzj0EAwIDSQAwRgIhAMScIOqsiVUWYlpZAxkwrT+IjqDB8isWKvS8ysTGpKUjAiEAnmMcCWA/"
    "yagm1D58HWqsJREyNeFmaKNQzHCn6u4dPvyJeLIDHHZT108yXUINeY89amkbRw=="
)


def test_a_key_and_its_certificate() -> None:
    (entry,) = read_jks(KEY_STORE, "store-secret").keys
    assert entry.alias == "server"
    assert [subject_of(certificate) for certificate in entry.certificates] == ["CN=broker,O=Org"]
    # PKCS #8: a sequence that begins with the version 0.
    assert entry.key("key-secret").hex().startswith("3041020100")


def test_trusted_certificates() -> None:
    store = read_jks(TRUST_STORE, "trust-secret")
    assert store.keys == ()
    assert {alias: subject_of(der) for alias, der in store.trusted.items()} == {"ca": "CN=broker,O=Org"}


def test_without_a_password_the_sum_is_not_checked() -> None:
    assert list(read_jks(TRUST_STORE, None).trusted) == ["ca"]


def test_wrong_passwords() -> None:
    with pytest.raises(WrongPassword, match="the password is wrong, or the file is damaged"):
        read_jks(KEY_STORE, "key-secret")
    (entry,) = read_jks(KEY_STORE, "store-secret").keys
    with pytest.raises(WrongPassword, match="the password of the key is wrong"):
        entry.key("store-secret")


def test_a_damaged_byte_is_noticed() -> None:
    for place in range(4, len(TRUST_STORE)):
        damaged = bytearray(TRUST_STORE)
        damaged[place] ^= 1
        with pytest.raises(ValueError, match=r"password|version"):
            read_jks(bytes(damaged), "trust-secret")


def test_a_file_cut_anywhere_is_refused() -> None:
    for end in range(len(TRUST_STORE)):
        with pytest.raises(ValueError, match=r"cut short|no JKS|kind"):
            read_jks(TRUST_STORE[:end], None)


def test_keys_are_not_shown() -> None:
    assert repr(read_jks(KEY_STORE, "store-secret").keys) == "(JksKey(alias='server'),)"
