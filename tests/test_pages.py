"""The commands of the pages in docs/ do what is shown: each page is typed from its top to its end.
Their links lead somewhere.
"""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from pykafka_broker.cli import cli
from pykafka_broker.testing.processes import free_port
from tests.support.pages import ADDRESS, REPOSITORY, START, Command, Terminal, blocks, commands

PAGES = [
    page
    for page in sorted((REPOSITORY / "docs").glob("*.md"))
    # tests/test_cluster_page.py, tests/test_security_page.py and tests/spark type these.
    if "```console" in page.read_text() and page.name not in ("cluster.md", "security.md", "spark.md")
]
#: What installs, or needs a container engine.
NOT_TYPED = (
    *("make ", "docker ", "python3 -m pip ", "pipx ", "uv "),
    *("sudo useradd ", "sudo python3 ", "sudo ln ", "sudo /opt/", "sudo install ", "sudo systemctl enable "),
)
#: What a reader of the page has before its first command.
BEFORE = {
    "migrate.md": [
        "pykafka-broker topics create orders",
        "pykafka-broker produce orders one two three",
        "pykafka-broker consume orders --group readers --until end",
    ],
}
#: Where the broker of a page has its data, if not where one that is started without a file has it.
FOLDERS = {"operations.md": "data"}
PROPERTIES = f"""\
process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://{ADDRESS},CONTROLLER://127.0.0.1:0
log.dirs=FOLDER
offsets.topic.replication.factor=1
"""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_do_what_it_shows(page: Path, tmp_path: Path) -> None:
    sessions = blocks(f"docs/{page.name}", "console")
    typed = [one for session in sessions for one in commands(session) if not one.line.startswith(NOT_TYPED)]
    with Terminal(f"127.0.0.1:{free_port()}", tmp_path) as terminal:
        properties = PROPERTIES.replace(ADDRESS, terminal.address)
        properties = properties.replace("FOLDER", FOLDERS.get(page.name, "pykafka-data"))
        (tmp_path / "server.properties").write_text(properties)
        terminal.type(Command(f"{START} --config server.properties", ""))
        for line in BEFORE.get(page.name, []):
            terminal.type(Command(line, ""))
        for command in typed:
            terminal.type(command)


@pytest.mark.parametrize(
    "page",
    ["README.md", "SECURITY.md", *(f"docs/{page.name}" for page in (REPOSITORY / "docs").glob("*.md"))],
)
def test_commands_that_are_not_typed_have_names_and_options_that_there_are(page: str) -> None:
    said = re.findall(r"`pykafka-broker ([^`]+)`", (REPOSITORY / page).read_text())
    for block in blocks(page, "bash"):
        said += re.findall(r"^(?:docker compose .* )?pykafka-broker (.+)$", block, re.MULTILINE)
    wrong = []
    for line in said:
        words = re.split(r" +#| \|\| ", line)[0].split()
        command: click.Command | None = cli
        while isinstance(command, click.Group) and words and words[0].islower() and words[0][0] != "-":
            command = command.get_command(click.Context(cli), words.pop(0))
        parameters = command.params if command else []
        known = {"--help", *(name for one in parameters for name in (*one.opts, *one.secondary_opts))}
        options = {word.partition("=")[0] for word in words if word.startswith("-")}
        if command is None or not options <= known:
            wrong.append(line)
    assert wrong == []


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "folder",
    ["", "docs", "docs/decisions", "bench", "interop", "examples", "tests", "src/pykafka_broker/log"],
)
def test_links_lead_to_pages_and_headings_that_there_are(folder: str) -> None:
    broken = []
    for page in (REPOSITORY / folder).glob("*.md"):
        for path, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", page.read_text()):
            target = page.parent / path if path else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{page.name}: {path}#{anchor}")
    assert broken == []
