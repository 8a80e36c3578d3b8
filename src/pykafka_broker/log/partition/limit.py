"""How far a read of a log goes: to the high watermark, to the last stable offset, or to the log end."""

from __future__ import annotations

from typing import Literal

Limit = Literal["high_watermark", "last_stable", "log_end"]
