"""The environments of one trial: the group on trial, and the further groups on the same cluster, topics and load.

Each group has an environment, a run folder and a history of its own, those of further groups in `groups/<name>` of the
first one's. All go through the same phases, each of which begins when the one before is over for all. The first group's
environment sends the load; each group's history holds it. A fault of brokers or of a topic is played once, by the first
group, and recorded in the history of every group that it concerns; faults of members and of their network are each
group's own: what is to be done to one group alone is a step with `group`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from kafka_trial.cluster.cluster import Cluster
from kafka_trial.errors import KafkaTrialError
from kafka_trial.history.recorder import EventWriter
from kafka_trial.history.store import GROUPS, RunFolder, create_run_folder
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.trial.console import Console
from kafka_trial.trial.environment import TrialEnvironment
from kafka_trial.trial.setup import open_trial_environment
from kafka_trial.trial.spec import TrialSpec

T = TypeVar("T")
OTHERS_END_WITHIN_S = 600.0  # of a phase, after the first group is done with it
FIRST = ""  # the name of the first group
INTERRUPTED = "interrupted by Ctrl-C"


class SharedFaultWriter:
    """Writes what the first group's schedule does into its history, and what concerns further groups into theirs too.

    `others`: the writer of each, and the numbers of the faults that it shares.
    """

    def __init__(self, own: EventWriter, others: Sequence[tuple[EventWriter, frozenset[int]]]) -> None:
        self._own = own
        self._others = others

    def record(self, kind: str, *, time_ns: int | None = None, **fields: Any) -> int:
        """Takes one event; returns its number in the first group's history."""
        for writer, shared in self._others:
            if fields.get("fault_no") in shared:
                writer.record(kind, time_ns=time_ns, **fields)
        return self._own.record(kind, time_ns=time_ns, **fields)


@contextmanager
def open_all_groups(
    trial_spec: TrialSpec, cluster: Cluster, folder: RunFolder, console: Console
) -> Iterator[Mapping[str, TrialEnvironment]]:
    """Opens the environments of all groups, the first one's first, under FIRST, and closes them in reverse order.

    Raises:
        StartError: see `open_trial_environment`.
        InputError: likewise.
    """
    with ExitStack() as stack:
        first = stack.enter_context(open_trial_environment(trial_spec, cluster, folder, console))
        environments = {FIRST: first}
        for name, spec in trial_spec.further_groups.items():
            own = create_run_folder(folder.path / GROUPS / name, spec.scenario.name, spec.consumer.name)
            quiet = Console(quiet=True)
            environments[name] = stack.enter_context(open_trial_environment(spec, cluster, own, quiet, beside=first))
        if others := [
            (one.context.recorder, one.trial_spec.shared_faults) for one in environments.values() if one is not first
        ]:
            first.context = replace(first.context, recorder=SharedFaultWriter(first.context.recorder, others))
        yield environments


def for_all_groups(
    environments: Mapping[str, TrialEnvironment],
    work: Callable[[TrialEnvironment], T],
    *,
    within_s: float = OTHERS_END_WITHIN_S,
) -> list[T]:
    """Does the same for all groups at once, the first one's in this thread; returns what each returned.

    Where one fails, the others wait for nothing any more.

    Raises:
        KafkaTrialError: that of the group that failed first; the others end because of it.
        OSError: the first group's history cannot be written any more.
    """
    first, *others = environments
    returned: dict[str, T] = {}
    failed: dict[str, KafkaTrialError] = {}

    def done_for(name: str) -> None:
        try:
            returned[name] = work(environments[name])
        except Exception as error:
            _abandon(environments, f"the trial of group {name} ended: {error}" if name else str(error))
            if not isinstance(error, KafkaTrialError):
                raise
            failed.setdefault(name, error)

    with ThreadGroup("groups", join_within_s=within_s) as thread_group:
        threads = [thread_group.start(name, done_for, name) for name in others]
        try:
            done_for(first)
            for thread in threads:
                thread.join(within_s)
        except KeyboardInterrupt:
            _abandon(environments, INTERRUPTED)
            raise
    if failed:
        raise next(iter(failed.values()))
    return [returned[name] for name in environments]


def _abandon(environments: Mapping[str, TrialEnvironment], why: str) -> None:
    for environment in environments.values():
        environment.abandoned = environment.abandoned or why
