"""Members that brokers served no more: what is said of the cause, from literal histories of a stage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_trial.history.recorder import Recorder
from kafka_trial.upgrade.outcome import cut_off, cut_off_in_words

S = 1_000_000_000
Told = tuple[str, float, dict[str, Any]]
OLD = "Received request for api with key 8 (OffsetCommit) and unsupported version 1"
TOO_OLD = (
    "m0 is too old for these brokers: b0 refused OffsetCommit v1 {} times, and closed the connection without an answer"
)


def history(
    folder: Path,
    *,
    nemesis: tuple[Told, ...] = (),
    b0: tuple[Told, ...] = (),
    b1: tuple[Told, ...] = (),
    **members: Any,
) -> Path:
    """Writes the events (kind, second, fields) of the nemesis, of the requests of brokers b0 and b1, and of members."""
    for name, given in members.items():
        start = {"pid": 1, "lane": int(name[1]), "started_with": [0, 1, 2]}
        who = {"member": name, "incarnation": 0}
        _write(
            folder,
            f"consumer-{name}-0",
            [(kind, at_s, told | who) for kind, at_s, told in [("started", 1, start), *given]],
        )
    _write(folder, "nemesis", nemesis)
    _write(folder, "requests-b0", b0)
    _write(folder, "requests-b1", b1)
    return folder


def _write(folder: Path, source: str, events: Any) -> None:
    with Recorder(folder, source) as recorder:
        for kind, at_s, fields in events:
            recorder.record(kind, time_ns=int(at_s * S), **fields)


def rolled(at_s: float, version: str = "4.3.1") -> Told:
    turns = [{"broker": broker, "version": version, "isr_whole_again": True} for broker in (0, 1, 2)]
    return "evidence", at_s, {"fault_no": 0, "fault": "version-roll", "bit": True, "details": {"brokers": turns}}


def replaced(at_s: float, *brokers: int) -> Told:
    turns = [{"broker": broker, "by": broker + 3, "version": "4.3.1"} for broker in brokers]
    return "evidence", at_s, {"fault_no": 0, "fault": "broker-replace", "bit": True, "details": {"brokers": turns}}


def asked(api: str, at_s: float, lane: int = 0) -> Told:
    return "request", at_s, {"api": api, "lane": lane, "error": 0}


def refused(at_s: float, *, count: int = 400, version: int = 1, lane: int = 0, said: str = OLD) -> Told:
    about = {"lane": lane, "api_key": 8, "api": "OffsetCommit", "version": version, "reason": "unsupported"}
    return "request_refused", at_s, {**about, "count": count, "last_ns": int(at_s * S), "message": said}


def test_a_client_that_is_too_old_is_named_as_such(tmp_path: Path) -> None:
    """It committed by a version that the new brokers refuse, and no commit was served since; other requests were."""
    served = (asked("OFFSET_COMMIT", 10), asked("FIND_COORDINATOR", 45), refused(46), refused(50, count=12))
    place = history(tmp_path, nemesis=(rolled(40),), b0=served, m0=())
    assert cut_off(place, begins_ns=30 * S) == [f"{TOO_OLD.format(412)} ({OLD})"]


def test_who_is_served_after_the_roll_is_not_too_old(tmp_path: Path) -> None:
    """It went down to a lower version, or up; and what was refused before the last restart counts no more."""
    for number, b0 in enumerate(
        ((refused(45), asked("OFFSET_COMMIT", 46)), (refused(39), asked("FIND_COORDINATOR", 45)), (asked("FETCH", 50),))
    ):
        place = tmp_path / str(number)
        place.mkdir()
        assert cut_off(history(place, nemesis=(rolled(40),), b0=b0, m0=()), begins_ns=30 * S) == []


def test_who_is_served_by_brokers_that_are_not_changed_yet_is_too_old_for_the_others(tmp_path: Path) -> None:
    """In a mixed cluster it goes on where brokers are old, and is refused by those that are new."""
    b0, b1 = (refused(46),), (asked("OFFSET_COMMIT", 47),)
    place = history(tmp_path, nemesis=(rolled(40),), b0=b0, b1=b1, m0=())
    assert cut_off(place, begins_ns=30 * S) == [f"{TOO_OLD.format(400)} ({OLD})"]


@pytest.mark.parametrize(
    ("version", "brokers", "word"), [(1, "4.3.1", "too old"), (9, "3.9.2", "not fit"), (99, "3.9.2", "too new")]
)
def test_which_it_is_the_tables_say(tmp_path: Path, version: int, brokers: str, word: str) -> None:
    """On the way back a client may be too new; where the tables say that brokers serve it, neither is said."""
    place = history(tmp_path, nemesis=(rolled(40, brokers),), b0=(refused(46, version=version),), m0=())
    assert cut_off(place, begins_ns=30 * S)[0].startswith(f"m0 is {word} for these brokers: ")


def test_a_reader_that_stops_at_the_roll_is_named(tmp_path: Path) -> None:
    """It is no group member: fetches are all that is seen of it. One that goes on, or whose process ended, is not."""
    ended = ("exited", 44.0, {"code": 1})
    b0 = (asked("FETCH", 38), asked("FETCH", 38, 1), asked("FETCH", 41, 1), asked("FETCH", 38, 2))
    place = history(tmp_path, nemesis=(rolled(40.5),), b0=b0, m0=(), m1=(), m2=(ended,))
    said = "m0 sent no request to these brokers, its last one came 2.5 s before they were as they are"
    assert cut_off(place, begins_ns=30 * S) == [said]


def test_a_member_all_of_whose_addresses_are_gone_is_named(tmp_path: Path) -> None:
    """Every broker that it was started with was replaced, and none of the new ones heard of it."""
    b0 = (asked("JOIN_GROUP", 20), asked("FETCH", 38))
    whole = history(tmp_path, nemesis=(replaced(30, 0, 1), replaced(40, 2)), b0=b0, m0=())
    (said,) = cut_off(whole, begins_ns=35 * S)
    assert said.endswith(
        "; every broker that it was started with (b0, b1, b2) has been replaced: its addresses are gone"
    )


def test_while_one_of_its_brokers_is_there_no_address_is_said_to_be_gone(tmp_path: Path) -> None:
    """Two of three were replaced: it has given up for another reason."""
    place = history(tmp_path, nemesis=(replaced(40, 0, 1),), b0=(asked("FETCH", 38),), m0=())
    assert "replaced" not in cut_off_in_words(place, begins_ns=30 * S)


def test_of_many_members_some_are_told(tmp_path: Path) -> None:
    """A reason is a sentence, not a list."""
    b0 = tuple(asked("FETCH", 38, lane) for lane in range(6))
    place = history(tmp_path, nemesis=(rolled(40),), b0=b0, **{f"m{number}": () for number in range(6)})
    assert cut_off_in_words(place, begins_ns=30 * S).endswith("; 3 more members alike")


def test_a_history_without_such_evidence_says_nothing(tmp_path: Path) -> None:
    """Of an earlier harness, or of a member that was never seen at all."""
    assert cut_off_in_words(history(tmp_path, m0=()), begins_ns=0) == ""
