"""The sections of the front pages that name what there is: APIs, commands, protection, the rooms of the code.

Each is made of the lists that the code itself goes by, so that the next API, command or room is told too.
"""

from __future__ import annotations

import ast
import textwrap
import tomllib
from collections.abc import Iterable
from pathlib import Path

import click

from pykafka_broker.apis import APIS
from pykafka_broker.apis.controller_apis import CONTROLLER_APIS
from pykafka_broker.apis.not_yet_served import NOT_YET_SERVED
from pykafka_broker.cli import COMMANDS, cli
from pykafka_broker.cluster.features import (
    METADATA_VERSION_NAMES,
    NODE_FEATURES,
    SERVED_FEATURES,
)
from pykafka_broker.cluster.image import METADATA_VERSION
from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from pykafka_broker.config.listeners import SECURITY_PROTOCOLS
from pykafka_broker.config.sasl_listeners import LOGIN_MODULES
from pykafka_broker.config.sources import STANDALONE
from pykafka_broker.controller.core.client_quotas import QUOTAS_OF_ADDRESSES, QUOTAS_OF_CLIENTS
from pykafka_broker.coordinator.groups.core.kinds import KINDS
from pykafka_broker.protocol.records.compression import Codec

REPOSITORY = Path(__file__).parents[1]
SOURCE = REPOSITORY / "src" / "pykafka_broker"
WIDTH = 120


# --- README.md ----------------------------------------------------------------------------------------------


def served() -> str:
    """What a client finds, by kind, with the page that has more."""
    features = ", ".join(
        f"`{name}` {level}" for name, level in SERVED_FEATURES.items() if name != METADATA_VERSION
    )
    lowest, highest = (METADATA_VERSION_NAMES[NODE_FEATURES[METADATA_VERSION][end]] for end in (0, 1))
    unserved = sum(map(len, NOT_YET_SERVED.values()))
    apis = f"{len(APIS)} of the {len(APIS) + unserved}" if unserved else f"all {len(APIS)}"
    missing = (
        f"{feature} ({', '.join(names)})" if names else feature for feature, names in NOT_YET_SERVED.items()
    )
    return table(
        "what | served | more",
        [
            (
                "APIs",
                f"{apis} that Apache Kafka 4.3 serves on listeners of brokers, {len(CONTROLLER_APIS)} on "
                "those of controllers, each at every version",
                "[all of them](docs/conformance.md#every-api)",
            ),
            (
                "features",
                f"{features}; `metadata.version` from {lowest} to {highest}",
                "[docs/migrate.md](docs/migrate.md)",
            ),
            (
                "groups",
                ", ".join(kind.__name__.removesuffix("Group").lower() for kind in KINDS),
                "[docs/cli.md](docs/cli.md)",
            ),
            (
                "compression",
                ", ".join(codec.name.lower() for codec in Codec if codec is not Codec.NONE),
                "[log/FORMAT.md](src/pykafka_broker/log/FORMAT.md)",
            ),
            (
                "quotas",
                _listed((*QUOTAS_OF_CLIENTS, *QUOTAS_OF_ADDRESSES)),
                "[docs/cli.md](docs/cli.md#quotas-describe)",
            ),
            ("listeners", _listed(SECURITY_PROTOCOLS), "[docs/security.md](docs/security.md)"),
            (
                "logins",
                _listed(LOGIN_MODULES),
                "[docs/oauth.md](docs/oauth.md), [docs/tokens.md](docs/tokens.md)",
            ),
            (
                "not yet",
                "; ".join(missing),
                "[docs/configuration.md](docs/configuration.md#broker-keys-that-are-refused)",
            ),
        ],
    )


# --- SECURITY.md --------------------------------------------------------------------------------------------


def protection() -> str:
    """What a configuration can ask for, and what there is without one."""
    return table(
        "of a listener | what there is | without configuration",
        [
            ("address", "any", f"`{STANDALONE['listeners']}` alone"),
            (
                "security protocols",
                _listed(SECURITY_PROTOCOLS),
                f"`{STANDALONE['listeners'].partition(':')[0]}`",
            ),
            ("logins (SASL)", _listed(LOGIN_MODULES), "none: every client is `User:ANONYMOUS`"),
            (
                "rights",
                f"ACLs (`{STANDARD_AUTHORIZER}`)",
                "none are asked for: every client may do everything",
            ),
        ],
    )


# --- docs/cli.md --------------------------------------------------------------------------------------------


def commands() -> str:
    """Each command with those below it, and the line that `--help` shows."""
    context = click.Context(cli)
    rows = []
    for name, (_, _, line) in COMMANDS.items():
        command = cli.get_command(context, name)
        inner = command.list_commands(context) if isinstance(command, click.Group) else ()
        rows.append((f"`{name}`", _listed(inner), line))
    return table("command | below it | what it does", rows)


# --- docs/architecture.md -----------------------------------------------------------------------------------


def rooms() -> str:
    """The packages by the layers of their contract, each with the first sentence of its docstring."""
    contracts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    [layers] = [one["layers"] for one in contracts if one.get("containers") == ["pykafka_broker"]]
    indent = 2 + max(len(name) for layer in layers for name in layer.split(" | "))
    lines = ["```text"]
    for layer in layers:
        for name in layer.split(" | "):
            head = f"{name + '/':<{indent}}"
            lines += textwrap.wrap(
                head + _first_sentence(SOURCE / name / "__init__.py"), WIDTH, subsequent_indent=" " * indent
            )
        lines.append("─" * WIDTH)
    return "\n".join([*lines[:-1], "```", ""])


def _first_sentence(file: Path) -> str:
    text = " ".join((ast.get_docstring(ast.parse(file.read_text())) or "").split())
    sentence, dot, _ = text.partition(". ")
    return sentence + dot.strip()


# --- tables -------------------------------------------------------------------------------------------------


def table(head: str, rows: Iterable[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    lines = [head, "|".join("---" for _ in head.split("|")), *(" | ".join(row) for row in rows)]
    return "".join(f"|{line}|\n" if set(line) == {"-", "|"} else f"| {line} |\n" for line in lines)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
