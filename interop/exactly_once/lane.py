"""The stories of exactly-once, one after the other; the files of one that failed are kept."""

from __future__ import annotations

import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from interop.world import Broker

#: Makes a broker with these properties, to be started by `with`.
Kind = Callable[[Mapping[str, str]], Broker]
Story = Callable[[Kind], str]


def run(
    stories: Sequence[Story],
    kind: Callable[[Mapping[str, str], Path], Broker],
    only: str,
    report: Callable[[str], None],
) -> list[str]:
    """Run the stories with `only` in their titles, each with a broker of this kind; what failed."""
    failures = []
    for story in stories:
        title = title_of(story)
        if only not in title:
            continue
        started = time.monotonic()
        kept = Path(tempfile.mkdtemp(prefix=f"{story.__name__}-"))
        try:
            seen = story(partial(made, kind, kept))
        except Exception as error:
            failures.append(f"{title}: {error}\n{traceback.format_exc(limit=-3)}\nits files are in {kept}")
            report(f"{title:<64}FAIL")
        else:
            shutil.rmtree(kept)
            report(f"{title:<64}ok   {time.monotonic() - started:.0f} s: {seen}")
    return failures


def title_of(story: Story) -> str:
    return story.__name__.replace("_", " ")


def made(
    kind: Callable[[Mapping[str, str], Path], Broker], folder: Path, properties: Mapping[str, str]
) -> Broker:
    return kind(properties, folder)
