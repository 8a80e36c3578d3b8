"""The page on configuration says what the tables of keys say."""

from __future__ import annotations

import re
from collections import Counter

from pykafka_broker.config import reference
from pykafka_broker.config.authorizer import AUTHORIZER_KEYS
from pykafka_broker.config.broker import BROKER, DYNAMIC_ONLY_KEYS
from pykafka_broker.config.client_metrics import CLIENT_METRICS
from pykafka_broker.config.group import GROUP
from pykafka_broker.config.sources import STANDALONE
from pykafka_broker.config.topic import TOPIC

PAGE = reference.page()


def rows() -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]


def test_every_key_of_every_kind_stands_on_the_page_once() -> None:
    listed = Counter(row[0].strip("`") for row in rows() if re.fullmatch(r"`[a-z0-9.]+`", row[0]))
    authorizer = {key.name for key in AUTHORIZER_KEYS}
    dynamic_only = {key.name for key in DYNAMIC_ONLY_KEYS}
    tables = [*BROKER, *dynamic_only, *TOPIC, *GROUP, *CLIENT_METRICS, *STANDALONE, *authorizer]
    assert listed == Counter(tables)


def test_a_row_says_all_there_is_to_know_about_a_key() -> None:
    assert [
        "`max.connections.per.ip`",
        "int",
        "`2147483647`",
        "[0,...]",
        "cluster-wide",
        "Connections open at once from one address.",
    ] in rows()
    assert [
        "`retention.ms`",
        "long",
        "`604800000`",
        "[-1,...]",
        "How long records are kept; -1 is for ever.",
        "`log.retention.ms`, `log.retention.minutes`, `log.retention.hours`",
    ] in rows()


def test_differences_are_told_of_keys_that_there_are() -> None:
    assert reference.DIFFERENCES.keys() <= BROKER.keys()
    for name, text in reference.DIFFERENCES.items():
        assert PAGE.count(f"**Here:** {text}") == 1, name
