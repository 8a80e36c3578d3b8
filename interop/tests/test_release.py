"""`make release` tags what is committed, described, and works when it is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from interop.release import entry, obstacles, try_out
from pykafka_broker import __version__

RELEASED = "# Changelog\n\n## 2.0.0 - 2030-01-02\n\n* It flies.\n\n## 1.0.0\n\n* It walks.\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose only commit can be released as 2.0.0."""
    (tmp_path / "CHANGELOG.md").write_text(RELEASED)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Fly")
    return tmp_path


def git(repository: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(repository), *arguments], check=True)


def test_a_commit_with_an_entry_for_its_version_is_released_once(repository: Path) -> None:
    assert obstacles(repository, "2.0.0") == []

    git(repository, "tag", "v2.0.0")

    assert obstacles(repository, "2.0.0") == [
        "v2.0.0 is tagged already: set __version__ in src/pykafka_broker/__init__.py"
    ]


def test_a_version_that_the_changelog_does_not_name_is_not_released(repository: Path) -> None:
    assert obstacles(repository, "2.0") == ["CHANGELOG.md has no entry for 2.0"]


def test_files_that_are_in_no_commit_are_not_released(repository: Path) -> None:
    (repository / "new.py").touch()

    assert obstacles(repository, "2.0.0") == ["A release is of a commit. These files are in none:\n?? new.py"]


def test_changes_that_are_still_called_unreleased_are_not_released(repository: Path) -> None:
    changelog = RELEASED.replace("# Changelog\n", "# Changelog\n\n## Unreleased\n\n* It dives.\n")
    (repository / "CHANGELOG.md").write_text(changelog)
    git(repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "Dive")

    assert obstacles(repository, "2.0.0") == [
        'CHANGELOG.md calls changes "Unreleased": are they those of 2.0.0?'
    ]


@pytest.mark.parametrize(
    ("version", "text"), [("2.0.0", "* It flies."), ("1.0.0", "* It walks."), ("2.0", ""), ("0.0", "")]
)
def test_an_entry_is_what_stands_below_the_heading_of_a_version(version: str, text: str) -> None:
    assert entry(RELEASED, version) == text


@pytest.mark.slow
def test_an_installed_command_carries_a_record() -> None:
    program = Path(sys.executable).with_name("pykafka-broker")

    try_out(program)
    with pytest.raises(AssertionError, match=f"version {__version__}"):
        try_out(program, "0.0.0")
