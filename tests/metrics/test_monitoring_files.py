"""The dashboard, the alerts and the files for containers ask for what there is: declared metrics, their
labels, errors, requests and containers. `test_prometheus.py` runs them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import pytest
import yaml

from pykafka_broker.apis import APIS
from pykafka_broker.config.sources import load_config
from pykafka_broker.metrics.families import FAMILIES
from pykafka_broker.network.request_times import CONSUMER_FETCH, FOLLOWER_FETCH
from pykafka_broker.protocol.errors import ErrorCode
from tests.support.pages import REPOSITORY

PROMETHEUS = REPOSITORY / "packaging" / "prometheus"
DASHBOARD = json.loads((REPOSITORY / "packaging" / "grafana" / "kafka.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
DOCKER = REPOSITORY / "docker"

#: A metric and its matchers; the labels of an aggregation or a join; a label and the values it must have.
SELECTOR = re.compile(r"(?<![\w:])([a-zA-Z_:][\w:]*)\{([^}]*)\}")
LABELS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
NAME = re.compile(r"(?<![\w:$])[a-zA-Z_:][\w:]*(?![\w:]|\s*\()")
OPERATORS = frozenset({"and", "or", "unless", "offset", "bool"})
#: The labels that Prometheus adds.
OF_TARGETS = frozenset({"job", "instance"})


def read(name: str) -> Any:
    return yaml.safe_load((PROMETHEUS / name).read_text())


RULES = [
    rule for name in ("lag.yml", "alerts.yml") for group in read(name)["groups"] for rule in group["rules"]
]
ALERTS = [rule for rule in RULES if "alert" in rule]


def known() -> dict[str, frozenset[str]]:
    """The labels of each metric that Prometheus has."""
    labels = {family.name: frozenset(family.labels.split()) | OF_TARGETS for family in FAMILIES}
    labels |= {"up": OF_TARGETS, "ALERTS": OF_TARGETS | {"alertname", "alertstate"}}
    for rule in RULES:
        if "record" in rule:
            labels[rule["record"]] = frozenset(LABELS.findall(rule["expr"])[-1].split(", "))
    return labels


KNOWN = known()


class Expression(NamedTuple):
    """An expression, and the texts that show labels of its result."""

    where: str
    text: str
    shown: str

    @property
    def metrics(self) -> set[str]:
        bare = re.sub(r'"[^"]*"|\[[^\]]*\]', "", self.text)
        return set(NAME.findall(LABELS.sub("", re.sub(r"\{[^}]*\}", "", bare)))) - OPERATORS

    def selected(self) -> Iterator[tuple[str, str, str]]:
        """Each metric with a label that it must have, and the label's values."""
        for metric, matchers in SELECTOR.findall(self.text):
            for label, values in MATCHER.findall(matchers):
                yield metric, label, values


EXPRESSIONS = [
    *(
        Expression(panel["title"], target["expr"], target.get("legendFormat", ""))
        for panel in PANELS
        for target in panel["targets"]
    ),
    *(
        Expression(rule.get("alert", rule.get("record")), rule["expr"], str(rule.get("annotations", "")))
        for rule in RULES
    ),
]


def test_the_expressions_can_be_read() -> None:
    read_from = Expression(
        "", 'sum by (a, b) (rate(x_total{a=~"y|z"}[5m] offset 1m)) / 2 > bool up and on (c) w', ""
    )
    assert read_from.metrics == {"x_total", "up", "w"}
    assert list(read_from.selected()) == [("x_total", "a", "y|z")]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda expression: expression.where)
def test_an_expression_asks_for_metrics_and_labels_that_there_are(expression: Expression) -> None:
    assert expression.metrics
    assert expression.metrics - KNOWN.keys() == set()
    assert [(metric, label) for metric, label, _ in expression.selected() if label not in KNOWN[metric]] == []
    there = frozenset().union(*(KNOWN[metric] for metric in expression.metrics))
    named = {label for labels in LABELS.findall(expression.text) for label in labels.split(", ") if label}
    named |= set(re.findall(r"\{\{ ?(?:\$labels\.)?([a-zA-Z]+) ?\}\}", expression.shown))
    assert named - there == set()


def test_the_errors_and_requests_that_are_asked_for_can_occur() -> None:
    there = {
        "error": [code.name for code in ErrorCode],
        "request": [*(api.name for api in APIS), CONSUMER_FETCH, FOLLOWER_FETCH],
    }
    asked = {
        (label, value)
        for expression in EXPRESSIONS
        for _, label, values in expression.selected()
        for value in values.split("|")
        if label in there
    }
    assert [one for one in asked if not any(re.fullmatch(one[1], name) for name in there[one[0]])] == []
    assert {label for label, _ in asked} == set(there)


def test_each_alert_has_a_test_in_which_it_fires() -> None:
    assert read("prometheus.yml")["rule_files"] == read("alerts_test.yml")["rule_files"]
    fired = re.findall(r'alertname="(\w+)"', (PROMETHEUS / "alerts_test.yml").read_text())
    assert set(fired) == {rule["alert"] for rule in ALERTS}
    assert {rule["labels"]["severity"] for rule in ALERTS} == {"critical", "warning"}


def test_the_panels_have_their_places_and_the_variables_that_they_name() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < 24 and not cells & taken, panel["title"]
        taken |= cells
    identifiers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(identifiers)) == len(identifiers)
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    variables = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    assert set(re.findall(r"\$\{?([a-z]+)", json.dumps(DASHBOARD))) == variables


def test_the_containers_beside_a_cluster_find_each_other_and_their_files() -> None:
    nodes = yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"]
    services = yaml.safe_load((DOCKER / "monitoring.yaml").read_text())["services"]
    prometheus, grafana = services.pop("prometheus"), services.pop("grafana")
    assert list(services) == list(nodes)
    scraped = []
    for name, service in services.items():
        [listener] = load_config(
            environ=nodes[name]["environment"] | service["environment"]
        ).metrics_listeners
        scraped.append(f"{name}:{listener.port}")
        assert listener.host == ""
    assert read("prometheus.yml")["scrape_configs"][0]["static_configs"][0]["targets"] == scraped

    mounted = {}
    for container in (prometheus, grafana):
        for volume in container["volumes"]:
            source, target, *_ = volume.split(":")
            if source.startswith("."):
                assert (DOCKER / source).exists(), source
                mounted[target] = (DOCKER / source).resolve()
    assert mounted["/etc/prometheus"] == PROMETHEUS
    provisioning = mounted["/etc/grafana/provisioning"]
    [source] = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    [provider] = yaml.safe_load((provisioning / "dashboards" / "kafka.yml").read_text())["providers"]
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert str(PurePosixPath(home).parent) == provider["options"]["path"]
    assert json.loads(mounted[home].read_text()) == DASHBOARD
