"""What handlers may ask of the node that serves a request: narrow ports, one file per concern.

`node.py` holds them together; the composition root fills it with the objects that do the work. A handler
names the port it uses, `ctx.node.partitions.led(...)`. What a new API needs goes into the port it belongs to.
"""
