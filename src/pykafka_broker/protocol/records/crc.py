"""CRC-32C (Castagnoli), the checksum of record batches: `crc32c(data) -> int` over any contiguous buffer.

The extension of the `crc32c` package computes it (with SSE 4.2 or ARMv8 instructions if available; 1 MiB in
about 40 us). Its package module also imports argparse and importlib.metadata for a command-line tool, 30 ms
at the start, so only the extension module is loaded (3 ms); the package is the fallback.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

from pykafka_broker.protocol.buffers import Buffer


def _load() -> Callable[[Buffer], int]:
    package = PathFinder.find_spec("crc32c")
    locations = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec("_crc32c", locations) if locations else None
    if spec is None or spec.loader is None:
        from crc32c import crc32c as function

        return function
    extension = module_from_spec(spec)
    spec.loader.exec_module(extension)
    return extension.crc32c  # type: ignore[no-any-return]


crc32c: Callable[[Buffer], int] = _load()
