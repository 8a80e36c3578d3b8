"""The SASL mechanisms that a listener offers, made from its configuration."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from secrets import randbits

from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.cluster.scram_records import credential_in
from pykafka_broker.config import BrokerConfig
from pykafka_broker.config.oauth_listeners import OAuthSettings
from pykafka_broker.config.sasl_listeners import LOGIN_MODULES, MechanismSettings, sasl_settings
from pykafka_broker.machine.clock import Clock
from pykafka_broker.network.sasl_authentication import Sasl
from pykafka_broker.network.shared import Shared
from pykafka_broker.protocol.java_hash import string_hash, walked
from pykafka_broker.sasl.account import Account
from pykafka_broker.sasl.delegation_tokens import token_credential, token_hmac
from pykafka_broker.sasl.exchange import OfferedMechanism
from pykafka_broker.sasl.oauth_bearer import BearerToken, OAuthBearerServer, Validate
from pykafka_broker.sasl.plain import PLAIN, PlainServer
from pykafka_broker.sasl.scram_keys import (
    RANDOM_BITS,
    SCRAM_MECHANISMS,
    ScramCredential,
    ScramMechanism,
    random_text,
)
from pykafka_broker.sasl.scram_server import ScramEntry, ScramServer
from pykafka_broker.sasl.signed_tokens import UnknownKeyError, signed_token
from pykafka_broker.sasl.unsecured_tokens import UnsecuredRules, unsecured_token

#: The most delegation tokens with cached credentials: making one takes as long as hundreds of requests.
MOST_TOKEN_CREDENTIALS = 1_000


def sasl_of_listener(
    config: BrokerConfig, listener: str, shared: Shared, image: Callable[[], ClusterImage]
) -> Sasl:
    """The authentication of `listener`; its mechanisms are in the order of Apache Kafka's hash set.

    `image` is the newest committed metadata, which has the SCRAM credentials.

    Raises:
        ConfigError: the configuration is not supported.
    """
    settings = sasl_settings(config, listener)
    names = walked(settings.mechanisms, string_hash, sized=True)
    find_token = _finding_tokens(config.values["delegation.token.secret.key"])
    return Sasl(
        {name: _offered(name, settings.mechanisms[name], image, find_token, shared.clock) for name in names},
        shared.clock,
        shared.faults,
        max_receive_bytes=settings.max_receive_bytes,
        failure_delay_ms=config["connection.failed.authentication.delay.ms"],
    )


#: Finds the SCRAM entry of a token by its id, or None.
FindToken = Callable[[ClusterImage, ScramMechanism, str], "ScramEntry | None"]


def _offered(
    name: str,
    settings: MechanismSettings,
    image: Callable[[], ClusterImage],
    find_token: FindToken,
    clock: Clock,
) -> OfferedMechanism:
    scram = SCRAM_MECHANISMS.get(name)
    if scram is not None:
        return OfferedMechanism(partial(_scram_server, scram, image, find_token), settings.max_reauth_ms)
    if settings.oauth is not None:
        validate = _validating(settings.oauth, clock)
        return OfferedMechanism(partial(OAuthBearerServer, validate), settings.max_reauth_ms)
    login = settings.login
    # Apache Kafka reads users only from the login module of PLAIN.
    passwords = login.passwords if login.class_name == LOGIN_MODULES[PLAIN] else {}
    return OfferedMechanism(partial(PlainServer, passwords), settings.max_reauth_ms)


def _validating(settings: OAuthSettings, clock: Clock) -> Validate:
    """A function that validates a bearer token at the present time."""
    if isinstance(settings, UnsecuredRules):
        return lambda token: unsecured_token(token, settings, clock.now_ms())
    # Imported late: only signed tokens need threads and an HTTP client.
    from pykafka_broker.broker.security.key_sets import FetchedKeys, fetching, keys_of_file

    rules = settings.rules
    if settings.keys.file is not None:
        keys = keys_of_file(settings.keys)
        return lambda token: signed_token(token, keys, rules, clock.now_ms())
    fetched = FetchedKeys(settings.keys, clock, fetching(settings.keys))

    def validate(token: str) -> BearerToken:
        try:
            return signed_token(token, fetched.keys, rules, clock.now_ms())
        except UnknownKeyError as error:
            fetched.miss(error.kid)
            raise

    return validate


def _finding_tokens(secret_key: str | None) -> FindToken:
    """A function that finds delegation tokens; without `secret_key` it finds none."""

    @lru_cache(maxsize=MOST_TOKEN_CREDENTIALS)
    def credential(mechanism: ScramMechanism, token_id: str) -> ScramCredential:
        salt = random_text(randbits(RANDOM_BITS)).encode()
        return token_credential(mechanism, token_hmac((secret_key or "").encode(), token_id), salt)

    def find(image: ClusterImage, mechanism: ScramMechanism, token_id: str) -> ScramEntry | None:
        token = image.delegation_tokens.get(token_id)
        if token is None or not secret_key:
            return None
        owner = token.owner.partition(":")[2]
        account = Account(owner, expires_ms=token.expiration_timestamp, by_token=True)
        return ScramEntry(credential(mechanism, token_id), account)

    return find


def _scram_server(
    mechanism: ScramMechanism, image: Callable[[], ClusterImage], find_token: FindToken
) -> ScramServer:
    """The server's side of one exchange, with the credentials of the newest metadata."""
    metadata = image()

    def find(name: str, by_token: bool) -> ScramEntry | None:
        if by_token:
            return find_token(metadata, mechanism, name)
        credential = credential_in(metadata, name, mechanism)
        return None if credential is None else ScramEntry(credential, Account(name))

    return ScramServer(mechanism, find, random_text(randbits(RANDOM_BITS)))
