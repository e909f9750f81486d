"""The harness's end of the witnesses: starts them, tells them when to read to the end, stops them.

A witness that died, fell behind or met something it cannot decode makes the verdict unknown: `snapshot` says which.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kafka_trial.cluster.cluster import SERVER_LOG, Cluster, Lane, node_name
from kafka_trial.errors import StartError, UnjudgeableError, WaitTimeout
from kafka_trial.history.record_ids import ID_FIELD, ID_HEADER
from kafka_trial.history.store import RunFolder
from kafka_trial.process.children import Child, ChildProcesses, ChildRpc, start_child_rpc
from kafka_trial.witness.rpc_server import BEHIND, DEAD, READY

READY_WITHIN_S: Final = 30.0
ANSWER_MARGIN_S: Final = 5.0
STOP_WITHIN_S: Final = 10.0


@dataclass(frozen=True)
class SinkTopicRead:
    """The topic that the consumer's output goes to, and where its records' ids are: a header, a field of their JSON."""

    topic: str
    partitions: int
    header: str = ID_HEADER
    field: str = ID_FIELD


@dataclass(frozen=True)
class SinkTableRead:
    """The table that the consumer's output goes to: where it is, which column has its records' ids, which one their
    values, which ones make up an effect, and whether each record has a row of its own ("record") or each key ("state").
    """

    address: str
    table: str
    id_column: str
    value_column: str | None = None
    content: tuple[str, ...] = ()
    effects: str = "record"

    @property
    def arguments(self) -> list[str]:
        """What its witness is told."""
        named = {"address": self.address, "table": self.table, "id-column": self.id_column, "effects": self.effects}
        if self.value_column is not None:
            named["value-column"] = self.value_column
        columns = [f"--content={column}" for column in self.content]
        return [*(f"--{name}={value}" for name, value in named.items()), *columns]


SinkRead = SinkTopicRead | SinkTableRead


@dataclass(frozen=True)
class IntermediateTopicsRead:
    """The topics that a group is known to hand records on through, and where the records' ids are in those and in all
    that it turns out to commit on besides; but for `not_topics`."""

    topics: tuple[str, ...] = ()
    not_topics: tuple[str, ...] = ()
    header: str = ID_HEADER
    field: str = ID_FIELD

    @property
    def arguments(self) -> list[str]:
        """What the witness of the offsets log is told."""
        through = [f"--through={topic}" for topic in self.topics]
        others = [f"--topic={topic}" for topic in self.not_topics]
        return [*through, *others, f"--header={self.header}", f"--field={self.field}"]


class Witness:
    """One witness process. Its events are in the history, its complaints in `logs/witness-<name>.stderr`."""

    def __init__(self, name: str, rpc: ChildRpc) -> None:
        self.name = name
        self.message: str | None = None
        self._rpc = rpc
        self._ready = False

    @property
    def child(self) -> Child:
        return self._rpc.child

    @property
    def alive(self) -> bool:
        return self.child.alive

    def ready(self, *, within_s: float = READY_WITHIN_S) -> None:
        """Waits until it follows its log.

        Raises:
            StartError: it died, or was not ready in time; with its last words.
        """
        if self._ready:
            return
        try:
            answer = self._answer(within_s)
        except (WaitTimeout, UnjudgeableError) as error:
            raise StartError(f"the witness {self.name} did not start: {error}") from error
        if answer.get("state") != READY:
            raise StartError(f"the witness {self.name} did not start: {answer}; {self._rpc.complaint()}")
        self._ready = True

    def ask(self, *, within_s: float) -> None:
        """Tells it to read up to the end as of now; `answer` then waits for what it says."""
        with suppress(OSError):  # it has died: the answer will say so
            self._rpc.tell(f"snapshot {within_s:g}")

    def answer(self, *, within_s: float) -> str:
        """Returns `complete`, `behind`, `undecodable` or `dead`; `message` then says more."""
        try:
            answer = self._answer(within_s + ANSWER_MARGIN_S)
        except WaitTimeout as error:
            self.message = str(error)
            return BEHIND if self.alive else DEAD
        self.message = answer.get("message")
        return str(answer["state"])

    def snapshot(self, *, within_s: float) -> str:
        """Has it read up to the end as of now; returns `complete`, `behind`, `undecodable` or `dead`."""
        self.ask(within_s=within_s)
        return self.answer(within_s=within_s)

    def stop(self, *, within_s: float = STOP_WITHIN_S) -> int | None:
        """Tells it to stop and returns its exit code; one that does not in time is killed."""
        self._rpc.hang_up()
        try:
            return self.child.wait(within_s=within_s)
        except WaitTimeout:
            return self.child.end(within_s=1.0)
        finally:
            self._rpc.close()

    def _answer(self, within_s: float) -> Mapping[str, Any]:
        line = self._rpc.answer(within_s=within_s, what=f"the witness {self.name} to answer")
        answer: dict[str, Any] = orjson.loads(line)
        return answer


def start_witnesses(
    child_processes: ChildProcesses,
    cluster: Cluster,
    *,
    folder: RunFolder,
    topics: Sequence[str],
    group: str,
    lanes: Sequence[Lane],
    transactions: bool = False,
    sink: SinkRead | None = None,
    through: IntermediateTopicsRead | None = None,
    reads_anew: bool = False,
    later: Collection[str] = (),
) -> list[Witness]:
    """Starts the witnesses of a trial: of the offsets log, of the request log, and the observer; of `transactions`, for
    a consumer whose progress is in its own; and of the topic or table that its output goes to, if there is one.
    `later`: which of the topics are not there yet.

    They start side by side; call `ready` on each.

    Raises:
        StartError: a process cannot be started.
    """
    history, bootstrap = ["--history", str(folder.history)], ["--bootstrap", cluster.observer_bootstrap]
    logs = [f"--log={node_name(number)}={log}" for number, log in sorted(cluster.request_logs.items())]
    logs += [
        f"--server-log={node_name(number)}={log.with_name(SERVER_LOG)}" for number, log in cluster.request_logs.items()
    ]
    logs += [
        f"--listener={node_name(number)}={cluster.server_port(number, lane.index)}:{lane.index}"
        for number in cluster.request_logs
        for lane in lanes
    ]
    leased = ",".join(str(lane.index) for lane in lanes)
    own = [f"--topic={name}" for name in topics]
    written = [sink.topic] if isinstance(sink, SinkTopicRead) else []
    commands = {
        "offsets_log": [
            *bootstrap,
            *history,
            "--group",
            group,
            *own,
            *(f"--topic={name}" for name in written),
            *(through or IntermediateTopicsRead()).arguments,
        ],
        "request_log": [*logs, *history, "--group", group, "--lanes", leased],
        "observe": [
            *(*bootstrap, *history, *own, "--group", group),
            *(["--reads-anew"] if reads_anew else []),
            *(f"--later={name}" for name in later),
        ],
    }
    if transactions:
        outputs = [f"--output={name}" for name in written]
        commands["transactions"] = [*bootstrap, *history, *own, *outputs]
    if isinstance(sink, SinkTableRead):
        commands["sink_table"] = [*history, *sink.arguments]
    elif sink:
        commands["sink_topic"] = [*bootstrap, *history, *(f"--{name}={value}" for name, value in vars(sink).items())]
    return [start_witness(child_processes, name, arguments, folder=folder) for name, arguments in commands.items()]


def start_witness(
    child_processes: ChildProcesses, name: str, arguments: Sequence[str], *, folder: RunFolder
) -> Witness:
    """Starts `python -m kafka_trial.witness.<name>` with our ends of its pipes in a Witness.

    Raises:
        StartError: it cannot be started.
    """
    argv = [sys.executable, "-m", f"kafka_trial.witness.{name}", *arguments]
    stderr = folder.logs / f"witness-{name}.stderr"
    return Witness(name, start_child_rpc(child_processes, f"witness {name}", argv, stderr=stderr))


def snapshot_all(witnesses: Sequence[Witness], *, within_s: float) -> dict[str, str]:
    """Has all witnesses read to the end side by side; returns the state of each, by name."""
    until_s = time.monotonic() + within_s
    for witness in witnesses:
        witness.ask(within_s=within_s)
    return {witness.name: witness.answer(within_s=max(0.0, until_s - time.monotonic())) for witness in witnesses}
