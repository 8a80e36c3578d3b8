"""Names for a shell to complete: of the topics, groups and brokers of the cluster that the options name.

Completion must be fast: nothing is suggested after `WITHIN_S`, or if no broker answers, one refuses, or a
password would have to be typed. Names that a shell would not take unquoted are left out: a group may have any
name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from pykafka_broker.cli.cluster import COMMAND
from pykafka_broker.cli.security import PASSWORD_VARIABLE, identity_with
from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.errors import KafkaError, ProtocolError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: The time for everything, from the look-up of the host to the answer.
WITHIN_S = 1.0

Completions = Callable[[click.Context, click.Parameter, str], "list[str | CompletionItem]"]


def _completing(names: Callable[[Client], Iterable[object]]) -> Completions:
    def complete(
        ctx: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[str | CompletionItem]:
        from threading import Thread

        found: list[str] = []
        # A thread, because the look-up of a host name has no time-out.
        asking = Thread(target=lambda: found.extend(_asked(ctx, names)), daemon=True)
        asking.start()
        asking.join(WITHIN_S)
        given = ctx.params.get(str(parameter.name))
        known = {str(one) for one in given} if isinstance(given, (tuple, list)) else set()
        return [name for name in sorted({*found} - known) if name.startswith(incomplete)]

    return complete


def _asked(ctx: click.Context, names: Callable[[Client], Iterable[object]]) -> list[str]:
    from shlex import quote

    options = ctx.params
    login = options.get("login")
    if login is not None and ":" not in login and PASSWORD_VARIABLE not in os.environ:
        return []
    try:
        identity = identity_with(COMMAND, options.get("command_config"), login, options.get("ca"))
        with Client(options.get("bootstrap_server") or "", WITHIN_S, identity=identity) as client:
            found = [str(name) for name in names(client)]
    except (OSError, KafkaError, ProtocolError, ValueError, click.ClickException):
        return []
    return [name for name in found if quote(name) == name]


def _groups(client: Client) -> Iterable[object]:
    from pykafka_broker.cli.group_state import list_groups

    return list_groups(client)


topic_names = _completing(lambda client: [topic.name for topic in client.metadata(None).topics])
group_names = _completing(_groups)
broker_ids = _completing(lambda client: [broker.node_id for broker in client.metadata([]).brokers])
