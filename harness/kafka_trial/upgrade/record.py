"""The record of an upgrade that was rehearsed: what was played, what came of it, and checksums of what it rests on.

`upgrade.json` has for each stage what became of the brokers and of every consumer, with the SHA-256 of each file of the
run folder that shows it; what was not tried; and what to change before the upgrade. `upgrade.schema.json` is its JSON
Schema. A row that is missing, or a go that rests on nothing, is unknown, here and wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from kafka_trial.cluster.cluster import node_name
from kafka_trial.errors import WRONG_INPUT
from kafka_trial.report.certificate import duration_in_words
from kafka_trial.upgrade.availability import Availability
from kafka_trial.upgrade.cluster_state import CLUSTER, SETTING, Loss
from kafka_trial.upgrade.outcome import CONSUMER, EXITS, GO, NO_GO, NOT_KNOWN, StageOutcome, of_cluster
from kafka_trial.upgrade.request import IN_PLACE

PATH: Final = "path"
ACCUSED: Final = {CONSUMER: "the consumer", CLUSTER: "the cluster", SETTING: "a setting", PATH: "the path"}
WORST_FIRST: Final = (NO_GO, NOT_KNOWN, GO)


@dataclass(frozen=True)
class RecordedPath:
    """Whether the move is allowed: which rules were asked, why some of them refuse it, until when it can be taken back,
    and what else there is to know."""

    rules: Sequence[str]
    reversible_until: str
    refusals: Sequence[str] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class RecordedConsumer:
    """A consumer that was at work: `digest` is of its files. `clients`: each library and version that brokers saw its
    members use ("": a library that does not name itself), with the client ids; empty: not recorded. `changes`: what
    the new brokers do otherwise for it, a sentence each."""

    name: str
    digest: str
    claim: Mapping[str, Any]
    command: Sequence[str]
    clients: Mapping[str, Sequence[str]] = field(default_factory=dict)
    image: Mapping[str, str] | None = None
    changes: Sequence[str] = ()


@dataclass(frozen=True)
class ToldOfClient:
    """What brokers of the version `brokers` make of requests that a client sends: rejected, may be rejected, unknown,
    deprecated; or refused, as brokers of the rehearsal did ("")."""

    brokers: str
    weight: str
    sentence: str


@dataclass(frozen=True)
class RecordedClient:
    """A client library with its version, as brokers saw it in members of a consumer ("": it does not name itself)."""

    consumer: str
    library: str
    members: Sequence[str]
    told: Sequence[ToldOfClient] = ()


@dataclass(frozen=True)
class BrokerRoll:
    """A node that became a version: by a restart, or as a new broker `instead_of` another one. `at_s`: when it began,
    in seconds since the rehearsal began; `exit_s`: how long from then until the process had exited that had to (the
    node's own, or the old broker's); `in_sync_s`: until the node was in the ISR of every partition that it was to hold
    (None: not within its time)."""

    broker: int
    version: str
    at_s: float
    exit_s: float | None
    in_sync_s: float | None
    instead_of: int | None = None

    @property
    def name(self) -> str:
        """The name of the node, as faults have it."""
        return node_name(self.broker)


@dataclass(frozen=True)
class RecordedStage:
    """A stage: `version` is what its brokers were to become, `began_s` counts from the beginning of the rehearsal.
    Where `lasted_s` is None it was not played to its end. `losses`: what the cluster had lost by then. `availability`:
    what it cost each consumer; one that is missing is not recorded."""

    name: str
    summary: str
    version: str
    began_s: float | None = None
    lasted_s: float | None = None
    rolls: Sequence[BrokerRoll] = ()
    losses: Sequence[Loss] = ()
    availability: Sequence[Availability] = ()


@dataclass(frozen=True)
class RecordedOutcome(StageOutcome):
    """What came of a stage for a consumer, or for the cluster (`subject` empty); `run` is the folder that shows it,
    relative to the record, `files` the SHA-256 of each of its files."""

    run: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NotTried:
    """A stage, or something else, that was not tried, and why."""

    what: str
    because: str


@dataclass(frozen=True)
class UpgradeRecord:
    """A rehearsal of an upgrade of brokers from the version `before` to the version `after`, with consumers at work.

    `commit`: the state of the harness in git, where it has one. `began`: UTC, ISO 8601; "": not recorded. `brokers`:
    their ids. `finalised_before` and `finalised_after`: the level of each feature, None where nobody asked.
    `to_change`: what to do before the upgrade, a sentence each. `stages`: all that were planned, in their order.
    `batches`: the folders of the records that this one has the rows of, relative to its own; none: of one cluster.
    """

    before: str
    after: str
    seed: int
    consumers: Sequence[RecordedConsumer]
    stages: Sequence[RecordedStage]
    path: RecordedPath
    outcomes: Sequence[RecordedOutcome] = ()
    clients: Sequence[RecordedClient] = ()
    not_tried: Sequence[NotTried] = ()
    to_change: Sequence[str] = ()
    brokers: Sequence[int] = ()
    shape: str = IN_PLACE
    began: str = ""
    lasted_s: float | None = None
    finalised_before: Mapping[str, int] | None = None
    finalised_after: Mapping[str, int] | None = None
    host: str = ""
    kafka_trial: str = ""
    harness_digest: str = ""
    commit: Mapping[str, Any] | None = None
    batches: Sequence[str] = ()

    @property
    def subjects(self) -> list[str]:
        """Those whom a stage has an outcome for: the cluster (no name), and each consumer."""
        return ["", *(one.name for one in self.consumers)]

    @property
    def rows(self) -> list[RecordedOutcome]:
        """An outcome for every subject in every stage, stage by stage; then those of stages that were not planned."""
        names = [stage.name for stage in self.stages]
        grid = [self.outcome_of(stage, subject) for stage in self.stages for subject in self.subjects]
        return [*grid, *(one for one in self.outcomes if one.stage not in names or one.subject not in self.subjects)]

    def outcome_of(self, stage: RecordedStage, subject: str) -> RecordedOutcome:
        """Returns the worst of what is told of a stage and a subject; unknown where no outcome is, or has no ground."""
        told = [_founded(one, stage) for one in self.outcomes if (one.stage, one.subject) == (stage.name, subject)]
        reason = "not played" if stage.lasted_s is None else "no outcome is recorded"
        absent = RecordedOutcome(stage.name, subject, NOT_KNOWN, reason=reason)
        return min(told, key=_severity, default=absent)

    @property
    def outcome(self) -> str:
        """Go, no-go or unknown: the worst of all stages and subjects. A path that is refused is a no-go; one that was
        not checked, or no consumer, or no stage, is unknown at best."""
        if self.path.refusals:
            return NO_GO
        whole = self.path.rules and self.consumers and self.stages
        words = [*(one.outcome for one in self.rows), *([] if whole else [NOT_KNOWN])]
        return min(words, key=WORST_FIRST.index)

    @property
    def exit(self) -> int:
        """0 go, 1 no-go, 2 where the path is refused, 4 unknown."""
        return WRONG_INPUT if self.path.refusals else EXITS[self.outcome]

    @property
    def not_go(self) -> list[RecordedOutcome]:
        """What is no go, the worst first."""
        return sorted((one for one in self.rows if one.outcome != GO), key=_severity)

    @property
    def missing(self) -> list[str]:
        """The planned stages that were not played to their end."""
        return [stage.name for stage in self.stages if stage.lasted_s is None]

    @property
    def in_words(self) -> str:
        """Says in one line what was played, and how many outcomes of each kind there are."""
        rows = self.rows
        counts = [
            f"{count} {word}" for word in reversed(WORST_FIRST) if (count := sum(one.outcome == word for one in rows))
        ]
        played = len(self.stages) - len(self.missing)
        return (
            f"Kafka {self.before} to {self.after}, {self.shape}, {counted(len(self.consumers), 'consumer')}, "
            f"{played} of {counted(len(self.stages), 'stage')} played: {', '.join(counts) or 'no outcome'}"
        )

    @property
    def when(self) -> str:
        """Says from when to when it went on; "" where it is not recorded."""
        if not self.began:
            return ""
        begin = datetime.fromisoformat(self.began)
        if self.lasted_s is None:
            return f"{begin:%Y-%m-%d %H:%M} UTC"
        end = begin + timedelta(seconds=self.lasted_s)
        until = end.strftime("%H:%M" if end.date() == begin.date() else "%Y-%m-%d %H:%M")
        return f"{begin:%Y-%m-%d %H:%M} to {until} UTC, {duration_in_words(self.lasted_s)}"

    @property
    def path_in_words(self) -> str:
        """Says whether the path is allowed, and by how many rules."""
        asked = f"by {counted(len(self.path.rules), 'rule')}" if self.path.rules else "and no rule was asked"
        return f"refused {asked}" if self.path.refusals else f"allowed {asked}" if self.path.rules else "not checked"


def _severity(told: StageOutcome) -> int:
    return WORST_FIRST.index(told.outcome)


def _founded(told: RecordedOutcome, stage: RecordedStage) -> RecordedOutcome:
    """Returns an outcome as far as the record has its ground: a run folder for what is said of a consumer."""
    if told.outcome == NOT_KNOWN or _has_ground(told, stage):
        return told
    if not told.subject and stage.losses:
        return RecordedOutcome(**asdict(of_cluster(stage.name, stage.losses)))
    reason = f"it is said to be a {told.outcome}, and no run folder of this stage shows it"
    return replace(told, outcome=NOT_KNOWN, accused="", reason=reason)


def _has_ground(told: RecordedOutcome, stage: RecordedStage) -> bool:
    """A go needs a stage that was played to its end; of a consumer both words need a run folder."""
    if told.subject and not (told.run and told.files):
        return False
    if told.outcome == NO_GO:
        return True
    return stage.lasted_s is not None and not (stage.losses and not told.subject)


def counted(number: int, noun: str) -> str:
    """Returns a number of things in words: "1 stage", "2 stages"."""
    return f"{number} {noun}{'s' * (number != 1)}"


def subject_in_words(subject: str) -> str:
    """Returns what a row of a subject is called."""
    return subject or "the cluster"


def client_in_words(client: RecordedClient) -> str:
    """Returns whose client it is and which: "orders: librdkafka 2.16.1 in m0, m1"."""
    return (
        f"{client.consumer}: {client.library or 'a library that does not name itself'} in {', '.join(client.members)}"
    )


def reason_in_words(told: StageOutcome) -> str:
    """Returns why an outcome is no go, and who is accused: "accused: a setting; min.insync.replicas fell"."""
    accused = f"accused: {ACCUSED.get(told.accused, told.accused)}" if told.accused else ""
    return "; ".join(part for part in (accused, told.reason) if part) or "no reason is recorded"


def left_open(record: UpgradeRecord) -> Iterator[NotTried]:
    """Yields what was not tried, by name: what is recorded, and every stage that was not played to its end."""
    yield from record.not_tried
    named = {one.what for one in record.not_tried}
    yield from (NotTried(stage, "it was not played to its end") for stage in record.missing if stage not in named)
