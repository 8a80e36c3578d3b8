"""The ports of handlers to the node that serves a request: narrow, one file per concern.

`node.py` collects them; the composition root fills it with the objects that do the work. A handler names the
port it uses, `ctx.node.partitions.led(...)`. Add what a new API needs to the port of that concern.
"""
