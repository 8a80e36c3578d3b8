"""The limit of a read of a log: the high watermark, the last stable offset, or the log end."""

from __future__ import annotations

from typing import Literal

Limit = Literal["high_watermark", "last_stable", "log_end"]
