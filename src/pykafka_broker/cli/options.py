"""Options that several commands share."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

Command = TypeVar("Command", bound=Callable[..., Any])

#: The bounds of the protocol's numbers.
INT16_MAX, INT32_MAX = (1 << 15) - 1, (1 << 31) - 1


class Seconds(click.FloatRange):
    """A time in seconds that the protocol can tell in milliseconds."""

    def __init__(self, least: float) -> None:
        super().__init__(min=least, max=INT32_MAX // 1000)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # Every range accepts NaN.
        if math.isnan(float(seconds := super().convert(value, param, ctx))):
            self.fail(f"{value!r} is no time", param, ctx)
        return seconds


def list_option(*names: str, default: str | None = None, **attributes: Any) -> Callable[[Command], Command]:
    """Add an option whose value is a list with commas. Given several times, it goes on with the list."""
    defaults = None if default is None else [default]
    return click.option(*names, cls=_ListOption, multiple=True, default=defaults, **attributes)


class _ListOption(click.Option):
    def value_from_envvar(self, ctx: click.Context) -> Any:
        value = self.resolve_envvar_value(ctx)
        return None if value is None else [value]

    def type_cast_value(self, ctx: click.Context, value: Any) -> str | None:
        lists = super().type_cast_value(ctx, value)
        return ",".join(lists) if lists else None


def gathered(values: Any, name: str) -> Callable[[Command], Command]:
    """Hand a command the options that `values`, a named tuple, has fields for, as one value called `name`. A
    field without an option keeps its default.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(**options: Any) -> Any:
            value = values(**{field: options.pop(field) for field in values._fields if field in options})
            return command(**options, **{name: value})

        return cast("Command", run)

    return decorate


def progress_option(command: Command) -> Command:
    """Add `--progress`, which shows progress where none would be shown by default."""
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
        if not equals or not (key := key.strip()):
            raise click.BadParameter(f"{entry!r} is not KEY=VALUE", param_hint=option)
        result.append((key, value))
    return result
