"""What the lanes of tools share: a check that is run and reported."""

from __future__ import annotations

import traceback
from collections.abc import Callable


def tried(title: str, check: Callable[[], None], report: Callable[[str], None]) -> list[str]:
    """Run a check and report how it went; its failure, if there is one."""
    try:
        check()
    except Exception as error:
        report(f"{title:<72}FAIL")
        return [f"{title}: {error}\n{traceback.format_exc(limit=-3)}"]
    report(f"{title:<72}ok")
    return []
