"""The requests of brokers and controllers to the active controller, one file each.

A file has both sides of its RPC: the request for an event (`request`), the event of a request
(`read_request`), the response for a result (`response`) or for an error (`refused`), and the result of a
response (`read_response`).
`create_topics.py` has only the broker's side and `read_topic`: clients send CreateTopics too, so
`apis/create_topics.py` makes the event and the response.
"""
