"""The option that writes the transcripts anew."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what the transcripts should say; read the diff before you commit it",
    )
