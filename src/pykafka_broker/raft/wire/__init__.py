"""Kafka's messages of the quorum, and the typed values of `raft/core/messages.py`: one file for each RPC.

Each has four functions: two for the replica that asks (`request`, `read_response`), two for the one that
answers (`read_request`, `response`).
"""
