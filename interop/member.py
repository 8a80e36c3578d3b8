"""A group member as a process that can be killed: prints its partitions whenever they change.

python -m interop.member CLIENT BOOTSTRAP GROUP TOPIC
"""

from __future__ import annotations

import sys

from interop.clients import connect


def main() -> None:
    name, bootstrap, group, topic = sys.argv[1:]
    member = connect(name, bootstrap).member(group, topic)
    shown: frozenset[int] = frozenset()
    while True:
        member.poll(0.2)
        if (assigned := member.assignment()) != shown:
            shown = assigned
            print(*sorted(assigned), flush=True)


if __name__ == "__main__":
    main()
