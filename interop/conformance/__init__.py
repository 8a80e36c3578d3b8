"""Conformance: the same conversations with Apache Kafka and with our broker, and every difference.

    python -m interop.conformance            every conversation, the stored results and docs/conformance.md
    python -m interop.conformance --api metadata --only unknown

`conversation.py` says how a conversation is declared, `apis/` holds them, one file per API; `README.md` tells
how to add one. `play.py` plays a conversation to a broker, `normalise.py` gives stable names to what is
different in every run and to nothing else, `compare.py` finds the differences, `accepted.py` lists the ones
that are meant, `results.py` stores what came out and `table.py` makes the published page of it.
"""
