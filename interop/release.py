"""A release, up to its tag: `make release`. Its version is `pykafka_broker.__version__`.

    python -m interop.release --dry-run      the same without the tag; what is in its way does not end it

Beforehand one commit sets `__version__`, the only place of the version, and puts it in the place of
"Unreleased" in CHANGELOG.md. Then this builds the wheel and the sdist into `dist/`, installs each into an
environment of its own, has it start a broker, write and read a record, and tags the commit. The tag is
pushed, and `dist/` uploaded, by hand.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from interop.proofs import REPOSITORY, git
from pykafka_broker import __version__
from pykafka_broker.testing.processes import PykafkaBroker

#: For each kind, what `hatchling` calls it and how its file ends.
DISTRIBUTIONS = {"wheel": ".whl", "sdist": ".tar.gz"}


def main(arguments: list[str] | None = None) -> None:
    """Tag the version, or end the process with what is in the way."""
    parser = argparse.ArgumentParser(prog="python -m interop.release", description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="do all of it but the tag")
    is_dry_run = parser.parse_args(arguments).dry_run
    # Which would be imported in the place of what is installed.
    os.environ.pop("PYTHONPATH", None)
    in_the_way = obstacles()
    if in_the_way and not is_dry_run:
        sys.exit("\n".join(in_the_way))
    for distribution in build(REPOSITORY / "dist"):
        with tempfile.TemporaryDirectory(prefix="pykafka-broker-release-") as folder:
            try_out(installed(distribution, Path(folder)))
        print(
            f"{distribution.name}: installed, {distribution.stat().st_size / 1e6:.1f} MB; a record came back"
        )
    if in_the_way:
        sys.exit("\n".join(["Not to be released yet.", *in_the_way]))
    if is_dry_run:
        print(f"v{__version__} can be tagged.")
    else:
        git("tag", "--annotate", f"v{__version__}", "--message", f"pykafka_broker {__version__}")
        print(f"Tagged. Now: git push origin v{__version__}, and upload what is in dist/.")


def obstacles(repository: Path = REPOSITORY, version: str = __version__) -> list[str]:
    """What speaks against a release of the commit that is checked out, each with the way out."""
    found = []
    if changed := git("status", "--porcelain", repository=repository):
        found.append(f"A release is of a commit. These files are in none:\n{changed}")
    if git("tag", "--list", f"v{version}", repository=repository):
        found.append(f"v{version} is tagged already: set __version__ in src/pykafka_broker/__init__.py")
    changelog = (repository / "CHANGELOG.md").read_text()
    if not entry(changelog, version):
        found.append(f"CHANGELOG.md has no entry for {version}")
    if entry(changelog, "Unreleased"):
        found.append(f'CHANGELOG.md calls changes "Unreleased": are they those of {version}?')
    return found


def entry(changelog: str, version: str) -> str:
    """What the changelog says below the heading of a version; empty if there is nothing."""
    found = re.search(
        rf"^## {re.escape(version)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    return found[1].strip() if found else ""


def build(folder: Path) -> list[Path]:
    """Build every kind of distribution into a folder, from which older ones are removed."""
    for ending in DISTRIBUTIONS.values():
        for older in folder.glob(f"*{ending}"):
            older.unlink()
    targets = [option for kind in DISTRIBUTIONS for option in ("--target", kind)]
    command = [*(sys.executable, "-m", "hatchling", "build", "--directory", str(folder)), *targets]
    subprocess.run(command, cwd=REPOSITORY, check=True)
    return [
        folder / f"pykafka_broker-{__version__}{'-py3-none-any' if kind == 'wheel' else ''}{ending}"
        for kind, ending in DISTRIBUTIONS.items()
    ]


def installed(distribution: Path, folder: Path) -> Path:
    """Install a distribution, and what it needs, into a new environment; return its command."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    pip = [*(str(programs / "python"), "-m", "pip", "install", "-q"), "--disable-pip-version-check"]
    subprocess.run([*pip, str(distribution)], check=True)
    return programs / "pykafka-broker"


def try_out(program: Path, version: str = __version__) -> None:
    """Have an installed command say its version, run a broker, and carry a record through it.

    Raises:
        AssertionError: it says or carries something else.
    """

    def said(*arguments: str) -> str:
        return subprocess.run([str(program), *arguments], capture_output=True, text=True, check=True).stdout

    class Installed(PykafkaBroker):
        def command(self) -> list[str]:
            return [str(program), *super().command()[super().command().index("start") :]]

    assert (told := said("--version")) == f"pykafka-broker, version {version}\n", told
    with Installed() as broker:
        said("produce", "released", "hello", "-b", broker.address)
        read = said("consume", "released", "--until", "end", "-b", broker.address)
    assert read.splitlines()[:1] == ["hello"], read


if __name__ == "__main__":
    main()
