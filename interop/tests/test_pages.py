"""`make check` compares the generated pages and sections with their sources."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from interop import front_pages, pages
from interop.front_pages import rooms, served
from pykafka_broker.apis import APIS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The pages of the repository, elsewhere."""
    for page in pages.PAGES:
        (tmp_path / page.path).parent.mkdir(exist_ok=True)
        shutil.copy(pages.REPOSITORY / page.path, tmp_path / page.path)
    return tmp_path


def test_a_page_that_was_changed_by_hand_is_refused(folder: Path) -> None:
    pages.write(folder)
    pages.check(folder)

    with (folder / "docs" / "configuration.md").open("a") as page:
        page.write("By hand.\n")

    with pytest.raises(SystemExit, match=r"^docs/configuration\.md is not .*: run `make fix`$"):
        pages.check(folder)


def test_a_section_that_was_changed_by_hand_is_refused_and_what_stands_around_it_is_not(folder: Path) -> None:
    page = folder / "README.md"
    page.write_text(f"By hand.\n{page.read_text()}By hand.\n")
    pages.check(folder)

    page.write_text(
        page.read_text().replace("<!-- end of served -->", "| by | hand | |\n<!-- end of served -->")
    )
    with pytest.raises(SystemExit, match=r"^README\.md is not .*: run `make fix`$"):
        pages.check(folder)

    pages.write(folder)
    pages.check(folder)
    assert page.read_text().startswith("By hand.\n")


def test_a_section_whose_comments_are_gone_is_missed(folder: Path) -> None:
    (folder / "README.md").write_text("Nothing.\n")
    with pytest.raises(ValueError, match=r"README\.md has no section 'served'"):
        pages.check(folder)


def test_the_next_api_and_the_next_room_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert f"| all {len(APIS)} that " in served()
    monkeypatch.setattr(front_pages, "APIS", APIS[1:])
    monkeypatch.setattr(front_pages, "NOT_YET_SERVED", {"brewing": ("BrewTea",)})
    assert f"| {len(APIS) - 1} of the {len(APIS)} that " in served()
    assert "| not yet | brewing (BrewTea) |" in served()

    contract = 'containers = ["pykafka_broker"]\nlayers = ["attic | cellar"]\n'
    (tmp_path / "pyproject.toml").write_text(f"[[tool.importlinter.contracts]]\n{contract}")
    for name, text in (
        ("attic", '"""Old things. And more."""'),
        ("cellar", '"""Wine: much\nof it.\n\n    red"""'),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
    monkeypatch.setattr(front_pages, "REPOSITORY", tmp_path)
    monkeypatch.setattr(front_pages, "SOURCE", tmp_path)
    assert rooms() == "```text\nattic/  Old things.\ncellar/ Wine: much of it.\n```\n"
