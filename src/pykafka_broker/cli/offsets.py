"""Offsets as commands take and give them."""

from __future__ import annotations

import re

import click

from pykafka_broker.system.wording import MS_PER_DAY, MS_PER_HOUR, MS_PER_MINUTE, MS_PER_S

#: The last offset and the last time there can be.
LONG_MAX = (1 << 63) - 1


def parse_number(text: str) -> int:
    """An offset, or a time in milliseconds, of decimal digits.

    Raises:
        click.BadParameter: it is larger than offsets and times can be.
    """
    if len(text.lstrip("0")) > len(str(LONG_MAX)) or int(text) > LONG_MAX:
        raise click.BadParameter(f"{text} is larger than {LONG_MAX}")
    return int(text)


def parse_time_ms(text: str) -> int:
    """A time in milliseconds: a number as it is, else ISO 8601, in local time unless it says otherwise.

    Raises:
        click.BadParameter: it is neither, or no time that a record can have.
    """
    from datetime import datetime

    if text.isdecimal():
        return parse_number(text)
    try:
        time_ms = round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{text!r} is no time; write 2026-01-31T12:00:00 or milliseconds") from None
    if time_ms < 0:
        # Kafka has other uses for numbers below zero.
        raise click.BadParameter(f"{text!r} is before 1970")
    return time_ms


def parse_duration_ms(text: str) -> int:
    """An ISO 8601 duration like P1DT2H or PT15M in milliseconds.

    Raises:
        click.BadParameter: it is none, or longer than times can be.
    """
    pattern = r"P(?=.)(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
    match = re.fullmatch(pattern, text, re.IGNORECASE)
    if match is None:
        raise click.BadParameter(f"{text!r} is no duration; write P1DT2H30M or the like")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    duration_ms = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
    if duration_ms > LONG_MAX:
        raise click.BadParameter(f"{text!r} is longer than {LONG_MAX} milliseconds")
    return round(duration_ms)


_UNITS_MS = {"s": MS_PER_S, "m": MS_PER_MINUTE, "h": MS_PER_HOUR, "d": MS_PER_DAY}


def parse_since_ms(text: str, now_ms: int) -> int:
    """A time in milliseconds: as `parse_time_ms` takes it, or how long ago it is, like 30m or 7d.

    Raises:
        click.BadParameter: it is neither, or before 1970.
    """
    ago = re.fullmatch(r"(\d{1,9})([smhd])", text)
    if ago is None:
        return parse_time_ms(text)
    since_ms = now_ms - int(ago[1]) * _UNITS_MS[ago[2]]
    if since_ms < 0:
        raise click.BadParameter(f"{text!r} ago is before 1970")
    return since_ms
