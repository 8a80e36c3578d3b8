"""Compaction (`cleanup.policy=compact`) in the background: of every key only the newest record is kept.

    key_map.py       the newest offset of every key, within a budget of memory
    transactions.py  which batches belong to aborted transactions, which markers can be removed; pure
    filtering.py     one batch without the records to remove; pure, batches in and batches out
    work.py          one log: build the map, rewrite segments as `.cleaned`; files, no decisions
    process.py       the work in a process of its own, so that no request waits for the interpreter
    cleaner.py       the shell: decides when, which log and how fast; writes the checkpoint

Which log is dirty, and how far it may be cleaned: `log/partition/dirty.py`. How cleaned segments replace the
old ones, and how a start finishes or undoes that: `log/segment/swap.py`.

Behaviour is Apache Kafka 4.3's: tombstones and transaction markers are removed `delete.retention.ms` after
the round that first met them (the delete horizon in the batch header, KIP-534), the last batch of every
active producer is kept as a header without records, and so is the last batch of a round. Kafka compares
16-byte hashes of keys; here keys of up to 15 bytes are compared themselves.
"""
