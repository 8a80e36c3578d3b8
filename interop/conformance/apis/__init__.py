"""The conversations: one file per API, named like its message file, and `framing` for what is below them."""

from __future__ import annotations

FILES = (
    "framing",
    "api_versions",
    "metadata",
)
