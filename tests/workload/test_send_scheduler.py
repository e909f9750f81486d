"""What is sent when: commands, parts and dues, seen from a sender that only keeps what it was given."""

import json
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafka_trial.scenario import Burst, Load
from kafka_trial.workload.send_log import SendLog
from kafka_trial.workload.send_scheduler import BATCH_BYTES_MAX, Part, SendScheduler
from kafka_trial.workload.workload import LoadWorkload, Op

LOAD = Load(opening_burst=2, rate_per_s=1e6, records_max=8, bursts=(Burst(1.0, 2),))
TURNS_MAX = 10_000


def test_each_part_sends_its_own_records(tmp_path: Path) -> None:
    """A burst takes the records planned for it, so the steady load's are the same whenever the burst comes."""
    sender, _ = _conducted(tmp_path, "burst 2\nopen\nsteady\nstop 1\n", idle_before_stop=8)
    sent = [(op.part, op.n) for op in sender.sent]
    bursts, opening, steady = ([n for part, n in sent if part == name] for name in ("burst", "opening-burst", "steady"))
    assert (bursts, opening, steady) == ([2, 3], [0, 1], [4, 5, 6, 7])


def test_commands_are_answered(tmp_path: Path) -> None:
    """Each command has one answer; a burst beyond the plan takes what the steady load has left."""
    _, answers = _conducted(tmp_path, "burst 20\nopen\nstop 1\n", idle_before_stop=8)
    assert ([key for answer in answers for key in answer], answers[0]["burst"]) == (["burst", "opened", "stopped"], 6)


def test_the_steady_load_is_held_and_goes_on(tmp_path: Path) -> None:
    """Each command is answered; to hold what is held is wrong."""
    _, answers = _conducted(tmp_path, "steady\nhold\nhold\nresume\nstop 1\n")
    kinds = [next(iter(answer)) for answer in answers]
    assert kinds == ["steady", "held", "error", "resumed", "stopped"]


@pytest.mark.parametrize(("within_s", "settled"), [("10", True), ("0", False)])
def test_a_load_that_settles_is_held_until_every_send_is_decided(
    within_s: str, *, settled: bool, tmp_path: Path
) -> None:
    """Or its time is up; nothing more is sent."""
    commands = f"steady\nsettle {within_s}\nhold\nstop 1\n"
    _, answers = _conducted(tmp_path, f"open\n{commands}", acknowledged_after=3, stopped_after=9)
    kinds = [next(iter(answer)) for answer in answers]
    order = ["opened", "settled"] if settled else ["settled", "opened"]
    assert kinds == ["steady", "error", *order, "stopped"]
    assert {"settled": settled} in answers


def test_what_is_held_falls_due_so_much_later() -> None:
    """It goes on where it was, and makes up for nothing."""
    part = Part("steady", LoadWorkload(LOAD, partitions=1).ops(Random(1)), began_s=0.0)
    due_s = part.due_in_s(0.0)
    part.delay(since_s=10.0, until_s=40.0)
    assert part.due_in_s(0.0) == due_s + 30.0
    part.delay(since_s=0.0, until_s=50.0)  # it begins at 30 by now
    assert part.due_in_s(0.0) == due_s + 50.0


def test_a_wrong_command_is_named_with_the_valid_ones(tmp_path: Path) -> None:
    """Nonsense, and `steady` twice, are refused; the process goes on."""
    _, answers = _conducted(tmp_path, "steady\nsteady\nburst many\nstop 0\n")
    assert [answer.get("error", "").partition(" now.")[0] for answer in answers[1:3]] == [
        "cannot obey 'steady'",
        "cannot obey 'burst many'",
    ]


def test_the_end_of_commands_is_a_stop(tmp_path: Path) -> None:
    """A harness that is gone says nothing more."""
    sender, answers = _conducted(tmp_path, "")
    assert (sender.dropped, list(answers[-1])) == (True, ["stopped"])


