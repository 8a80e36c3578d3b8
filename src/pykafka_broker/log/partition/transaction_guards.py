"""Verification of transactions (KIP-890): no transactional record enters a log behind the coordinator's back.

A producer's first batch in a transaction is appended only if the transaction coordinator has just confirmed
that the partition is part of it. Between the question and the append a marker may arrive that ends the very
transaction, so the question is given a number of its own, the *guard*: an append has to bring the guard of
the question that still stands, and every batch that ends or continues a transaction cancels the question.

Once a transaction is open in a log, that is proof enough and no guard is needed.
"""

from __future__ import annotations

from itertools import count

#: The guard of an append without a question.
NO_GUARD = 0

#: Guards are never given out twice, so that an old answer cannot pass for a new one.
_guards = count(1)


class Verification:
    """One producer's question to the coordinator that has not led to an append yet."""

    __slots__ = ("bumps_epoch", "guard", "lowest_sequence", "producer_epoch", "started_ms")

    def __init__(self, producer_epoch: int, sequence: int, *, bumps_epoch: bool, now_ms: int) -> None:
        self.guard = next(_guards)
        self.producer_epoch = producer_epoch
        #: The first sequence number waiting; a later one that is answered earlier must not be appended
        #: before it, or the earlier one could never be.
        self.lowest_sequence = sequence
        #: The producer gets a new epoch for each transaction (transaction.version 2).
        self.bumps_epoch = bumps_epoch
        self.started_ms = now_ms

    def asked_again(self, producer_epoch: int, sequence: int) -> None:
        """The same producer asks before its first question has led to an append."""
        if producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
        elif producer_epoch > self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.lowest_sequence = sequence
