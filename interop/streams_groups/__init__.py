"""Random questions about streams groups, and our answers, to be compared with those of Apache Kafka's code:
who gets which task (`assignments.py`), what a topology needs (`topologies.py`), what a member has next
(`steps.py`), and what is written of it all (`records.py`). `__main__.py` asks both. `live.py` lets
a broker and our core answer the same heartbeats (`conversations.py`, `wire.py`).
"""

from __future__ import annotations

from typing import Any

#: In JSON: a question, an answer, or a part of one.
Json = dict[str, Any]
