"""A schema in a file of JSON, as JSON Schema and Avro have it."""

from __future__ import annotations

import json
from typing import Any

from pykafka_broker.log.disk.files import OsFileSystem


def read_schema(path: str) -> Any:
    """The content of the file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no JSON; the message names it.
    """
    data = OsFileSystem().read_file(path)
    try:
        return json.loads(data)
    except ValueError as error:
        raise ValueError(f"{path} is no JSON: {error}") from None
