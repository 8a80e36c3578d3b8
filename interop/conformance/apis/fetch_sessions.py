"""Fetch: what sessions remember."""

from __future__ import annotations

from interop.conformance.conversation import conversation
from interop.conformance.fetching import Session, at, fetching, of, written
from interop.conformance.talk import E, Talk
from interop.conformance.topics import nowhere, unknown_topic, without, without_start
from pykafka_broker.protocol.messages.fetch import ForgottenTopic


@conversation("7+")
def a_session_lists_only_what_has_changed(talk: Talk) -> None:
    a, b = written(talk, label="a"), written(talk, label="b")
    session = Session(talk)
    session.fetches(of(a, at(6)), of(b, at(6)))
    session.fetches()
    talk.produce(b, b"news")
    session.fetches()
    session.fetches(of(b, at(7)))
    session.fetches()


@conversation("7+")
def a_session_repeats_records_until_their_offset_is_passed(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    session.fetches(of(topic, at(0)))
    session.fetches()
    session.fetches(of(topic, at(4)))
    session.fetches(of(topic, at(6)))


@conversation("7+")
def a_session_repeats_errors(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    session.fetches(of(topic, at(99)), errors=(E.OFFSET_OUT_OF_RANGE,))
    session.fetches(errors=(E.OFFSET_OUT_OF_RANGE,))
    session.fetches(of(topic, at(6)))
    session.fetches()


@conversation("7+")
def a_session_tells_of_a_moved_start(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    session.fetches(of(topic, at(6)))
    without_start(talk, topic, 3)
    session.fetches()
    session.fetches()


@conversation("7+")
def partitions_are_added_and_forgotten(talk: Talk) -> None:
    a, b = written(talk, label="a", partitions=2), written(talk, label="b")
    session = Session(talk)
    session.fetches(of(a, at(0)))
    session.fetches(of(b, at(0)), of(a, at(0, 1)))
    session.forgets(a, 0)
    session.forgets(b, 0, 7)
    session.forgets(nowhere(talk), 0)
    session.fetches()


@conversation("7+")
def a_partition_that_is_wanted_and_forgotten_at_once(talk: Talk) -> None:
    a, b = written(talk, label="a"), written(talk, label="b")
    session = Session(talk)
    session.fetches(of(a, at(6)), of(b, at(0)))
    forgotten = [ForgottenTopic(topic=a.name, topic_id=a.id, partitions=[0])]
    session.fetches(of(a, at(0)), forgotten_topics_data=forgotten)
    session.fetches()


@conversation("7+")
def a_session_that_forgets_all_is_closed(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    session.fetches(of(topic, at(0)))
    opened = session.session_id
    session.forgets(topic, 0)
    session.session_id = opened
    session.fetches(errors=(E.FETCH_SESSION_ID_NOT_FOUND,))


@conversation("7+")
def a_full_fetch_of_nothing_opens_a_session(talk: Talk) -> None:
    session = Session(talk)
    session.fetches()
    session.fetches(of(written(talk)))


@conversation("7+")
def an_unknown_session(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(fetching(of(topic), session_id=7, session_epoch=1), E.FETCH_SESSION_ID_NOT_FOUND)
    talk.ask(fetching(session_id=0, session_epoch=1), E.FETCH_SESSION_ID_NOT_FOUND)
    talk.ask(fetching(session_id=-5, session_epoch=9), E.FETCH_SESSION_ID_NOT_FOUND)


@conversation("7+")
def a_session_is_asked_in_the_order_of_its_epochs(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    session.fetches(of(topic, at(6)))
    opened = session.session_id
    for epoch in (2, 3, 2**31 - 1):
        request = fetching(session_id=opened, session_epoch=epoch)
        talk.ask(request, E.INVALID_FETCH_SESSION_EPOCH)
    talk.ask(fetching(session_id=opened, session_epoch=1))
    talk.ask(fetching(session_id=opened, session_epoch=1), E.INVALID_FETCH_SESSION_EPOCH)
    talk.ask(fetching(session_id=opened, session_epoch=-2), E.INVALID_FETCH_SESSION_EPOCH)
    talk.ask(fetching(session_id=opened, session_epoch=2))


@conversation("7+")
def a_session_is_closed_by_its_last_fetch(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    session.fetches(of(topic, at(0)))
    opened = session.session_id
    talk.ask(fetching(session_id=opened, session_epoch=-1))
    talk.ask(fetching(session_id=opened, session_epoch=1), E.FETCH_SESSION_ID_NOT_FOUND)


@conversation("7+")
def a_session_is_closed_by_the_full_fetch_that_opens_another(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    session.fetches(of(topic, at(0)))
    opened = session.session_id
    talk.ask(fetching(of(topic, at(4)), session_id=opened, session_epoch=0))
    talk.ask(fetching(session_id=opened, session_epoch=1), E.FETCH_SESSION_ID_NOT_FOUND)


@conversation("7+")
def without_a_session_nothing_is_remembered(talk: Talk) -> None:
    topic = written(talk)
    talk.ask(fetching(of(topic, at(6)), session_epoch=-1))
    talk.ask(fetching(of(topic, at(6)), session_epoch=-1, session_id=3))


@conversation("7+")
def a_session_belongs_to_no_connection(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    session.fetches(of(topic, at(6)))
    session.talk = talk.another()
    session.fetches()
    session.fetches(of(topic, at(4)))


@conversation("7+")
def unknown_topics_are_part_of_a_session(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    session.fetches(of(nowhere(talk)), of(topic, at(6)), errors=(unknown_topic(talk),))
    session.fetches(errors=(unknown_topic(talk),))
    session.forgets(nowhere(talk), 0)
    session.fetches()


@conversation("7+")
def a_topic_that_goes_leaves_an_error_in_its_session(talk: Talk) -> None:
    a, b = written(talk, label="a"), written(talk, label="b")
    session = Session(talk)
    session.fetches(of(a, at(6)), of(b, at(6)))
    without(talk, a)
    session.fetches(errors=(E.UNKNOWN_TOPIC_OR_PARTITION,))
    session.fetches(errors=(E.UNKNOWN_TOPIC_OR_PARTITION,))


@conversation("7+")
def a_topic_that_is_created_again_under_its_name_is_another_one_by_id(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    session.fetches(of(topic, at(4)))
    without(talk, topic)
    again = written(talk, name=topic.name, batches=5)
    told = (E.INCONSISTENT_TOPIC_ID,) if talk.version >= 13 else ()
    session.fetches(errors=told)
    session.fetches(errors=told)
    if talk.version >= 13:
        session.fetches(of(again, at(0)), errors=told)
        Session(talk).fetches(of(topic, at(4)), errors=(E.UNKNOWN_TOPIC_ID,))


@conversation("7+")
def small_limits_are_fair_to_all_partitions_of_a_session(talk: Talk) -> None:
    a, b, c = (written(talk, label=label) for label in "abc")
    session = Session(talk)
    session.fetches(of(a), of(b), of(c), max_bytes=1)
    for _ in range(4):
        session.fetches(max_bytes=1)


@conversation("7+")
def a_wait_in_a_session_ends_with_news(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    session.fetches(of(topic, at(6)))
    request = fetching(session_id=session.session_id, session_epoch=1, max_wait_ms=10_000)
    waiting = talk.send(request)
    waiting.is_waiting()
    talk.another().produce(topic, b"news")
    waiting.answer()


@conversation("13+")
def a_session_with_ids_is_none_for_a_version_with_names(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    session.fetches(of(topic, at(6)))
    request = fetching(session_id=session.session_id, session_epoch=1)
    talk.ask(request, E.FETCH_SESSION_TOPIC_ID_ERROR, version=12)
    talk.ask(request)


@conversation("7-12")
def a_session_with_names_is_none_for_a_version_with_ids(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    session.fetches(of(topic, at(6)))
    request = fetching(session_id=session.session_id, session_epoch=1)
    talk.ask(request, E.FETCH_SESSION_TOPIC_ID_ERROR, version=13)
    talk.ask(request)


@conversation("7+")
def sessions_may_change_their_version(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    session.fetches(of(topic, at(6)))
    other = 7 if talk.version < 13 else 13
    talk.ask(fetching(session_id=session.session_id, session_epoch=1), version=other)


@conversation("7+")
def the_epoch_of_a_leader_is_remembered_in_a_session(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    if talk.version >= 9:
        session.fetches(of(topic, at(6, current_leader_epoch=9)), errors=(E.UNKNOWN_LEADER_EPOCH,))
        session.fetches(errors=(E.UNKNOWN_LEADER_EPOCH,))
    session.fetches(of(topic, at(6)))
    session.fetches()


@conversation("7+")
def a_partition_named_twice_in_a_session(talk: Talk) -> None:
    topic = written(talk)
    session = Session(talk)
    session.fetches(of(topic, at(0), at(4)))
    session.fetches(of(topic, at(2), at(6)))
    session.fetches()
