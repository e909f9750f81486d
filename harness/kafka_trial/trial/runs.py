"""Several trials, one after the other: which seeds, where they go, how they ended; and the demonstration.

What `kafka-trial run` asks for is one scenario and one consumer; clusters and judge stay warm between trials
(`session.py`). The demonstration is one scenario and one seed for a sound consumer, which must be acquitted, and a
faulty one, which must be convicted.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka_trial import registry
from kafka_trial.cluster.attached import AttachedCluster, attach
from kafka_trial.errors import FAIL, PASS, UNKNOWN, InputError, did_you_mean, worst
from kafka_trial.history.store import check_out
from kafka_trial.option_checks import check_seed
from kafka_trial.scenario import Scenario
from kafka_trial.trial.session import Session, TrialOutcome, TrialRequest
from kafka_trial.trial.spec import TrialSpec, make_trial_spec

SEEDS_MAX = 10_000
SCENARIO_FILES = (".toml", ".json")


def ask(options: Namespace) -> tuple[list[TrialRequest], AttachedCluster | None]:
    """Returns the trials that the words of `run` ask for, every word checked, and the cluster they are to run on.

    Raises:
        InputError: something in them is wrong; nothing has been started.
    """
    if options.exact and not options.schedule:
        raise InputError("--exact", "replays recorded targets and so needs --schedule FILE")
    cluster = attach(options.cluster) if options.cluster else None
    seeds = _seeds(options)
    out = Path(options.out) if options.out else None
    requests = [
        TrialRequest(_trial_spec(options, seed, cluster), out if out is None or len(seeds) == 1 else out / str(number))
        for number, seed in enumerate(seeds, start=1)
    ]
    if cluster is not None:
        _check_fits(requests[0].trial_spec, cluster)
    for one in requests:
        if one.out is not None:
            check_out(one.out, empty=True)
    return requests, cluster


def find_scenario(given: str) -> Scenario:
    """Returns the scenario of a registered name or a file, as `registry.find_scenario`; a file must be one.

    Raises:
        InputError: there is no such name or file, or the file is wrong.
    """
    names, path = sorted(registry.scenarios()), Path(given)
    if given not in names and path.is_dir():
        raise InputError("scenario", f"{given} is a folder: name a TOML file in it")
    if given not in names and path.suffix in SCENARIO_FILES and not path.exists():
        hint = did_you_mean(path.stem, names)
        raise InputError(
            "scenario", f"no such file: {given}.{hint} Give the path of a file, or one of: {', '.join(names)}"
        )
    return registry.find_scenario(given)


def consumer_in_words(given: str) -> str | None:
    """Returns the line that says which file was taken where a folder was given; None where a file or a name was."""
    return f"consumer {registry.find_consumer(given)} (of the folder {given})" if Path(given).is_dir() else None


def run_all(session: Session, requests: Sequence[TrialRequest], *, retry_unknown: int = 0) -> int:
    """Runs and reports the trials in turn, then says how all of them ended; returns the worst status."""
    done: list[TrialOutcome] = []
    try:
        for one in requests:
            done.append(session.try_spec(one.trial_spec, out=one.out, retry_unknown=retry_unknown))
            with session.console.paused():
                print("\n".join(filter(None, [done[-1].text, done[-1].tries, done[-1].ending])), flush=True)
    finally:  # Ctrl-C, or a trial that could not begin: those before it are told
        if len(requests) > 1:
            with session.console.paused():
                print("\n".join(summary(requests, done)), flush=True)
    return worst(trial_outcome.verdict.exit for trial_outcome in done)


def summary(requests: Sequence[TrialRequest], done: Sequence[TrialOutcome]) -> list[str]:
    """Returns a line for each trial that was done, and one that counts them; of a retried one every try counts."""
    lines = [
        f"seed {one.trial_spec.seed}: {trial_outcome.verdict.verdict}  {trial_outcome.folder.path}"
        + (f"  ({trial_outcome.tries})" if trial_outcome.tries else "")
        for one, trial_outcome in zip(requests, done, strict=False)
    ]
    counted = Counter(trial_outcome.verdict.verdict for trial_outcome in done)
    words = ", ".join(f"{counted[word]} {word}" for word in ("fail", "unknown", "pass") if counted[word])
    again = sum(len(trial_outcome.earlier) for trial_outcome in done)
    tried = f"; {again} unknown before, tried again" if again else ""
    missing = f"; {len(requests) - len(done)} not done" if len(done) < len(requests) else ""
    return ["", *lines, f"{len(done)} trials: {words or 'none ended'}{tried}{missing}"]


def parse_seeds(given: str) -> list[int]:
    """Returns the seeds of `1..5`, `3,7,11`, or both mixed.

    Raises:
        InputError: it is neither, or names none, or too many.
    """
    seeds: list[int] = []
    for part in given.split(","):
        found = re.fullmatch(r"\s*(\d+)(?:\.\.(\d+))?\s*", part)
        if found is None:
            raise InputError("--seeds", f"{part!r} is no seed and no range; write 1..5, or 3,7,11")
        first, last = int(found[1]), int(found[2] or found[1])
        check_seed("--seeds", last)
        if last < first or last - first >= SEEDS_MAX:
            raise InputError("--seeds", f"{part!r} must rise, by at most {SEEDS_MAX} seeds")
        seeds += range(first, last + 1)
    return seeds


def _seeds(options: Namespace) -> list[int | None]:
    """Returns the seed of each trial; None: drawn."""
    if options.seeds is not None:
        if options.seed is not None:
            raise InputError("--seeds", "and --seed exclude each other: give one of them")
        return [*parse_seeds(options.seeds)]
    return [options.seed] * (options.repeat or 1)


def _trial_spec(options: Namespace, seed: int | None, cluster: AttachedCluster | None) -> TrialSpec:
    return make_trial_spec(
        find_scenario(options.scenario),
        registry.find_consumer(options.consumer),
        kafka_version=options.kafka or (cluster.kafka_version if cluster else None),
        seed=seed,
        schedule=Path(options.schedule) if options.schedule else None,
        exact=options.exact,
        scenario_file=registry.scenario_file(options.scenario),
        image=options.consumer_image,
        payload=Path(options.payload) if options.payload else None,
        load=options.load,
    )


def _check_fits(trial_spec: TrialSpec, cluster: AttachedCluster) -> None:
    problems = []
    if trial_spec.in_containers:
        problems.append("its brokers are processes, which no container reaches; leave --cluster out")
    if trial_spec.plan.breaks_brokers:
        problems.append(f"{trial_spec.scenario.name} breaks brokers, which are another process's; leave --cluster out")
    if trial_spec.kafka_version != cluster.kafka_version:
        problems.append(f"it runs Kafka {cluster.kafka_version}, not {trial_spec.kafka_version}")
    if trial_spec.scenario.brokers != len(cluster.brokers):
        problems.append(f"it has {len(cluster.brokers)} brokers, the scenario asks for {trial_spec.scenario.brokers}")
    if problems:
        raise InputError(f"--cluster {cluster.state.name}", problems)


@dataclass(frozen=True)
class Demonstration:
    """Both trials, and whether the verdicts are as they must be."""

    sound: TrialOutcome
    faulty: TrialOutcome

    @property
    def as_it_must_be(self) -> bool:
        return self.sound.verdict.verdict == "pass" and self.faulty.verdict.verdict == "fail"

    @property
    def exit_status(self) -> int:
        """Of both: 4 where a verdict is unknown, which shows nothing; 1 where one is the wrong one."""
        if "unknown" in (self.sound.verdict.verdict, self.faulty.verdict.verdict):
            return UNKNOWN
        return PASS if self.as_it_must_be else FAIL


def ask_demonstration(
    *, scenario: str, sound: str, faulty: str, kafka_version: str | None, seed: int
) -> tuple[TrialSpec, TrialSpec]:
    """Returns the trials of a sound and a faulty consumer on `scenario` under `seed`, every word checked.

    Raises:
        InputError: something in them is wrong; nothing has been started.
    """
    known = find_scenario(scenario)
    first, second = (
        make_trial_spec(known, registry.find_consumer(name), kafka_version=kafka_version, seed=seed)
        for name in (sound, faulty)
    )
    return first, second


def demonstrate(session: Session, asked: tuple[TrialSpec, TrialSpec]) -> Demonstration:
    """Runs the trial of the sound consumer, then that of the faulty one, in fresh run folders; returns both judged."""
    trials = []
    for must_be, trial_spec in zip(("acquitted", "convicted"), asked, strict=True):
        session.console.say(f"\n== the consumer that must be {must_be}: {trial_spec.consumer.name}")
        trials.append(session.try_spec(trial_spec))
    return Demonstration(*trials)


def demonstration_in_words(demonstration: Demonstration) -> str:
    """Returns both reports, one closing sentence, and where the pages are."""
    parts = [demonstration.sound.text, "", demonstration.faulty.text, ""]
    verdicts = f"sound: {demonstration.sound.verdict.verdict}, faulty: {demonstration.faulty.verdict.verdict}"
    ending = "as it must be" if demonstration.as_it_must_be else "NOT as it must be (sound: pass, faulty: fail)"
    trials = {"sound": demonstration.sound, "faulty": demonstration.faulty}
    pages = [
        f"page of the {role} one: {trial_outcome.folder.path / 'report.html'}" for role, trial_outcome in trials.items()
    ]
    return "\n".join([*parts, f"demo: {verdicts} — {ending}", *pages])
