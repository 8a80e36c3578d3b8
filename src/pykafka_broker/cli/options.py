"""Options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from pykafka_broker.cli.client import parse_addresses

Command = TypeVar("Command", bound=Callable[..., Any])

#: The bounds of the protocol's numbers.
INT16_MAX, INT32_MAX = (1 << 15) - 1, (1 << 31) - 1

DEFAULT_BOOTSTRAP_SERVER = "127.0.0.1:9092"


class Seconds(click.FloatRange):
    """A time in seconds that the protocol can tell in milliseconds."""

    def __init__(self, least: float) -> None:
        super().__init__(min=least, max=INT32_MAX // 1000)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # Not a number is in every range.
        if math.isnan(float(seconds := super().convert(value, param, ctx))):
            self.fail(f"{value!r} is no time", param, ctx)
        return seconds


def _check_addresses(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    try:
        parse_addresses(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return value


def cluster_options(command: Command) -> Command:
    """Which cluster to talk to, and how long to wait for it."""
    command = click.option(
        "--timeout",
        "timeout_s",
        type=Seconds(0.1),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for the cluster.",
    )(command)
    return click.option(
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT[,…]",
        envvar="PYKAFKA_BROKER_BOOTSTRAP_SERVER",
        show_envvar=True,
        default=DEFAULT_BOOTSTRAP_SERVER,
        show_default=True,
        callback=_check_addresses,
        help="Brokers to ask first.",
    )(command)


def progress_option(command: Command) -> Command:
    """Whether to tell how far the work is where nothing would be told otherwise."""
    return click.option(
        "--progress",
        "show_progress",
        is_flag=True,
        help="Show counts and rates on standard error, also where that is no terminal.",
    )(command)


def pairs(entries: tuple[str, ...], option: str) -> list[tuple[str, str]]:
    """`key=value` entries, in order; a key may come several times.

    Raises:
        click.BadParameter: an entry has no `=`.
    """
    result = []
    for entry in entries:
        key, equals, value = entry.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{entry!r} is not KEY=VALUE", param_hint=option)
        result.append((key.strip(), value))
    return result
