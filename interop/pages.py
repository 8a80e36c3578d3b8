"""The pages that are generated. `python -m interop.pages`, a part of `make fix`, writes them; with `--check`,
a part of `make check`, it refuses those that are not what their sources say.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from interop import proofs
from interop.conformance import results, table
from pykafka_broker.config import reference

REPOSITORY = Path(__file__).parents[1]


class Page(NamedTuple):
    path: str
    text: Callable[[], str]


PAGES = (
    Page("docs/configuration.md", reference.page),
    Page("docs/conformance.md", lambda: table.page(results.load())),
    Page("docs/proofs.md", lambda: proofs.page(proofs.load())),
)


def write(folder: Path = REPOSITORY) -> None:
    for page in PAGES:
        (folder / page.path).write_text(page.text())


def check(folder: Path = REPOSITORY) -> None:
    """End the process if a page is not what its source says."""
    outdated = [page.path for page in PAGES if (folder / page.path).read_text() != page.text()]
    if outdated:
        sys.exit("\n".join(f"{path} is not what its source says: run `make fix`" for path in outdated))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m interop.pages", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if one is outdated")
    if parser.parse_args().check:
        check()
    else:
        write()
