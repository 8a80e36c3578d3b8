"""Compaction (`cleanup.policy=compact`): of every key only the newest record stays, in the background.

    key_map.py       the newest offset of every key, within a budget of memory
    transactions.py  which batches belong to aborted transactions, which markers nobody needs; pure
    filtering.py     what remains of one batch; pure, batches in and batches out
    work.py          one log: build the map, write segments anew as `.cleaned`; files, no decisions
    process.py       the work in a process of its own, so that no record waits for the interpreter
    cleaner.py       the shell: when, which, how fast, and the checkpoint

Which log is dirty, and how far it may be cleaned: `log/partition/dirty.py`. How cleaned segments take their
places, and how a start finishes or undoes that: `log/segment/swap.py`.

Behaviour is Apache Kafka 4.3's: tombstones and transaction markers go `delete.retention.ms` after the round
that first met them (the delete horizon in the batch header, KIP-534), the last batch of every active producer
stays as a header without records, and so does the last batch of a round. Kafka compares 16-byte hashes of
keys; here keys of up to 15 bytes are compared as they are.
"""
