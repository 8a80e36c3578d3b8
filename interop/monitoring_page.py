"""The sections of docs/operations.md that say what is in packaging/prometheus and packaging/grafana."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from interop.front_pages import table

PACKAGING = Path(__file__).parents[1] / "packaging"
RULES = PACKAGING / "prometheus" / "alerts.yml"
DASHBOARD = PACKAGING / "grafana" / "kafka.json"


def alerts() -> str:
    """The alerts, in the order of their file."""
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    return table(
        "alert | severity | after | what to do",
        [
            (
                f"`{rule['alert']}`",
                rule["labels"]["severity"],
                rule.get("for", "at once"),
                rule["annotations"]["description"],
            )
            for rule in rules
        ],
    )


def panels() -> str:
    """The panels of the dashboard, by row."""
    rows: list[tuple[str, list[str]]] = []
    panel: dict[str, Any]
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        if panel["type"] == "row":
            rows.append((panel["title"], []))
        else:
            rows[-1][1].append(panel["title"])
    return table("row | panels", [(row, "; ".join(titles)) for row, titles in rows])
