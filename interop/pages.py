"""The pages that are generated, and the sections of others. `python -m interop.pages`, a part of `make fix`,
writes them; with `--check`, a part of `make check`, it refuses those that are not what their sources say.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from interop import bench_page, front_pages, monitoring_page, proofs, scale_page
from interop.conformance import results, table
from pykafka_broker.config import reference
from pykafka_broker.metrics import reference as metrics_reference

REPOSITORY = Path(__file__).parents[1]


class Page(NamedTuple):
    """A page that is generated as a whole."""

    path: str
    text: Callable[[], str]

    def made(self, _: str) -> str:
        return self.text()


class Section(NamedTuple):
    """What stands on a page between the comments `<!-- name: generated -->` and `<!-- end of name -->`."""

    path: str
    name: str
    text: Callable[[], str]

    def made(self, page: str) -> str:
        """The page with this section as its source says.

        Raises:
            ValueError: it lacks the comments.
        """
        before, begin, rest = page.partition(f"<!-- {self.name}: generated -->\n")
        _, end, after = rest.partition(f"<!-- end of {self.name} -->\n")
        if not begin or not end:
            raise ValueError(f"{self.path} has no section {self.name!r}")
        return f"{before}{begin}{self.text()}{end}{after}"


PAGES: tuple[Page | Section, ...] = (
    Page("docs/configuration.md", reference.page),
    Page("docs/metrics.md", metrics_reference.page),
    Page("docs/conformance.md", lambda: table.page(results.load())),
    Page("docs/proofs.md", lambda: proofs.page(proofs.load())),
    Section("README.md", "served", front_pages.served),
    Section("SECURITY.md", "protection", front_pages.protection),
    Section("docs/architecture.md", "rooms", front_pages.rooms),
    Section("docs/cli.md", "commands", front_pages.commands),
    Section("docs/operations.md", "alerts", monitoring_page.alerts),
    Section("docs/operations.md", "panels", monitoring_page.panels),
    *(
        Section("bench/README.md", text.__name__, bench_page.section(text, rows))
        for text, rows in bench_page.SECTIONS
    ),
    *(
        Section("docs/scale.md", text.__name__, scale_page.section(text, part))
        for text, part in scale_page.SECTIONS
    ),
)


def write(folder: Path = REPOSITORY) -> None:
    for page in PAGES:
        file = folder / page.path
        file.write_text(page.made(file.read_text() if file.exists() else ""))


def check(folder: Path = REPOSITORY) -> None:
    """End the process if a page is not what its source says."""
    now = {page: (folder / page.path).read_text() for page in PAGES}
    if outdated := dict.fromkeys(page.path for page, text in now.items() if page.made(text) != text):
        sys.exit("\n".join(f"{path} is not what its source says: run `make fix`" for path in outdated))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m interop.pages", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if one is outdated")
    if parser.parse_args().check:
        check()
    else:
        write()
