"""The states of partitions, and what a repair does about them, in sentences. Pure."""

from __future__ import annotations

from pykafka_broker.spark.checkpoint.comparison import Standing, State
from pykafka_broker.system.wording import counted


def sentence(state: State) -> str:
    """The state of a partition, as a sentence."""
    where, at = f"{state.topic}-{state.partition}", state.position
    holds = f"the topic holds {state.log_start} to {state.log_end}"
    match state.standing:
        case Standing.FITS:
            assert state.log_end is not None and at is not None
            return (
                f"{where}: reads on at offset {at}, {counted(state.log_end - at, 'offset')} before the end."
            )
        case Standing.NEW:
            return f"{where}: a new partition, which is read from its beginning."
        case Standing.NEW_AND_TRIMMED:
            return (
                f"{where}: a new partition that begins at offset {state.log_start} already, which Spark "
                "takes for a loss of data."
            )
        case Standing.OVERTAKEN:
            assert state.log_start is not None
            return (
                f"{where}: offsets {at} to {state.log_start - 1} are gone and were not read: retention or "
                f"DeleteRecords removed them ({holds})."
            )
        case Standing.BEYOND_END:
            return (
                f"{where}: the checkpoint is at offset {at}, and {holds}: the topic was deleted and "
                "created anew, or lost its end."
            )
        case Standing.RECREATED:
            return f"{where}: the topic was created anew since ({holds}), so offset {at} means nothing."
        case Standing.DOUBTFUL:
            return (
                f"{where}: offset {at} fits, but records before it are younger than the last batch: the "
                "topic may have been created anew. If it was, repair with --recreated."
            )
        case Standing.MISSING:
            return f"{where}: does not exist any more; the checkpoint is at offset {at}."


def way_on(state: State) -> str:
    """The repair of a partition that does not fit, as a sentence; "" if a repair leaves it alone."""
    if state.standing is Standing.DOUBTFUL:
        return ""
    if state.repaired is None:
        return "It is taken out of the checkpoint."
    parts = [f"The query goes on at offset {state.repaired}"]
    if state.skipped:
        parts.append(f"skips {counted(state.skipped, 'offset')}")
    if state.read_again:
        parts.append(f"reads {counted(state.read_again, 'offset')} that may be new or known to it")
    return f"{', '.join(parts[:-1])} and {parts[-1]}." if len(parts) > 1 else f"{parts[0]}."
