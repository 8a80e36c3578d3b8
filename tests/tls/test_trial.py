"""Keys between nodes, tried before they are used."""

from __future__ import annotations

from dataclasses import replace

import pytest
import trustme

from pykafka_broker.tls.contexts import TlsConfigError
from pykafka_broker.tls.trial import check_handshake, node_context
from tests.tls.test_contexts import AUTHORITY, key_store, server, trusting

STRANGER = trustme.CA()


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("client_auth", ["none", "requested", "required"])
def test_nodes_with_keys_of_one_authority_connect(version: str, client_auth: str) -> None:
    settings = server(enabled_protocols=(version,), client_auth=client_auth)
    check_handshake(settings, settings)
    assert node_context(settings).get_ca_certs()


def test_names_are_not_compared() -> None:
    settings = server(key_store=key_store(AUTHORITY.issue_cert("another.example")))
    check_handshake(settings, settings)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_server_whose_authority_the_client_does_not_trust(version: str) -> None:
    settings = server(enabled_protocols=(version,))
    with pytest.raises(TlsConfigError, match="certificate verify failed"):
        check_handshake(replace(settings, trust_store=trusting(STRANGER)), settings)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_client_whose_authority_the_server_does_not_trust(version: str) -> None:
    settings = server(enabled_protocols=(version,), client_auth="required")
    strange = replace(settings, key_store=key_store(STRANGER.issue_cert("localhost")))
    with pytest.raises(TlsConfigError, match="certificate verify failed"):
        check_handshake(strange, settings)
    check_handshake(strange, replace(settings, client_auth="none"))


def test_versions_without_a_common_one() -> None:
    with pytest.raises(TlsConfigError, match="can't connect"):
        check_handshake(server(enabled_protocols=("TLSv1.2",)), server(enabled_protocols=("TLSv1.3",)))
