"""`pykafka-broker start` with a plan: `python -m tests.torture.launcher '<plan as JSON>' start ...`"""

from __future__ import annotations

import json
import sys

from tests.torture.files import Plan, TorturedFiles


def main() -> None:
    plan = Plan.from_dict(json.loads(sys.argv.pop(1)))
    if plan.max_files:
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (plan.max_files, plan.max_files))
    if plan.mutant:
        from tests.torture.mutants import plant

        plant(plan.mutant)

    import pykafka_broker.broker.broker as broker_module
    from pykafka_broker.cli import main as start

    class PlannedFiles(TorturedFiles):
        def __init__(self) -> None:
            super().__init__(plan)

    broker_module.OsFileSystem = PlannedFiles  # type: ignore[attr-defined]
    sys.argv[0] = "pykafka-broker"
    start()


if __name__ == "__main__":
    main()
