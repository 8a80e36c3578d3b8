"""One Kafka client: a core without I/O, and two thin shells around it.

    core/             the client without I/O
    blocking.py       shell: sockets, one request at a time
    aio.py            shell: asyncio, many requests in flight over one connection
    producer.py       an idempotent or transactional producer, over the blocking shell
    offsets.py        offsets of partitions and of groups; over the blocking shell
    controllers.py    the controllers of a cluster at their own listeners; over the blocking shell
    quorum.py         the quorum of controllers, as its leader describes it; over the blocking shell
    reassignments.py  the ongoing reassignments; over the blocking shell
    security.py       the security of client properties; tls.py its TLS
    bearer_tokens.py  the tokens of OAUTHBEARER and their refresh
    token_endpoint.py a token from an identity provider

A caller that needs exact control uses the lower parts of the same core: `core/frames.py` alone, or
`blocking.FrameSocket` and `aio.FrameStream`, which send any bytes and return each frame as it came.

Left out: gathering records into batches, consumers, group membership, fetch sessions. The users of this
package send such requests themselves.
"""
