"""The stories of exactly-once, one after the other; the files of one that failed are kept."""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from pykafka_broker.testing.cache import CACHE
from pykafka_broker.testing.processes import BrokerProcess

Story = Callable[[type[BrokerProcess]], str]


def run(
    stories: Sequence[Story], kind: type[BrokerProcess], only: str, report: Callable[[str], None]
) -> list[str]:
    failures = []
    for story in stories:
        title = title_of(story)
        if only not in title:
            continue
        started = time.monotonic()
        kept = CACHE / "exactly-once" / story.__name__
        try:
            seen = story(keeping(kind, kept))
        except Exception as error:
            failures.append(f"{title}: {error}\n{traceback.format_exc(limit=-3)}\nits files are in {kept}")
            report(f"{title:<64}FAIL")
        else:
            shutil.rmtree(kept)
            report(f"{title:<64}ok   {time.monotonic() - started:.0f} s: {seen}")
    return failures


def title_of(story: Story) -> str:
    return story.__name__.replace("_", " ")


def keeping(kind: type[BrokerProcess], folder: Path) -> type[BrokerProcess]:
    """Brokers of this kind whose folder is still there when they are closed."""

    class Kept(kind):  # type: ignore[misc, valid-type]
        def __init__(self, properties: dict[str, str]) -> None:
            shutil.rmtree(folder, ignore_errors=True)
            super().__init__(properties, folder)

    return Kept
