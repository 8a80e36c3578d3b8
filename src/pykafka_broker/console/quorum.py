"""The quorum of controllers, and the levels of features."""

from __future__ import annotations

from pykafka_broker.cli.features import described_features, feature_table
from pykafka_broker.cli.quorum import described_quorum, quorum_table
from pykafka_broker.console.page import Page, Section, if_told, listing
from pykafka_broker.console.visit import Visit


def show(visit: Visit) -> Page:
    """The page of the quorum and of features."""
    return Page(
        "Quorum and features",
        (
            Section(
                "Quorum",
                if_told(lambda: (listing(quorum_table(described_quorum(visit.client)), "Metadata log"),)),
            ),
            Section(
                "Features",
                if_told(lambda: (listing(feature_table(described_features(visit.client)), "Features"),)),
            ),
        ),
    )
