"""The requests of brokers and controllers to the active controller, one file each.

A file has its RPC whole: the request for an event (`request`), the event of a request (`read_request`), the
response for a result (`response`), and the result of a response (`read_response`).
"""
