"""`certs`: a small authority, and the keys and certificates of nodes and clients, for a laptop or a test."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pykafka_broker.cli.cells import Column, Table
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pykafka_broker.tls.authority import Authority, Issued

#: Where clients of the same machine find a broker.
HERE = ("localhost", "127.0.0.1")
#: The default of Java's own tools.
STORE_PASSWORD = "changeit"


class Made(NamedTuple):
    """A file, and whether it was made now or was there already."""

    file: str
    purpose: str
    is_new: bool


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--host",
    "hosts",
    multiple=True,
    default=HERE,
    show_default=True,
    metavar="NAME",
    help="A name or an address by which the broker is reached.",
)
@click.option("--client", "clients", multiple=True, metavar="USER", help="A user who gets a certificate.")
@click.option(
    "--days", type=click.IntRange(1, 3650), default=365, show_default=True, help="How long they are valid."
)
@click.option(
    "--store-password",
    default=STORE_PASSWORD,
    show_default=True,
    metavar="TEXT",
    help="The password of the PKCS12 stores.",
)
@click.option("--renew", is_flag=True, help="Make existing keys and certificates anew, except the authority.")
@json_option(Made, key="files")
def certs(
    folder: Path,
    hosts: tuple[str, ...],
    clients: tuple[str, ...],
    days: int,
    store_password: str,
    renew: bool,
    output: Output,
) -> None:
    """Make an authority, and keys and certificates for a broker and its clients, in FOLDER.

    They are files of PEM and PKCS12. Existing files stay as they are, so a further --client can be added
    later. The keys in the folder are for your eyes only; for more than a laptop or a test use the authority
    of your organization.
    """
    from pykafka_broker.tls.stores import StoreError

    for user in clients:
        if not user or "/" in user or user in ("ca", "server"):
            raise click.BadParameter(f"{user!r} cannot be the name of its files.", param_hint="--client")
    try:
        workshop = _Workshop(folder, days, store_password, renews=renew)
        workshop.make("server", "the broker", methodcaller("for_server", hosts))
        for user in clients:
            workshop.make(user, f"the user {user}", methodcaller("for_client", user))
    except (StoreError, OSError) as error:
        raise click.ClickException(str(error)) from None
    found = workshop.files
    lines = [f"{'Made' if one.is_new else 'Kept'} {one.file}: {one.purpose}" for one in found]
    rows = [(one.file, one.purpose, "made" if one.is_new else "kept") for one in found]
    output.show_all(found, lines, [Table((Column("FILE"), Column("WHAT FOR"), Column("")), rows)])


class _Workshop:
    """Makes the files of a folder that are not there yet; `renews` remakes all but the authority."""

    def __init__(self, folder: Path, days: int, password: str, *, renews: bool) -> None:
        """Raises StoreError or OSError if there is an authority that cannot be read."""
        from pykafka_broker.tls.authority import Authority

        self.files: list[Made] = []
        self._folder = folder
        self._password = password
        self._renews = renews
        folder.mkdir(parents=True, exist_ok=True)
        certificate, key = folder / "ca.pem", folder / "ca.key"
        now = datetime.now(UTC)
        is_new = not certificate.exists()
        if is_new:
            self._authority = Authority.new(now, days)
            _write_secret(key, self._authority.own.key_pem)
            certificate.write_bytes(self._authority.own.certificate_pem)
        else:
            self._authority = Authority.read(key.read_bytes(), certificate.read_bytes(), now, days)
        self._note(certificate, "the authority, which clients and nodes trust", is_new=is_new)
        self._note(key, "the key of the authority, which signs further certificates", is_new=is_new)

    def make(self, name: str, whose: str, issue: Callable[[Authority], Issued]) -> None:
        """A key and its certificate as PEM, in one file, and as PKCS12. Raises OSError."""
        pem, store = self._folder / f"{name}.pem", self._folder / f"{name}.p12"
        is_new = self._renews or not (pem.exists() and store.exists())
        if is_new:
            issued, own = issue(self._authority), self._authority.own
            _write_secret(pem, issued.key_pem + issued.certificate_pem + own.certificate_pem)
            _write_secret(store, issued.pkcs12(name, own.certificate, self._password))
        self._note(pem, f"key and certificate of {whose}, PEM", is_new=is_new)
        self._note(store, f"key and certificate of {whose}, PKCS12", is_new=is_new)

    def _note(self, file: Path, purpose: str, *, is_new: bool) -> None:
        self.files.append(Made(str(file), purpose, is_new))


def _write_secret(file: Path, data: bytes) -> None:
    """Write a file that only its owner may read."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        os.fchmod(opened.fileno(), 0o600)
        opened.write(data)
