"""Carrying out the remedies of a check's findings. The folder must not be in use. Blocking."""

from __future__ import annotations

from collections.abc import Sequence

from pykafka_broker.log.check.findings import Finding, Remedy
from pykafka_broker.log.disk.files import FileSystem
from pykafka_broker.log.disk.names import LOG_SUFFIX
from pykafka_broker.log.segment.damage import Damage
from pykafka_broker.log.segment.segment_files import SegmentFiles
from pykafka_broker.log.segment.trust import Trust


def mend(files: FileSystem, findings: Sequence[Finding]) -> int:
    """Carry out the remedies; returns how many findings were mended."""
    done = 0
    fences: dict[str, list[Damage]] = {}
    for finding in findings:
        if finding.remedy is Remedy.REMOVE:
            files.remove(finding.path)
        elif finding.remedy is Remedy.CUT:
            assert finding.damage is not None
            file = files.open(finding.path)
            file.truncate(finding.damage.position)
            file.sync()
        elif finding.remedy in (Remedy.FENCE, Remedy.FENCED):
            assert finding.damage is not None
            fences.setdefault(finding.path, []).append(finding.damage)
            if finding.remedy is Remedy.FENCED:
                continue
        else:
            continue
        done += 1
    for path, damages in fences.items():
        base = path[: -len(LOG_SUFFIX)]
        trust = Trust(SegmentFiles(files, base))
        trust.damages = tuple(sorted(damages))
        trust.save_damages()
    return done
