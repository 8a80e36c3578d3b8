"""`make check` compares the generated pages with their sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from interop import pages


def test_a_page_that_was_changed_by_hand_is_refused(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    pages.write(tmp_path)
    pages.check(tmp_path)

    with (tmp_path / "docs" / "configuration.md").open("a") as page:
        page.write("By hand.\n")

    with pytest.raises(SystemExit, match=r"^docs/configuration\.md is not .*: run `make fix`$"):
        pages.check(tmp_path)
