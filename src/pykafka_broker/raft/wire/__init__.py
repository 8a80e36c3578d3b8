"""Kafka's messages of the quorum, and the typed values of `raft/core/messages.py`: one file for each RPC.

Each file has four functions: `request` and `read_response` for the replica that asks, `read_request` and
`response` for the replica that answers. `common.py` has what several share, `fetched.py` reads records.
"""
