"""The harness's end of the workload process: starts it, gives it commands, and waits for its answers."""

from __future__ import annotations

import dataclasses
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from kafka_trial.errors import UnjudgeableError
from kafka_trial.history.store import RunFolder
from kafka_trial.process.children import Child, ChildProcesses, ChildRpc, start_child_rpc
from kafka_trial.scenario import Burst, Load
from kafka_trial.workload.payload import OURS, PayloadFiles
from kafka_trial.workload.workload import TopicLoad

READY_WITHIN_S = 45.0
ANSWER_WITHIN_S = 10.0
CLOSE_WITHIN_S = 15.0  # on top of the bound of `stop`: writing the rest, closing the client, exiting


COUNTS = {"sent": "sent", "ok": "acknowledged", "fail": "refused", "info": "of unknown fate"}


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Returns how many records were sent, and what became of them."""
    return ", ".join(f"{counts.get(name, 0)} {words}" for name, words in COUNTS.items())


class ProducerHandle:
    """A running workload process: its sends are in `history/workload.jsonl`, its complaints in `logs`."""

    def __init__(self, rpc: ChildRpc) -> None:
        self._rpc = rpc
        self._turn = threading.Lock()  # bursts are commanded from threads of their own
        self._stopped: dict[str, int] | None = None
        self._held = False

    @property
    def child(self) -> Child:
        return self._rpc.child

    def opening_burst(self, *, within_s: float) -> int:
        """Sends the opening burst and returns how many records it had, once all of them are acknowledged.

        Raises:
            UnjudgeableError: a record was refused or its fate is unknown, the time ran out, or the process died.
        """
        counts = self._ask("open", "opened", within_s=within_s)
        if counts["ok"] != counts["sent"]:
            raise UnjudgeableError(
                f"opening burst: expected all to be acknowledged before any fault: {counts_in_words(counts)}; "
                f"`message` of the failed sends in workload.jsonl says why (record size, topic settings, brokers)"
            )
        return int(counts["sent"])

    def steady(self) -> None:
        """Begins the steady load."""
        self._ask("steady", "steady", within_s=ANSWER_WITHIN_S)

    def begin_topic(self, topic: str) -> None:
        """Begins the load of a topic that has come."""
        self._ask(f"topic {topic}", "topic", within_s=ANSWER_WITHIN_S)

    def hold(self) -> None:
        """Holds the steady load until `resume`; idempotent."""
        if not self._held:
            self._ask("hold", "held", within_s=ANSWER_WITHIN_S)
            self._held = True

    def settle(self, *, within_s: float) -> bool:
        """Holds the steady load until `resume`, and waits for acknowledgements; whether all came in time."""
        settled = self._ask(f"settle {within_s:g}", "settled", within_s=within_s + ANSWER_WITHIN_S)
        self._held = True
        return bool(settled)

    def resume(self) -> None:
        """Lets the steady load go on where it was held; idempotent."""
        if self._held:
            self._ask("resume", "resumed", within_s=ANSWER_WITHIN_S)
            self._held = False

    def burst(self, records: int) -> int:
        """Begins a burst at full speed; returns its number of records, fewer where the load's maximum is reached."""
        return int(self._ask(f"burst {records}", "burst", within_s=ANSWER_WITHIN_S))

    def stop(self, *, within_s: float) -> dict[str, int]:
        """Stops the load, waits up to `within_s` for acknowledgements, and returns {sent, ok, fail, info}; idempotent.

        Raises:
            UnjudgeableError: the process died, or did not close in time: the history of the sends is incomplete.
        """
        if self._stopped is None:
            self._stopped = dict(self._ask(f"stop {within_s:g}", "stopped", within_s=within_s + CLOSE_WITHIN_S))
            self.child.wait(within_s=CLOSE_WITHIN_S)
            self.close()
        return self._stopped

    def close(self) -> None:
        """Closes our ends of the pipes: a process that still runs takes that as `stop`."""
        self._rpc.close()

    def __enter__(self) -> ProducerHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, command: str, key: str, *, within_s: float) -> Any:
        with self._turn:
            try:
                self._rpc.tell(command)
            except OSError as error:
                raise UnjudgeableError(
                    f"workload: cannot be told {command!r}: {error}; its exit status: {self.child.exit_code}; "
                    f"{self._rpc.complaint()}"
                ) from error
            return self.answer(key, within_s=within_s)

    def answer(self, key: str, *, within_s: float) -> Any:
        """Waits for the next answer and returns its `key`.

        Raises:
            UnjudgeableError: the process refused, died, or did not answer in time.
        """
        line = self._rpc.answer(within_s=within_s, what=f"the workload to answer {key!r}", every_s=0.005)
        body: dict[str, Any] = orjson.loads(line)
        if key not in body:
            raise UnjudgeableError(f"workload: expected an answer {key!r}, seen {body}")
        return body[key]


class BorrowedLoad:
    """The load that the first group's trial sends, as a further group has it: nothing done here changes it.

    `records`: of the opening burst, on the topics that the group reads.
    """

    def __init__(self, records: int) -> None:
        self._records = records

    def opening_burst(self, *, within_s: float) -> int:
        """Returns how many records it has."""
        return self._records

    def steady(self) -> None:
        """The other trial begins it."""

    def begin_topic(self, topic: str) -> None:
        """The other trial begins it."""

    def hold(self) -> None:
        """The other trial holds it, for its own group alone."""

    def settle(self, *, within_s: float) -> bool:
        """The other trial waits for its acknowledgements."""
        return True

    def resume(self) -> None:
        """The other trial lets it go on."""

    def burst(self, records: int) -> int:
        """The other trial sends its bursts."""
        return 0

    def stop(self, *, within_s: float) -> dict[str, int]:
        """The other trial stops it, and tells the counts."""
        return {}


def start_producer(
    child_processes: ChildProcesses,
    *,
    bootstrap: str,
    topic_loads: Sequence[TopicLoad],
    folder: RunFolder,
    seed: int,
    payload: PayloadFiles = OURS,
    recorded: bool = True,
) -> ProducerHandle:
    """Starts the workload process on a lane's `bootstrap` and returns once it has the metadata of the topics.

    `payload`: what the records are made of.

    Raises:
        StartError: the process cannot be started.
        UnjudgeableError: it died or did not reach the brokers.
    """
    argv = [sys.executable, "-m", "kafka_trial.workload.producer", "--bootstrap", bootstrap]
    argv += [f"--topic-load={topic_load_to_json(one)}" for one in topic_loads]
    argv += ["--history", str(folder.history), "--seed", str(seed)]
    argv += [] if payload == OURS else ["--payload", payload.to_json()]
    argv += [] if recorded else ["--unrecorded"]
    handle = ProducerHandle(start_child_rpc(child_processes, "workload", argv, stderr=folder.logs / "workload.stderr"))
    try:
        handle.answer("ready", within_s=READY_WITHIN_S)
    except UnjudgeableError:
        handle.close()
        raise
    return handle


def topic_load_to_json(topic_load: TopicLoad) -> str:
    """Returns what one topic gets as an argument of the process."""
    return orjson.dumps(dataclasses.asdict(topic_load)).decode()


def topic_load_from_json(text: str) -> TopicLoad:
    """Returns what the argument of the process says."""
    table: dict[str, Any] = orjson.loads(text)
    load = table["load"]
    bursts = tuple(Burst(**burst) for burst in load["bursts"])
    return TopicLoad(**table | {"load": Load(**load | {"bursts": bursts})})
