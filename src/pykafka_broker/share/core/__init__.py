"""A share partition: the records of a partition that a share group has, and what becomes of each (KIP-932).

A pure core, on the leader of the partition; the share coordinator keeps the durable part.

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
    redelivery.py    records that were delivered before, in smaller pieces if they fail again
    new_batches.py   records that were never delivered
    aborted.py       records of aborted transactions, which are archived instead
    acknowledge.py   accept, release, reject, gap and renew, by batch or by offset
    release.py       a member's session ends, or its locks time out
    writing.py       a write of state was successful, or failed and is taken back
    start_offset.py  moves the start offset: behind records that are done, or with the log
    records.py       what is written to the share coordinator, and its replay

A step has at most one record, a `StateWrite`. The shell sends it to the share coordinator and comes back with
`WriteDone`; several writes may be in flight. Records that wait for a write are in transition: they can be
neither acquired nor acknowledged, and a failed write takes the change back. The cost of a step grows with the
batches that it touches, and with records only where their states differ.
"""
