"""`python -m pykafka_broker` is the `pykafka-broker` command; both begin here."""

from __future__ import annotations

from pykafka_broker.system.interrupts import end_at_once


def main() -> None:
    """Run the command line; always ends with SystemExit."""
    end_at_once()
    from pykafka_broker.cli import main as run

    run()


if __name__ == "__main__":
    main()
