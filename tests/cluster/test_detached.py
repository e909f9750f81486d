"""Clusters that stay up between commands: found by name, ended whole, told when their holder is gone."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from kafka_trial.cluster import detached
from kafka_trial.cluster.attached import AttachedBroker, attach
from kafka_trial.cluster.detached import State
from kafka_trial.cluster.doctor import leftovers
from kafka_trial.cluster.toxiproxy import Toxiproxy
from kafka_trial.errors import InputError, StartError, UnjudgeableError
from kafka_trial.process.waiting import wait_until

GONE = State(1, "gone", 2**22 - 1, 0.0, "4.3.1", 3, ("127.0.0.1:1",), "127.0.0.1:1", 1, "/nowhere")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """State files of its own; whatever a failed test leaves up is ended."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield tmp_path
    for state in detached.states():
        holder = detached.holder_of(state)
        if holder:
            holder.kill()


@pytest.mark.cluster
def test_a_detached_cluster_is_found_and_ended(capsys: pytest.CaptureFixture[str]) -> None:
    """`up --detach` returns, `list` and `status` see it, `down` leaves no process, no state and no folder."""
    assert detached.up(None, brokers=1, name="one", detach=True) == 0
    state = detached.find(None)
    family = _family(state)
    assert (detached.list_clusters(), detached.status("one")) == (0, 0)
    assert detached.down() == 0
    said = capsys.readouterr().out
    assert re.search(rf"one  Kafka 4\.3\.1  1 brokers  pid {state.pid}\n", said)
    assert f"bootstrap  {state.lanes[0]}" in said
    assert "health     all brokers in sync, no toxics" in said
    assert not any(map(psutil.pid_exists, family))
    assert (detached.states(), Path(state.folder).exists()) == ([], False)


@pytest.mark.cluster
def test_a_killed_holder_takes_its_cluster_along(capsys: pytest.CaptureFixture[str]) -> None:
    """After kill -9 no broker runs; `status` is 3 and says so, the leftover is named, `down` clears it."""
    detached.up(None, brokers=1, name="killed", detach=True)
    state = detached.find("killed")
    family = _family(state)
    os.kill(state.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(_runs, family)), within_s=10, what="broker and Toxiproxy to be gone")
    assert detached.status("killed") == 3
    assert "is gone" in capsys.readouterr().out
    assert "kafka-trial cluster down killed" in [one.remedy for one in leftovers()]
    assert (detached.down("killed"), detached.states()) == (0, [])


@pytest.mark.cluster
def test_in_the_foreground_it_stays_until_ctrl_c(home: Path) -> None:
    """The command says where the cluster is, shows what is wrong with it meanwhile, and ends with 0."""
    command = [sys.executable, "-m", "kafka_trial", "cluster", "up", "--brokers", "1", "--name", "front"]
    front = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    state = wait_until(
        lambda: next(iter(detached.states()), None),
        within_s=60,
        what="the cluster to come up",
        alive=lambda: None if front.poll() is None else f"it ended with {front.returncode}",
    )
    proxy = next(iter(Toxiproxy(state.toxiproxy_port).proxies()))
    Toxiproxy(state.toxiproxy_port).disable(proxy)
    problems = detached.state_problems(state)
    front.send_signal(signal.SIGINT)
    said, _ = front.communicate(timeout=30)
    assert problems == [f"proxy {proxy} is disabled"]
    assert (front.returncode, said.startswith("cluster front: Kafka 4.3.1, 1 brokers, 16 lanes\n")) == (0, True)
    assert detached.states() == []


def test_a_boot_that_fails_gives_the_holders_own_words(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 3, the reason, and where the rest of the log is."""
    monkeypatch.setenv("KAFKA_TRIAL_TOXIPROXY", "/no/such/toxiproxy")
    with pytest.raises(StartError, match=r"(?s)holder has ended.*KAFKA_TRIAL_TOXIPROXY.*/no/such/toxiproxy.*bad\.log"):
        detached.up(None, name="bad", detach=True)


def test_wrong_words_are_all_named_before_anything_starts() -> None:
    """Name and number of brokers in one error; an unknown version in its own."""
    with pytest.raises(InputError) as refused:
        detached.up(None, brokers=0, name="-No", detach=True)
    assert [problem.split()[0] for problem in refused.value.problems] == ["--name", "--brokers"]
    with pytest.raises(InputError, match="unknown Kafka version '5'"):
        detached.up("5")


def test_which_cluster_is_meant_must_be_clear() -> None:
    """None up, an unknown name, several and no name: each says what there is."""
    with pytest.raises(InputError, match="no detached cluster is running"):
        detached.down()
    _write(GONE)
    with pytest.raises(InputError, match=r"unknown cluster 'gon'. Did you mean 'gone'\? Valid: gone"):
        detached.status("gon")
    _write(replace(GONE, name="other"))
    with pytest.raises(InputError, match="several are up, say which: gone, other"):
        detached.down()


def test_a_number_given_to_somebody_else_is_not_the_holder() -> None:
    """The pid of a stranger with another start time is neither the holder nor signalled."""
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            _write(replace(GONE, pid=stranger.pid))
            assert detached.down("gone") == 0
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_a_name_is_taken_only_while_its_holder_runs() -> None:
    """A live holder's name is refused; a dead one's is free again."""
    me = replace(GONE, name="mine", pid=os.getpid(), started_s=psutil.Process().create_time())
    with detached.written(me):
        with pytest.raises(InputError, match="mine: is up already"):
            detached.up(None, name="mine", detach=True)
        with pytest.raises(StartError, match="came up meanwhile"), detached.written(me):
            pass
    _write(replace(GONE, name="mine"))
    with detached.written(me) as state:
        assert detached.states() == [state]


def test_a_state_file_that_cannot_be_read_is_left_out() -> None:
    """Half written or of a newer schema: neither an error nor a cluster."""
    (detached.state_folder() / "half.json").write_text('{"schema": 1, "na')
    (detached.state_folder() / "newer.json").write_text('{"schema": 2}')
    assert detached.states() == []


def _write(state: State) -> None:
    with detached.written(state):
        content = detached.state_file(state.name).read_text()
    detached.state_file(state.name).write_text(content)


def _family(state: State) -> list[int]:
    return [state.pid, *(child.pid for child in psutil.Process(state.pid).children(recursive=True))]


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (replace(GONE, cluster="kt1"), "its holder is gone"),
        (replace(GONE, pid=os.getpid(), started_s=psutil.Process().create_time()), "booted by an older kafka-trial"),
    ],
    ids=["gone", "of an older version"],
)
def test_a_cluster_that_trials_cannot_use_is_refused(state: State, said: str) -> None:
    """Before anything starts, with what to do."""
    place = detached.state_file("gone")
    place.write_text(json.dumps(asdict(state)))
    try:
        with pytest.raises(InputError, match=said):
            attach("gone")
    finally:
        place.unlink()  # whose state is left is killed: in one case this process


def test_nobody_ends_or_starts_the_brokers_of_another_process(tmp_path: Path) -> None:
    """A fault that tried would be a failure of the harness, never the consumer's."""
    broker = AttachedBroker(0, tmp_path)
    assert broker.alive is False
    for order in (broker.kill, broker.terminate, broker.pause, broker.resume, broker.start, lambda: broker.pid):
        with pytest.raises(UnjudgeableError, match="broker 0"):
            order()
