"""`python -m pykafka_broker` is the `pykafka-broker` command."""

from __future__ import annotations

from pykafka_broker.cli import main

if __name__ == "__main__":
    main()