def test_a_broken_client_ends_the_work(tmp_path: Path) -> None:
    """A client that can send no more is stopped at once, and its undecided sends are written."""
    sender, answers = _conducted(tmp_path, "open\n", broken=lambda: "fenced")
    assert (sender.sent, answers) == ([], [{"stopped": {"sent": 0, "ok": 0, "fail": 0, "info": 0}}])


def test_begins_and_ends_frame_a_part(tmp_path: Path) -> None:
    """The load events say how many records were planned, and how many were sent; each part ends once."""
    sender, _ = _conducted(tmp_path, "open\nsteady\nstop 1\n", idle_before_stop=6)
    loads = [json.loads(line) for line in sender.log.path.read_bytes().splitlines() if b'"load"' in line]
    assert sorted((one["name"], one["state"], one.get("count")) for one in loads) == [
        ("opening-burst", "begins", 2),
        ("opening-burst", "ends", 2),
        ("steady", "begins", None),
        ("steady", "ends", 4),
    ]


def test_a_batch_takes_only_what_is_due() -> None:
    """Ten records a second, a quarter of a second in: three."""
    ops = [Op(f"r{n}", n, None, None, 100, n / 10, "steady") for n in range(10)]
    assert [op.n for op in Part("steady", iter(ops), began_s=100.0).batch(100.25)] == [0, 1, 2]


def test_a_batch_is_bounded_in_bytes() -> None:
    """Ten-megabyte values are made one at a time, not a hundred together."""
    ops = [Op(f"r{n}", n, None, None, 10 * BATCH_BYTES_MAX, 0.0, "burst") for n in range(3)]
    assert len(Part("burst", iter(ops)).batch(0.0)) == 1


class _Keeper:
    """Keeps what it is given; each send is acknowledged by the next poll."""

    def __init__(self, history: Path) -> None:
        self.log = SendLog(history, ["t"])
        self.sent: list[Op] = []
        self.dropped = False
        self.acknowledged_after = 0  # polls
        self.polled: Callable[[], None] = lambda: None

    @property
    def full(self) -> bool:
        return False

    @property
    def idle(self) -> bool:
        return not self.log.undecided

    def send(self, ops: list[Op]) -> None:
        self.sent.extend(ops)
        for op in ops:
            self.log.invoke(op, size_bytes=0, checksum=0)

    def push(self) -> None:
        """Nothing waits here."""

    def poll(self, within_s: float) -> None:
        self.acknowledged_after -= 1
        for send in list(self.log.undecided) if self.acknowledged_after < 0 else ():
            self.log.acknowledged(send, 0, send)
        self.polled()

    def drop(self) -> None:
        self.dropped = True


def _conducted(
    folder: Path,
    commands: str,
    *,
    idle_before_stop: int = 0,
    acknowledged_after: int = 0,
    stopped_after: int = 0,
    broken: Callable[[], str | None] = lambda: None,
) -> tuple[_Keeper, list[dict[str, Any]]]:
    """Runs a send scheduler over `commands`; the last line is given once `idle_before_stop` records were sent."""
    sender, answers = _Keeper(folder), list[dict[str, Any]]()
    sender.acknowledged_after = acknowledged_after
    *first, last = commands.splitlines(keepends=True) or [""]
    reader, writer = os.pipe()
    os.write(writer, "".join(first).encode())
    given: list[bool] = []
    turns = count()

    def polled() -> None:
        turn = next(turns)
        assert turn < TURNS_MAX, f"never sent {idle_before_stop} records, only {len(sender.sent)}"
        if len(sender.sent) >= idle_before_stop and turn >= stopped_after and not given:
            given.append(True)
            os.write(writer, last.encode())
            os.close(writer)

    sender.polled = polled
    send_scheduler = SendScheduler(sender, LoadWorkload(LOAD, partitions=1).ops(Random(1)), answer=answers.append)
    send_scheduler.run(reader, broken=broken)
    os.close(reader)
    return sender, answers
