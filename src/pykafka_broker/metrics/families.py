"""All families, in the order of the page."""

from __future__ import annotations

from pykafka_broker.metrics import process
from pykafka_broker.metrics.family import Family

FAMILIES: tuple[Family, ...] = process.FAMILIES
