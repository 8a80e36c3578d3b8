"""Verification of transactions (KIP-890): the coordinator confirms each before its first record is appended.

A producer's first batch in a transaction is appended only if the transaction coordinator has just confirmed
that the partition is part of it. A marker that ends the transaction may arrive between the question and the
append. So each question has a number, the *guard*: an append must bring the guard of the open question, and
every batch that ends or continues a transaction cancels the question. Once a transaction is open in a log, no
guard is needed.
"""

from __future__ import annotations

from itertools import count

#: The guard of an append without a question.
NO_GUARD = 0

#: Guards are never given out twice, so that an old answer cannot pass for a new one.
_guards = count(1)


class VerificationStateEntry:
    """One producer's question to the coordinator that has not led to an append yet."""

    __slots__ = ("bumps_epoch", "guard", "lowest_sequence", "producer_epoch", "started_ms")

    def __init__(self, producer_epoch: int, sequence: int, *, bumps_epoch: bool, now_ms: int) -> None:
        self.guard = next(_guards)
        self.producer_epoch = producer_epoch
        #: The lowest sequence number that waits: a higher one that is confirmed earlier must not be appended
        #: first, or the lower one would be refused.
        self.lowest_sequence = sequence
        #: The producer gets a new epoch for each transaction (transaction.version 2).
        self.bumps_epoch = bumps_epoch
        self.started_ms = now_ms

    def asked_again(self, producer_epoch: int, sequence: int) -> None:
        """The producer asks again before its first question has led to an append."""
        if producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
        elif producer_epoch > self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.lowest_sequence = sequence
