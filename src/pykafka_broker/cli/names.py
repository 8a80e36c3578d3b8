"""Names for a shell to complete: of the topics, groups and brokers of the cluster that the options name.

Completion must be fast: nothing is suggested after `WITHIN_S`, or if no broker answers, one refuses, or a
password would have to be typed. Names that a shell would not take unquoted are left out: a group may have any
name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
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


def _completing(names: Callable[[Client], Iterable[object]], *, is_list: bool = False) -> Completions:
    """The completion of one of these names, or of a list of them with commas."""

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
        before, comma, last = incomplete.rpartition(",") if is_list else ("", "", incomplete)
        known |= {*before.split(",")}
        return [before + comma + name for name in sorted({*found} - known) if name.startswith(last)]

    return complete


def _asked(ctx: click.Context, names: Callable[[Client], Iterable[object]]) -> list[str]:
    from shlex import quote

    options = ctx.params
    if options.get("bootstrap_controller"):
        # Controllers do not list topics, groups and brokers.
        return []
    # `doctor` has the address as an argument and as an option.
    address = options.get("named") or options.get("bootstrap_server") or ""
    login = options.get("login")
    if login is not None and ":" not in login and PASSWORD_VARIABLE not in os.environ:
        return []
    try:
        identity = identity_with(COMMAND, options.get("command_config"), login, options.get("ca"))
        with Client(address, WITHIN_S, identity=identity) as client:
            found = [str(name) for name in names(client)]
    except (OSError, KafkaError, ProtocolError, ValueError, click.ClickException):
        return []
    return [name for name in found if quote(name) == name]


def _groups(client: Client, *, shared: Sequence[bool] = (False, True)) -> Iterable[object]:
    """The groups of the kinds that are wanted: those that are no share groups, share groups, or both."""
    from pykafka_broker.cli.group_state import SHARE, list_groups

    found = list_groups(client).items()
    return [name for name, group in found if (group.group_type.lower() == SHARE) in shared]


def _brokers(client: Client) -> Iterable[object]:
    """Those that have stopped, too: they are moved away from, and forgotten."""
    from pykafka_broker.doctor.brokers import registered

    return [broker.broker_id for broker in registered(client).brokers]


topic_names = _completing(lambda client: [topic.name for topic in client.metadata(None).topics])
#: Of all kinds; then of all but share groups, and of share groups alone.
any_group_names = _completing(_groups)
group_names = _completing(lambda client: _groups(client, shared=(False,)))
share_group_names = _completing(lambda client: _groups(client, shared=(True,)))
broker_ids = _completing(_brokers)
broker_id_lists = _completing(_brokers, is_list=True)
