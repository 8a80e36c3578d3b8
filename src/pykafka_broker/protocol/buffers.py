"""`Buffer`: the type of bytes that are read without a copy."""

from __future__ import annotations

from typing import Union

#: Contiguous bytes that can be sliced.
Buffer = Union[bytes, bytearray, memoryview]
