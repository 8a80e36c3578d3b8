"""The client without I/O: it receives bytes, answers and the time, and returns bytes and values.

frames.py         bytes: a request as a frame, a received stream cut into frames, the response in a frame
connection.py     one connection: correlation ids, versions, unanswered requests, its opening
conversation.py   exchanges that take several requests, as generators that a shell drives
authentication.py the login of a connection: PLAIN, SCRAM, OAUTHBEARER
addresses.py      HOST:PORT
retries.py        which errors are temporary, and when to try again
patience.py       the retries of producers
offset.py         a committed offset
metadata.py       brokers, topics and their leaders
coordinators.py   the coordinators of groups and transactions
producer_state.py the state of a producer: id, epoch, sequence numbers, its open transaction
producing.py      how a producer writes, commits offsets of groups and ends transactions
share_group.py    a consumer of a share group: its membership, and its sessions
stable_offsets.py offsets of a group that no open transaction can change
"""
