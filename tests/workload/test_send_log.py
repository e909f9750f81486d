"""The event writer of the workload writes what the event module would, by the clock; no send is forgotten."""

from itertools import count
from pathlib import Path

from kafka_trial.history.event import Event, from_line, to_line
from kafka_trial.workload.send_log import SendLog
from kafka_trial.workload.workload import Op

OPS = [Op("r0", 0, "k7", None, 100, 0.0, "steady"), Op("r1", 1, None, 2, 100, 0.0, "steady")]


def test_every_fate_of_a_send_is_an_event(tmp_path: Path) -> None:
    """Invokes carry size and checksum; completions name their invoke, ok the place, fail and info why."""
    with_key, without_key = OPS
    log = _log(tmp_path)
    log.load("steady", "begins")
    first, second = (log.invoke(op, size_bytes=100, checksum=9) for op in OPS)
    log.acknowledged(second, 2, 41)
    log.not_acknowledged(first, "fail", 'too "large"')
    log.close()
    assert _events(log) == [
        Event("workload", 0, 0, "load", topic="t", details={"name": "steady", "state": "begins"}),
        _send(1, with_key, outcome="invoke", details={"size_bytes": 100, "checksum": 9}),
        _send(2, without_key, outcome="invoke", details={"size_bytes": 100, "checksum": 9}),
        _send(3, without_key, outcome="ok", op=2, partition=2, offset=41),
        _send(4, with_key, outcome="fail", op=1, details={"message": 'too "large"'}),
    ]


def test_lines_are_those_of_the_event_module(tmp_path: Path) -> None:
    """Written by hand for speed, byte for byte the same, also for topics and keys that need escaping."""
    log = SendLog(tmp_path, ['a"t'])
    send = log.invoke(OPS[0]._replace(key="é\n"), size_bytes=1, checksum=2)
    log.acknowledged(send, 0, 0)
    log.not_acknowledged(log.invoke(OPS[1]._replace(entity="é"), size_bytes=1, checksum=2), "info", "é\n")
    log.close()
    lines = log.path.read_bytes().splitlines(keepends=True)
    assert [to_line(from_line(line)) for line in lines] == lines
    assert from_line(lines[2]).details["entity"] == "é"


def test_an_acknowledgement_may_not_know_the_offset(tmp_path: Path) -> None:
    """A batch sent again that the broker had already: the record is in Kafka, and the line stays whole."""
    log = _log(tmp_path)
    log.acknowledged(log.invoke(OPS[0], size_bytes=1, checksum=2), 3, None)
    log.close()
    assert _events(log)[1] == _send(1, OPS[0], outcome="ok", op=0, partition=3)
    lines = log.path.read_bytes().splitlines(keepends=True)
    assert [to_line(from_line(line)) for line in lines] == lines


def test_what_is_undecided_at_the_end_is_info(tmp_path: Path) -> None:
    """Nobody knows whether it arrived: never fail."""
    log = _log(tmp_path)
    log.invoke(OPS[0], size_bytes=1, checksum=2)
    log.close()
    assert [event.outcome for event in _events(log)] == ["invoke", "info"]


def test_counts_add_up(tmp_path: Path) -> None:
    """Every send has one outcome."""
    log = _log(tmp_path)
    first, second = (log.invoke(op, size_bytes=1, checksum=2) for op in OPS)
    log.acknowledged(first, 0, 0)
    log.not_acknowledged(second, "info", "time-out")
    log.close()
    assert log.counts == {"sent": 2, "ok": 1, "fail": 0, "info": 1}


def _log(folder: Path) -> SendLog:
    ticks = count()
    return SendLog(folder, ["t"], monotonic_ns=lambda: next(ticks))


def _events(log: SendLog) -> list[Event]:
    return [from_line(line) for line in log.path.read_bytes().splitlines()]


def _send(number: int, record: Op, **fields: object) -> Event:
    return Event("workload", number, number, "send", topic="t", id=record.id, key=record.key, **fields)  # type: ignore[arg-type]
