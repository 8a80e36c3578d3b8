"""The certificates of nodes, for each other and for clients. All of them are replaced while the nodes run.

Clients trust one authority for good. The one that nodes trust is replaced in three steps, each a change of
files and nothing more: nodes trust the new authority beside the old one; they show certificates that the new
one has signed; they trust the new one alone.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from pykafka_broker.tls.authority import Authority, Issued

DAYS = 2
HOST = "127.0.0.1"


class NodeCertificates:
    """Files of PEM in a folder. The node `n` has the name `CN=node-n` in the certificates for other nodes."""

    def __init__(self, folder: Path, node_ids: Iterable[int]) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._node_ids = tuple(node_ids)
        self._public = new_authority()
        self._own = new_authority()
        #: What clients trust.
        self.public_ca = folder / "public-ca.pem"
        self.public_ca.write_bytes(self._public.own.certificate_pem)
        for node_id in self._node_ids:
            self.trusted_by(node_id).write_bytes(self._own.own.certificate_pem)
            self._issue(node_id)

    def shown_to_nodes(self, node_id: int) -> Path:
        """The key and the certificate of a node for other nodes."""
        return self._folder / f"node-{node_id}.pem"

    def shown_to_clients(self, node_id: int) -> Path:
        """Its key and certificate for clients."""
        return self._folder / f"public-{node_id}.pem"

    def trusted_by(self, node_id: int) -> Path:
        """The authorities whose certificates a node accepts of others."""
        return self._folder / f"trusted-by-{node_id}.pem"

    def context(self, node_id: int) -> ssl.SSLContext:
        """Of a client that shows and trusts what a node does at this moment, and what clients trust."""
        made = self.context_without(node_id)
        made.load_cert_chain(str(self.shown_to_nodes(node_id)))
        return made

    def context_without(self, node_id: int) -> ssl.SSLContext:
        """The same without a certificate to show."""
        made = self.public_context()
        made.load_verify_locations(str(self.trusted_by(node_id)))
        return made

    def public_context(self) -> ssl.SSLContext:
        """Of a client of the cluster."""
        return ssl.create_default_context(cafile=str(self.public_ca))

    # -- replacing them, in this order -----------------------------------------------------------------------

    def trust_another(self) -> None:
        """Have nodes trust a new authority beside the one that they have."""
        old, self._own = self._own, new_authority()
        both = old.own.certificate_pem + self._own.own.certificate_pem
        for node_id in self._node_ids:
            replace(self.trusted_by(node_id), both)

    def begin_to_write(self, node_id: int) -> None:
        """Write half of a new key over the files of a node, as a copy that is under way."""
        for path in (self.shown_to_nodes(node_id), self.shown_to_clients(node_id)):
            path.write_bytes(path.read_bytes()[:100])

    def show_others(self) -> None:
        """Have nodes show certificates of the new authority, and clients new ones."""
        for node_id in self._node_ids:
            self._issue(node_id)

    def trust_no_other(self) -> None:
        """Have nodes trust the new authority alone."""
        for node_id in self._node_ids:
            replace(self.trusted_by(node_id), self._own.own.certificate_pem)

    def _issue(self, node_id: int) -> None:
        replace(self.shown_to_nodes(node_id), pem(self._own.for_server([f"node-{node_id}", HOST])))
        replace(self.shown_to_clients(node_id), pem(self._public.for_server([HOST])))


def new_authority() -> Authority:
    return Authority.new(datetime.now(UTC), DAYS)


def pem(issued: Issued) -> bytes:
    return issued.key_pem + issued.certificate_pem


def replace(path: Path, data: bytes) -> None:
    """Put another file in its place at once."""
    another = path.with_suffix(".new")
    another.write_bytes(data)
    os.replace(another, path)
