"""One request for a page: what it asks for, and a client that acts as its user."""

from __future__ import annotations

from collections.abc import Mapping

import click

from pykafka_broker.cli.offsets import parse_number
from pykafka_broker.client.blocking import Client
from pykafka_broker.console.settings import Settings
from pykafka_broker.system.named_tuple import NamedTuple


class Visit(NamedTuple):
    """A request for a page, or for a change."""

    settings: Settings
    client: Client
    #: The parts of the path, the query and, of a POST, the form.
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str]

    @property
    def can_write(self) -> bool:
        """Whether the console offers changes; the user's ACLs still decide."""
        return self.settings.write

    def asked(self, name: str) -> str:
        """A field of the query, without spaces around it; "" if it is not given."""
        return self.query.get(name, "").strip()

    def given(self, name: str) -> str:
        """A field of the form, without spaces around it; "" if it is not given."""
        return self.form.get(name, "").strip()

    def number(self, name: str) -> int:
        """A number of the form, or else of the query.

        Raises:
            click.ClickException: it is none.
        """
        text = self.given(name) or self.asked(name)
        if not text.isdecimal():
            raise click.ClickException(f"{name}: {text!r} is no whole number")
        return parse_number(text)

    def confirm(self, name: str) -> None:
        """Go on if the visitor has typed the name of what the change is about.

        Raises:
            click.ClickException: it is another text.
        """
        if self.form.get("name", "") != name:
            raise click.ClickException(f"Nothing is changed: the name that was typed is not {name}.")
