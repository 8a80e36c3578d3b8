"""What a hostile peer says to a listener with SASL: a login as it should be, spoilt in one to three ways.

for step in conversation(Random(7), forger):        another one for each number
    data = step(answered)                           the bytes to send, after what was answered to the last
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

from pykafka_broker.apis import APIS
from pykafka_broker.client.core.frames import framed, request_frame, request_header
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages import create_topics as creation
from pykafka_broker.protocol.messages import produce as producing
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka_broker.protocol.records.batch import Codec
from pykafka_broker.sasl.scram_keys import SCRAM_MECHANISMS
from tests.support.hostile import FULL, bomb, hostile_values, join, record_pieces, sealed
from tests.support.hostile_tokens import Forger
from tests.support.scram import altering, put

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
#: Those of `MECHANISMS`, and what is nearly one of them.
ODD_MECHANISMS = (
    *MECHANISMS,
    "",
    "plain",
    "PLAIN\0",
    "GSSAPI",
    "SCRAM-SHA-1",
    "SCRAM-SHA-256-PLUS",
    "x" * 30_000,
    "é",
)
VERSIONS = [(api, version) for api in APIS for version in schema_of(api.request).served_versions]
#: `sasl.server.max.receive.size`
LARGEST_BYTES = 524_288
#: A topic, and a user, that nobody can make who is kept out.
STOLEN = "stolen"
#: The next bytes to send, after what was answered to the last ones.
Step = Callable[[bytes], bytes]

ODD_LENGTHS = (-(2**31), -1, 0, 1, 9, LARGEST_BYTES + 1, 100 << 20, 2**31 - 1)
FOREIGN = (
    b"GET / HTTP/1.1\r\n\r\n",
    bytes.fromhex("16030102000100 01fc0303") + bytes(64),
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"\0" * 64,
    b"\xff" * 64,
)
RECORDS = join(record_pieces([(b"key", b"value", {})] * 3))
BOMBS = [bomb(codec, 1 << 20) for codec in (Codec.GZIP, Codec.LZ4, Codec.ZSTD, Codec.SNAPPY)]


def conversation(chance: Random, forger: Forger, *, unsecured: bool = False) -> list[Step]:
    """A login of one attacker, mostly spoilt; `unsecured` says that bearer tokens are not signed here."""
    steps = _Login(chance, forger, unsecured).steps()
    for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
        _spoil_order(chance, steps)
    return steps


class _Login:
    """An honest login of one attacker, except for the tokens that he spoils."""

    def __init__(self, chance: Random, forger: Forger, unsecured: bool) -> None:
        self._chance = chance
        self._forger = forger
        self._unsecured = unsecured
        self._mechanism = "OAUTHBEARER" if unsecured else chance.choice(MECHANISMS)
        self._bare = not chance.randrange(4)
        self._odd = [chance.randrange(3) == 0 for _ in range(2)]
        self._nonce = f"{chance.getrandbits(60):x}"
        self._first = b""
        self._server_first = b""

    def steps(self) -> list[Step]:
        chance = self._chance
        found: list[Step] = []
        if chance.randrange(2):
            version = chance.choice([0, 1, 2, 3, 4, 4])
            found.append(lambda said: request_frame(_versions(version), version))
        handshake = request_frame(
            SaslHandshakeRequest(mechanism=self._mechanism), 0 if self._bare else 1, 2, "me"
        )
        found.append(lambda said: handshake)
        if self._mechanism in SCRAM_MECHANISMS:
            found += [self._scram_first, self._scram_final]
        else:
            found.append(self._token)
        if chance.randrange(3) == 0:
            found += [lambda said: another_request(chance) for _ in range(chance.randint(1, 3))]
        if chance.randrange(8) == 0:
            # Authenticate again, maybe as somebody else.
            found += found[-4:]
        return found

    def _sent(self, token: bytes) -> bytes:
        if self._bare:
            return framed(token)
        request = SaslAuthenticateRequest(auth_bytes=token)
        return request_frame(request, self._chance.choice([0, 1, 2]), 3, "me")

    def _token(self, said: bytes) -> bytes:
        forger, odd = self._forger, self._odd[0]
        if self._mechanism == "PLAIN":
            return self._sent(forger.odd_plain() if odd else forger.plain())
        if self._unsecured:
            return self._sent(forger.odd_unsecured_bearer() if odd else forger.unsecured_bearer())
        return self._sent(forger.odd_bearer() if odd else forger.bearer())

    def _scram_first(self, said: bytes) -> bytes:
        forger = self._forger
        self._first = forger.odd_scram_first(self._nonce) if self._odd[0] else forger.scram_first(self._nonce)
        return self._sent(self._first)

    def _scram_final(self, said: bytes) -> bytes:
        mechanism = SCRAM_MECHANISMS[self._mechanism]
        self._server_first = _answered_token(said) or self._server_first
        make = self._forger.odd_scram_final if self._odd[1] else self._forger.scram_final
        return self._sent(make(mechanism, self._first, self._server_first))


def _answered_token(said: bytes) -> bytes:
    """The token of a SCRAM server in an answer, wherever it stands; empty if there is none."""
    at = said.find(b"r=")
    if at < 0:
        return b""
    text = said[at:]
    end = text.find(b"i=4096")
    return text[: end + 6] if end >= 0 else b""


def _versions(version: int) -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="me" if version > 2 else "", client_software_version="1")


def _spoil_order(chance: Random, steps: list[Step]) -> None:
    """Drop, repeat, move or insert a step, or damage what one sends."""
    at = chance.randrange(len(steps) + 1) if steps else 0
    change = chance.choice(
        ["drop", "repeat", "move", "insert", "insert", "insert", "damage", "damage", "together"]
    )
    if change == "insert" or at == len(steps):
        steps.insert(at, lambda said: another_request(chance))
    elif change == "drop":
        del steps[at]
    elif change == "repeat":
        steps.insert(at, steps[at])
    elif change == "move":
        steps.insert(chance.randrange(len(steps)), steps.pop(at))
    elif change == "together":
        rest = steps[at:]
        del steps[at:]
        steps.append(lambda said: b"".join(step(said) for step in rest))
    else:
        honest = steps[at]
        steps[at] = lambda said: _damaged(chance, honest(said))


def _damaged(chance: Random, frame: bytes) -> bytes:
    """A frame with another length, cut, or with other bytes in it."""
    at = chance.randrange(len(frame)) if frame else 0
    how = chance.choice(["length", "cut", "byte", "grown", "shrunk", "bytes"])
    if how == "length":
        return struct.pack(">i", chance.choice(ODD_LENGTHS)) + frame[4:]
    if how == "cut":
        return frame[:at]
    if how == "byte":
        return frame[:at] + bytes([chance.randrange(256)]) + frame[at + 1 :]
    if how == "grown":
        return framed(frame[4:] + bytes(chance.choice([1, 100, 70_000, LARGEST_BYTES])))
    if how == "shrunk":
        return framed(frame[4:at])
    return framed(frame[4:at] + chance.randbytes(chance.randint(1, 16)) + frame[at:])


def another_request(chance: Random) -> bytes:
    """A request that has no place in a login, or no request."""
    kind = chance.randrange(9)
    if kind == 0:
        return chance.choice(FOREIGN)
    if kind == 1:
        mechanism = chance.choice(ODD_MECHANISMS)
        return request_frame(SaslHandshakeRequest(mechanism=mechanism), chance.choice([0, 1]))
    if kind == 2:
        token = chance.randbytes(chance.choice([0, 9, 900]))
        return request_frame(SaslAuthenticateRequest(auth_bytes=token), chance.choice([0, 1, 2]))
    if kind == 3:
        api_key, version = chance.choice([18, 17, 36, -1, 99, 0]), chance.choice([-1, 5, 99, 32767])
        return framed(struct.pack(">hhih", api_key, version, 1, chance.choice([-1, 0, -9, 1, 32767])))
    if kind == 4:
        return framed(chance.randbytes(chance.choice([1, 8, 30, 300])))
    if kind in (5, 6):
        return _request_that_steals(chance)
    api, version = chance.choice(VERSIONS)
    parts = list(FULL[api.request, version])
    if kind == 7 and parts:
        at = chance.randrange(len(parts))
        left = sum(len(piece.data) for piece in parts[at + 1 :])
        parts[at] = parts[at]._replace(data=chance.choice([*hostile_values(parts[at], left)]))
    return framed(request_header(api.key, version, 7, "me") + join(parts))


def _request_that_steals(chance: Random) -> bytes:
    """A request that leaves something behind if it is carried out."""
    if chance.randrange(3) == 0:
        topic = creation.CreatableTopic(
            name=STOLEN, num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        return request_frame(creation.CreateTopicsRequest(topics=[topic], timeout_ms=1_000), 7)
    if chance.randrange(2):
        return request_frame(altering(put(STOLEN)), 0)
    data = producing.PartitionProduceData(index=0, records=chance.choice([*BOMBS, sealed(RECORDS, 3)]))
    wanted = producing.TopicProduceData(name="orders", partition_data=[data])
    request = producing.ProduceRequest(acks=chance.choice([-1, 0, 1]), timeout_ms=1_000, topic_data=[wanted])
    return request_frame(request, 9)
