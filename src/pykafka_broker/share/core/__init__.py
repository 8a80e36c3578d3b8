"""A share partition: the records of a partition that a share group has, and what becomes of each (KIP-932).

A pure core, on the leader of the partition; the share coordinator keeps what is durable of it.

    state.py         SharePartition: in-flight batches between its start offset (SPSO) and end offset (SPEO)
    in_flight.py     the state of consecutive records, and every change of it
    batch.py         an in-flight batch, in one piece or split into runs of records of one state
    config.py        limits and durations
    events.py        what can happen, the answers, and the work that is started
    transitions.py   (state, event) -> Step
    turn.py          one event's consequences, while they are worked out
    loading.py       the state is read from the share coordinator, or begins at an offset of the log
    fetching.py      where the next fetch begins, whether there is room for it, and who may fetch
    acquire.py       fetched records become a member's: which, how many
    redelivery.py    records that were delivered before, and how those that fail again are singled out
    new_batches.py   records that were never delivered
    aborted.py       records of aborted transactions, which are archived instead
    acknowledge.py   accept, release, reject, gap and renew, by batch or by offset
    release.py       a member's session ends, or its locks time out
    writing.py       a write of state was successful, or failed and is taken back
    start_offset.py  how the start offset moves: behind records that are done with, or with the log
    records.py       what is written to the share coordinator, and the fold of it

A step has at most one record, a `StateWrite`. The share coordinator keeps it, so the shell sends it and comes
back with `WriteDone`; several may be on their way. What waits for a write is in transition: it can be neither
acquired nor acknowledged, and a write that fails takes it back. A step costs by the batches that it touches,
and by records only where their states differ.
"""
