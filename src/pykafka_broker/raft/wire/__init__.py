"""Kafka's messages of the quorum, and the typed values of `raft/core/messages.py`: one file for each RPC.

A file has `request` and `read_response` for the replica that asks, `read_request`, `response` and `refused`
for the replica that answers. `apis/fetching/answer.py` refuses a Fetch, as it does on listeners of brokers.
`common.py` has what several share, `fetched.py` reads records.
"""
