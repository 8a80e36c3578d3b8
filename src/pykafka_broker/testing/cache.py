"""The cache folder for files that are fetched or built once: Apache Kafka's jars, programs of other clients.

In a checkout of the repository it is `.cache` at its top; where the package is installed, `pykafka-broker`
in the user's cache folder (`$XDG_CACHE_HOME`, or `~/.cache`).
"""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder, which need not exist yet."""
    above_source = Path(__file__).resolve().parents[3]
    if (above_source / "pyproject.toml").is_file():
        return above_source / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pykafka-broker"


CACHE = cache_folder()
