"""The ports of handlers to the node that serves a request: narrow, one file per concern.

`node.py` holds them together; the composition root fills it with the objects that do the work. A handler
names the port it uses, `ctx.node.partitions.led(...)`. The needs of a new API go into the port they belong
to.
"""
