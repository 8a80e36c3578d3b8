"""One Kafka client: a core without I/O, and two thin shells around it.

    frames.py         bytes: a request as a frame, a received stream cut into frames, the response in a frame
    connection.py     one connection: correlation ids, versions, unanswered requests, its opening
    conversation.py   exchanges that take several requests, as generators that a shell drives
    authentication.py the login of a connection: PLAIN, SCRAM, OAUTHBEARER
    bearer_tokens.py  the tokens of OAUTHBEARER, and the next one in time
    token_endpoint.py a token from an identity provider
    security.py       the security that client properties ask for; tls.py its TLS
    addresses.py      HOST:PORT
    retries.py        which errors go away, and when to try again
    patience.py       again until it succeeds, for those who write
    offset.py         a committed offset
    metadata.py       brokers, topics and their leaders
    coordinators.py   the coordinators of groups and transactions
    producer_state.py the state of a producer: id, epoch, sequence numbers, its open transaction
    producing.py      how it writes, commits offsets of groups and ends transactions
    share_group.py    a consumer of a share group: its membership, and its sessions
    stable_offsets.py offsets of a group that no open transaction may change
    blocking.py       shell: sockets, one request at a time
    producer.py       an idempotent or transactional producer, over the blocking shell
    offsets.py        where partitions begin and end, and where groups are; over the blocking shell
    controllers.py    the controllers of a cluster at their own listeners; over the blocking shell
    quorum.py         the quorum of controllers, as its leader tells; over the blocking shell
    reassignments.py  the reassignments under way; over the blocking shell
    aio.py            shell: asyncio, many requests on their way over one connection

The core receives bytes, answers and the time, and returns bytes and values; it opens no socket and reads no
clock. A caller that needs exact control uses the lower parts of the same core: `frames.py` alone, or
`blocking.FrameSocket` and `aio.FrameStream`, which send any bytes and return each frame as it came.

Left out: gathering records into batches, consuming as such, group membership, fetch sessions. The users of
this package send the requests of those themselves.
"""
