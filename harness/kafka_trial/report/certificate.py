"""The certificate of a consumer: what was tried on all suites, what came out, and checksums of what it rests on.

`certificate.json` names every trial with its verdict, its faults and their evidence, what was not judged, how to replay
it, when it was and how long it took, the tries of it that only the machine made unknown, and the SHA-256 of every file
of its run folder but those of `cache/`, which can be made again; and the suites that were left out, of which it says
nothing. `certificate.schema.json` is its JSON Schema. `index.html` shows suites by Kafka versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kafka_trial.comparison.summary import Part, parts_of
from kafka_trial.errors import PASS, UNKNOWN, InputError, worst
from kafka_trial.history.output_names import CERTIFICATE, CERTIFICATE_PAGE
from kafka_trial.history.store import RunFolder
from kafka_trial.report.html import page_of
from kafka_trial.report.sealed_files import file_digests, read_table, write_table, write_whole
from kafka_trial.verdict.collect import own_events

PAGE = CERTIFICATE_PAGE
BASELINE = "baseline"  # the folder of the certificate of a baseline, beside that of what is compared with it
CERTIFICATE_SCHEMA = 3  # 1: told of no suite that it was left out; 2: named none of the consumer's files
WORDS: Mapping[int, str] = {PASS: "pass", 1: "fail", UNKNOWN: "unknown"}
OF_VERDICT = ("violations", "tolerated", "not_judged", "faults", "reasons")
SINCE_SCHEMA_3 = ("notes", "began", "lasted_s", "earlier")  # what is said of a trial
Cell = tuple[str, str, int]


@dataclass(frozen=True)
class CertifiedTrial:
    """One trial: scenario, Kafka version and seed; what its verdict.json says; `run`: its folder, relative to the
    certificate; `files`: the SHA-256 of each of its files, by the place inside that folder.

    `began`: when it did (UTC, ISO 8601; "" unknown), and `lasted_s`. `earlier`: its tries before, which only the
    machine made unknown: for each its `run` and its `reasons`.
    """

    scenario: str
    kafka: str
    seed: int
    verdict: str
    exit: int
    violations: Sequence[Mapping[str, Any]]
    tolerated: Sequence[Mapping[str, Any]]
    not_judged: Sequence[Mapping[str, Any]]
    faults: Sequence[Mapping[str, Any]]
    reasons: Sequence[str]
    versions: Mapping[str, str]
    run: str
    replay: str
    files: Mapping[str, str]
    notes: Sequence[str] = ()
    began: str = ""
    lasted_s: float | None = None
    earlier: Sequence[Mapping[str, Any]] = ()

    @property
    def cell(self) -> Cell:
        """What it is a trial of."""
        return self.scenario, self.kafka, self.seed

    @property
    def tries(self) -> int:
        """How often it was played until it had its verdict."""
        return len(self.earlier) + 1


@dataclass(frozen=True)
class Certificate:
    """All trials of one consumer: those of `suites` on each of `kafka` (versions), once for each of `seeds`.

    `consumer`: its name, digest, the digests of its files, command, claim and, of an image, name and id.
    `harness_digest` is of the harness that tried and judged it. `left_out`: why each suite that there is beside them is
    not asked for. `budget_s`: the time that it was to take. `load`: which part of the suites' load was sent. `schema`:
    of the file that it was read from. `comparison`: what differs between its Kafka versions and from a baseline
    (`comparison/differences.py`); None: nothing was compared.
    """

    consumer: Mapping[str, Any]
    kafka_trial: str
    harness_digest: str
    suites: Sequence[str]
    kafka: Sequence[str]
    seeds: Sequence[int]
    left_out: Mapping[str, str] = field(default_factory=dict)
    budget_s: float | None = None
    load: float = 1.0
    trials: Mapping[Cell, CertifiedTrial] = field(default_factory=dict)
    schema: int = CERTIFICATE_SCHEMA
    comparison: Mapping[str, Any] | None = None

    @property
    def cells(self) -> list[Cell]:
        """Every trial that is asked for, in the order of the page."""
        return [(suite, version, seed) for suite in self.suites for version in self.kafka for seed in self.seeds]

    @property
    def missing(self) -> list[Cell]:
        """What has not been tried."""
        return [cell for cell in self.cells if cell not in self.trials]

    @property
    def tried_again(self) -> list[CertifiedTrial]:
        """The trials that took several tries, because only the machine had made them unknown."""
        return [self.trials[cell] for cell in self.cells if cell in self.trials and self.trials[cell].earlier]

    @property
    def suites_tried(self) -> str:
        """Says on how many of all suites the consumer was tried."""
        tried = {trial.scenario for trial in self.trials.values()}
        return f"{len(tried)} of {len(self.suites) + len(self.left_out)} suites"

    @property
    def when(self) -> str:
        """Says from when to when it was tried, and how long its trials took together; "" where nothing tells it."""
        return times_in_words([(trial.began, trial.lasted_s) for trial in self.trials.values()])

    @property
    def exit(self) -> int:
        """The worst of its trials; while one is missing, unknown at best."""
        return worst([*(trial.exit for trial in self.trials.values()), *([UNKNOWN] if self.missing else [])])

    @property
    def verdict(self) -> str:
        """pass, fail or unknown."""
        return WORDS[self.exit]

    @property
    def client(self) -> Mapping[str, Any] | None:
        """The verdict against a baseline; None where there is no baseline."""
        return None if self.comparison is None else self.comparison["client"]

    @property
    def status(self) -> int:
        """What `certify` ends with: with a baseline whether the consumer is worse than that, else its own verdict."""
        return self.exit if self.client is None else int(self.client["exit"])

    @property
    def differs(self) -> list[Part]:
        """What differs, in words; nothing where nothing was compared."""
        return [] if self.comparison is None else parts_of(self.comparison, self.consumer["name"])

    @property
    def not_judged(self) -> list[tuple[str, list[str]]]:
        """What was claimed or can be judged, and was not in every trial: each reason with the anomalies."""
        return not_judged_by_reason(row for trial in self.trials.values() for row in trial.not_judged)

    @property
    def in_words(self) -> str:
        """Counts its trials in one sentence."""
        counts = [
            f"{count} {word}"
            for word in WORDS.values()
            if (count := sum(trial.verdict == word for trial in self.trials.values()))
        ]
        counts += [f"{len(self.missing)} not tried"] if self.missing else []
        counts += [f"{len(again)} tried again"] if (again := self.tried_again) else []
        versions = ", ".join(self.kafka)
        few = f"only {len(self.suites)} of {len(self.suites) + len(self.left_out)} suites, " if self.left_out else ""
        few += f"at a load of {self.load:g}, " if self.load != 1 else ""
        return f"{self.consumer['name']} on Kafka {versions}, {few}{len(self.cells)} trials: {', '.join(counts)}"

    @property
    def left_out_by_reason(self) -> dict[str, list[str]]:
        """The suites that are not asked for, by why they are not."""
        because: dict[str, list[str]] = {}
        for suite, reason in self.left_out.items():
            because.setdefault(reason, []).append(suite)
        return because

    @property
    def covers(self) -> str:
        """Says of which suites it is a verdict, and which were left out, and why."""
        left_out = [f"{', '.join(suites)} ({reason})" for reason, suites in self.left_out_by_reason.items()]
        return f"covers {', '.join(self.suites)}; left out: {'; '.join(left_out) or 'none'}"


def write_certificate(certificate: Certificate, folder: Path) -> None:
    """Writes certificate.json and index.html, each whole or not at all."""
    trials = [asdict(trial) for _, trial in sorted(certificate.trials.items())]
    table = {
        "schema": CERTIFICATE_SCHEMA,
        "kafka_trial": certificate.kafka_trial,
        "harness_digest": certificate.harness_digest,
        "consumer": certificate.consumer,
        "suites": certificate.suites,
        "kafka": certificate.kafka,
        "seeds": certificate.seeds,
        "budget_s": certificate.budget_s,
        "load": certificate.load,
        "left_out": [{"suite": suite, "because": because} for suite, because in certificate.left_out.items()],
        "trials": trials,
        "not_tried": [dict(zip(("scenario", "kafka", "seed"), cell, strict=True)) for cell in certificate.missing],
        "verdict": certificate.verdict,
        "exit": certificate.exit,
    }
    table |= {} if certificate.comparison is None else {"comparison": certificate.comparison}
    write_table(folder / CERTIFICATE, table)
    page = page_of("certificate.html.j2", certificate=certificate, name=CERTIFICATE, about=_about)
    write_whole(folder / PAGE, page.encode())


def _about(certificate: Certificate, trial: CertifiedTrial | None, seed: int) -> str:
    """Returns what stands beside a verdict in the table: its seed where there are several, how long, how often."""
    told = [f"seed {seed}"] if len(certificate.seeds) > 1 else []
    if trial is not None:
        told += [duration_in_words(trial.lasted_s)] if trial.lasted_s else []
        told += [f"{trial.tries} tries"] if trial.earlier else []
    return ", ".join(told)


def read_certificate(file: Path) -> Certificate:
    """Returns a certificate as it was written.

    Raises:
        InputError: there is no such file, or it is no certificate, or a newer one, or says of itself what its trials do
            not.
    """
    table = read_table(file, name=CERTIFICATE, schema=CERTIFICATE_SCHEMA)
    try:
        trials = [CertifiedTrial(**trial) for trial in table["trials"]]
        names = ("consumer", "kafka_trial", "harness_digest", "suites", "kafka", "seeds")
        certificate = Certificate(
            **{name: table[name] for name in names},
            left_out={row["suite"]: row["because"] for row in table.get("left_out", ())},
            budget_s=table.get("budget_s"),
            load=table.get("load", 1.0),
            trials={one.cell: one for one in trials},
            schema=table["schema"],
            comparison=table.get("comparison"),
        )
        holds = (table["verdict"], table["exit"]) == (
            certificate.verdict,
            certificate.exit,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(str(file), f"is no certificate ({type(error).__name__}: {error})") from error
    if not holds:
        raise InputError(str(file), f"says {table['verdict']!r}, and its trials say {certificate.verdict!r}: edited")
    return certificate


def certified(
    folder: RunFolder, *, cell: Cell, run: str, replay: str, earlier: Sequence[Mapping[str, Any]] = ()
) -> CertifiedTrial:
    """Returns what a certificate says of a judged trial; `earlier`: its tries before, as in `CertifiedTrial`.

    Raises:
        InputError: a file of the run folder is missing or damaged.
    """
    verdict, metadata = folder.read_json("verdict.json"), folder.read_json("run.json")
    scenario, kafka, seed = cell
    began, lasted_s = trial_times(folder)
    return CertifiedTrial(
        scenario=scenario,
        kafka=kafka,
        seed=seed,
        verdict=verdict["verdict"],
        exit=verdict["exit"],
        **{name: verdict[name] for name in OF_VERDICT},
        versions=versions_of(metadata),
        run=run,
        replay=replay,
        files=file_digests(folder.path),
        notes=list(verdict.get("notes", ())),
        began=began,
        lasted_s=lasted_s,
        earlier=list(earlier),
    )


def trial_times(folder: RunFolder) -> tuple[str, float | None]:
    """Returns when a trial began (UTC, ISO 8601; "" unknown), and how long it took in seconds, by its own events."""
    events = [event for event in own_events(folder) if event.source == "run"]
    began_ns = next((event.time_ns for event in events if event.kind == "phase"), None)
    if began_ns is None:
        return "", None
    clocks = [
        (abs(event.time_ns - began_ns), event.details["wall_ns"] + began_ns - event.time_ns)
        for event in events
        if event.kind == "clock" and isinstance(event.details.get("wall_ns"), int)
    ]
    lasted_s = round((max(event.time_ns for event in events) - began_ns) / 1e9, 1)
    if not clocks:
        return "", lasted_s
    began = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=min(clocks)[1] // 10**9)
    return began.strftime("%Y-%m-%dT%H:%M:%SZ"), lasted_s


def times_in_words(times: Iterable[tuple[str, float | None]]) -> str:
    """Returns from when to when trials went on, by when each began and how long it took, and how long all took."""
    known = [(datetime.fromisoformat(began), lasted_s or 0.0) for began, lasted_s in times if began]
    if not known:
        return ""
    first, last = min(known)[0], max(began + timedelta(seconds=lasted_s) for began, lasted_s in known)
    until = last.strftime("%H:%M" if last.date() == first.date() else "%Y-%m-%d %H:%M")
    took = duration_in_words(sum(lasted_s for _, lasted_s in known))
    return f"{first:%Y-%m-%d %H:%M} to {until} UTC; {len(known)} trial{'s' * (len(known) > 1)} took {took}"


def duration_in_words(seconds: float) -> str:
    """Returns a length of time: "48 s", "12 min", "2 h 5 min"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def versions_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Returns the versions that a run.json names, by what they are of."""
    names = ("kafka_trial", "kafka", "toxiproxy", "python")
    return {name: metadata[name] for name in names if name in metadata} | dict(metadata.get("libraries", {}))


def not_judged_by_reason(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Returns each reason why something was not judged, with the anomalies."""
    named: dict[str, set[str]] = {}
    for row in rows:
        named.setdefault(row["because"], set()).add(row["anomaly"])
    return [(because, sorted(names)) for because, names in sorted(named.items())]
