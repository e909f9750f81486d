"""The writers beside an upgrade: what producers were promised, and what of it is broken at the end of a stage.

Topics of their own, over the observers' listener: they disturb no consumer, and no fault of the network disturbs them.
What they find is the cluster's loss: a transaction that was committed and is not whole, one that was aborted and is
read, an acknowledged record that is gone or there twice, a producer that can do nothing more.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import orjson

from kafka_trial.cluster.admin import Admin
from kafka_trial.cluster.booted import BootedCluster
from kafka_trial.errors import UnjudgeableError
from kafka_trial.process.children import ChildProcesses, ChildRpc, start_child_rpc
from kafka_trial.upgrade.cluster_state import CLUSTER, MIN_INSYNC, Loss

TRANSACTIONS: Final = "kafka-trial-writers-transactions"
SENDS: Final = "kafka-trial-writers-sends"
PARTITIONS: Final = 3
REPLICAS_MAX: Final = 3
# A transaction that waits for its coordinator is ended, another one is written, and then both topics are read.
ANSWER_WITHIN_S: Final = 400.0


class WritersHandle:
    """The writers at work; `counts` is what they had done when their topics were last read."""

    def __init__(self, rpc: ChildRpc) -> None:
        self.counts: dict[str, int] = {}
        self._rpc = rpc

    def open_transaction(self) -> int:
        """Opens a transaction that stays open, and returns its number once the brokers have its records.

        Raises:
            UnjudgeableError: they did not take them, or the process died.
        """
        return int(self._ask("open", "open"))

    def end_transaction(self) -> str:
        """Commits the transaction that is open, and returns how it ended: committed, aborted, or info (nobody knows).

        Raises:
            UnjudgeableError: the process died.
        """
        return str(self._ask("end", "ended"))

    def use_brokers(self, bootstrap: str) -> None:
        """Names brokers that are there now, for clients that begin anew: the first ones may be gone.

        Raises:
            UnjudgeableError: the process died.
        """
        self._ask(f"brokers {bootstrap}", "brokers")

    def losses(self) -> tuple[Loss, ...]:
        """Has both topics read to their ends; returns what is not as promised and was not told before.

        Raises:
            UnjudgeableError: they could not be read, or nothing was written since the last time.
        """
        told = self._ask("read", "read")
        self.counts = told["counts"]
        if told["not_known"] and not told["breaches"]:
            raise UnjudgeableError(f"writers: {told['not_known']}")
        return tuple(Loss(CLUSTER, breach) for breach in told["breaches"])

    def _ask(self, command: str, key: str) -> Any:
        try:
            self._rpc.tell(command)
        except OSError as error:
            raise UnjudgeableError(f"writers: cannot be told {command!r}: {self._rpc.complaint()}") from error
        what = f"the writers to answer {command!r}"
        answer: dict[str, Any] = orjson.loads(self._rpc.answer(within_s=ANSWER_WITHIN_S, what=what))
        if key not in answer:
            raise UnjudgeableError(f"writers: {answer.get('error', answer)}")
        return answer[key]


@contextmanager
def writers_beside(cluster: BootedCluster, folder: Path) -> Iterator[WritersHandle]:
    """Has the writers write until the `with` ends; `folder` gets their history and their complaints.

    Raises:
        StartError: a topic could not be created, or the process not started.
    """
    folder.mkdir(parents=True, exist_ok=True)
    replicas = min(REPLICAS_MAX, len(cluster.brokers))
    with Admin(cluster.observer_bootstrap) as admin:
        for topic in (TRANSACTIONS, SENDS):
            configs = {MIN_INSYNC: str(max(1, replicas - 1)), "retention.ms": "-1"}
            admin.create_topic(topic, partitions=PARTITIONS, replication_factor=replicas, configs=configs)
    argv = [sys.executable, "-m", "kafka_trial.workload.writers", "--bootstrap", cluster.observer_bootstrap]
    argv += ["--transactions", TRANSACTIONS, "--sends", SENDS]
    argv += ["--partitions", str(PARTITIONS), "--history", str(folder)]
    with ChildProcesses("writers") as child_processes:
        rpc = start_child_rpc(child_processes, "writers", argv, stderr=folder / "writers.stderr")
        try:
            yield WritersHandle(rpc)
        finally:
            rpc.close()
