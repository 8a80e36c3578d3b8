"""Golden frames: what a real Apache Kafka 4.3.1 answers to one request of every API and version.

`python -m interop.frames [API ...]` captures them into `tests/protocol/wire`, all of them or the named ones.
A scenario class has one method per API, named like it: it prepares the broker and returns the request.
"""
