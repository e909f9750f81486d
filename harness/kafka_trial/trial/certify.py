"""Certifying: all suites for one consumer, resumable.

The certificate is written again after every trial, so that one that was stopped goes on where it stopped.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kafka_trial import __version__, registry
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.consumers.spec import ConsumerSpec
from kafka_trial.containers.engine import connect
from kafka_trial.containers.network import require_image
from kafka_trial.errors import UNKNOWN, InputError, KafkaTrialError, unknown_name
from kafka_trial.history.output_names import CERTIFICATE
from kafka_trial.history.store import RunFolder
from kafka_trial.report.certificate import (
    Cell,
    Certificate,
    CertifiedTrial,
    certified,
    read_certificate,
    write_certificate,
)
from kafka_trial.report.junit import write_junit
from kafka_trial.report.report_data import read_report
from kafka_trial.report.sealed_files import changed_files
from kafka_trial.scenario import Scenario, factor_problem
from kafka_trial.trial.consumer_files import (
    IF_WRITTEN,
    ChangeWatch,
    ConsumerFiles,
    changes_in_words,
    consumer_files,
    folder_digest,
)
from kafka_trial.trial.session import Session, Trialed, TrialRequest
from kafka_trial.trial.spec import (
    make_trial_spec,
    scenario_at_load,
    scenario_consumer_problem,
    scenario_load_problem,
)
from kafka_trial.trial.suite_budget import Chosen, choose_suites, suite_seconds, waits_for_metadata_s
from kafka_trial.workload.payload_checks import load_problem

RUNS = "runs"
NOT_NAMED = "not named by --suite"
BEGIN_AGAIN = "Name another --out, or take this one away to begin again"
CHANGES_TOLD = 3  # of a run folder


@dataclass(frozen=True)
class CertifyRequest:
    """What is asked: which consumer, on which suites (empty: all) and Kafka versions (empty: the newest known), each
    once for each of `seeds`; `out` is where certificate, page and run folders go. No trial is begun after `minutes`.
    What only the machine made unknown is tried up to `retry_unknown` times more.

    With `budget_s` only those of the suites that find most in this time (`suite_budget.py`), and no trial is begun that
    by the calibration cannot end within it. `load`: which part of the suites' load; None: as consumer.toml says."""

    consumer: Path
    out: Path
    suites: Sequence[str] = ()
    kafka_versions: Sequence[str] = ()
    seeds: Sequence[int] = (1,)
    minutes: float | None = None
    budget_s: float | None = None
    side_by_side: int | None = None
    retry_unknown: int = 1
    image: str | None = None
    load: float | None = None


def begin_certificate(certify_request: CertifyRequest) -> Certificate:
    """Returns the certificate to go on with: what `out` holds already of this consumer, tried by this very harness.

    A trial that ended unknown, or whose run folder has changed, is left out: it is tried again.

    Raises:
        InputError: a suite or a version is not known, the consumer is wrong, the budget is too small for any suite, or
            `out` holds another's certificate.
    """
    names = list(registry.scenarios())
    if problems := [unknown_name("suite", name, names) for name in certify_request.suites if name not in names]:
        raise InputError("--suite", problems)
    if certify_request.load is not None and (problem := factor_problem(certify_request.load)):
        raise InputError("--load", problem)
    spec = spec_from_toml(certify_request.consumer, image=certify_request.image)
    chosen = _chosen(certify_request, spec)
    image = {"image": {"name": spec.image, "id": require_image(connect(), spec.image)}} if spec.image else {}
    files = consumer_files(certify_request.consumer, spec.payload_files, out=certify_request.out)
    new = Certificate(
        consumer={
            "name": spec.name,
            "digest": files.digest,
            "files": files.stored(),
            "command": list(spec.command),
            **image,
            "claim": asdict(spec.claim),
        },
        kafka_trial=__version__,
        harness_digest=folder_digest(registry.PACKAGE),
        suites=chosen.suites,
        kafka=_versions(certify_request),
        seeds=list(certify_request.seeds),
        left_out=chosen.left_out,
        budget_s=certify_request.budget_s,
        load=spec.load.factor if certify_request.load is None else certify_request.load,
    )
    for version in new.kafka:
        make_trial_spec(
            registry.scenarios()[new.suites[0]],
            certify_request.consumer,
            kafka_version=version,
            image=certify_request.image,
            load=certify_request.load,
        )
    file = certify_request.out / CERTIFICATE
    if not file.exists():
        return new
    old = read_certificate(file)
    if problem := _other(old, new, files):
        raise InputError(str(file), problem)
    standing = {cell: trial for cell, trial in old.trials.items() if not _left(certify_request, new, trial)}
    return replace(new, trials=standing)


def trials_left(certify_request: CertifyRequest, begun: Certificate) -> list[str]:
    """Returns which trials of the certificate that is there do not count in the one to go on with, and why."""
    file = certify_request.out / CERTIFICATE
    if not file.exists():
        return []
    trials = read_certificate(file).trials.values()
    told = {trial.cell: because for trial in trials if (because := _left(certify_request, begun, trial))}
    return [f"{' '.join(map(str, cell))} {because}" for cell, because in told.items()]


def _left(certify_request: CertifyRequest, new: Certificate, trial: CertifiedTrial) -> str:
    """Returns why a trial of an earlier sitting does not count; "" where it does."""
    if trial.cell not in new.cells:
        return "is not asked for any more, and is left out"
    if trial.exit == UNKNOWN:
        return "was unknown: it is tried again"
    changed = changed_files(certify_request.out, trial.run, trial.files)
    return f"is tried again: {'; '.join(changed[:CHANGES_TOLD])}" if changed else ""


def _other(old: Certificate, new: Certificate, files: ConsumerFiles) -> str:
    """Returns why a certificate cannot be gone on with, by what differs, and what to do; "" where all that it rests on
    is the same."""
    if old.consumer["name"] != new.consumer["name"]:
        return f"is of another consumer ({old.consumer['name']}; asked for: {new.consumer['name']}). {BEGIN_AGAIN}"
    if old.harness_digest != new.harness_digest:
        states = [f"{one.kafka_trial}, state {one.harness_digest}" for one in (old, new)]
        return f"was made by another kafka-trial ({states[0]}; this is {states[1]}). {BEGIN_AGAIN}"
    if old.load != new.load:
        return f"is of trials at a load of {old.load:g} (asked for: {new.load:g}). {BEGIN_AGAIN}"
    if old.consumer.get("image") != new.consumer.get("image"):
        return f"is of another {_images_in_words(new, old)}. {BEGIN_AGAIN}"
    if "files" not in old.consumer:
        return f"was made by an earlier kafka-trial, which did not store what files the consumer has. {BEGIN_AGAIN}"
    changes = files.changes_since(old.consumer["files"])
    told = f"is of an earlier state of the consumer: {changes_in_words(changes)}"
    return f"{told}. {BEGIN_AGAIN}. {IF_WRITTEN}" if changes else ""


def _images_in_words(new: Certificate, old: Certificate) -> str:
    """Returns the word "image" with that of an old certificate and the one that is asked for now."""
    return f"image ({_image_of(old)}; now asked for: {_image_of(new)})"


def _image_of(certificate: Certificate) -> str:
    image = certificate.consumer.get("image")
    return f"{image['name']}, {image['id']}" if image else "none"


def certify(
    session: Session, certify_request: CertifyRequest, begun: Certificate, *, say: Callable[[str], object]
) -> Certificate:
    """Tries what is missing of a certificate, writes it after every trial and says so, and returns it.

    The longest trial begins first, so that no core is idle while it goes on alone at the end.
    """
    began_s = time.monotonic()
    until_s = None if certify_request.minutes is None else began_s + certify_request.minutes * 60
    ends_s = math.inf if certify_request.budget_s is None else began_s + certify_request.budget_s
    takes_s = _suite_seconds(certify_request)
    certify_request.out.mkdir(parents=True, exist_ok=True)
    for told in trials_left(certify_request, begun):
        say(told)
    trials = dict(begun.trials)
    certificate = replace(begun, trials=trials)
    requests = {
        _request(certify_request, cell, ends_s - takes_s.get(cell[0], 0)): cell
        for cell in _in_turn(certify_request, certificate.missing, takes_s)
    }
    not_begun: dict[Cell, str] = {}
    tried = session.try_many(
        list(requests),
        side_by_side=certify_request.side_by_side,
        until_s=until_s,
        retry_unknown=certify_request.retry_unknown,
    )
    watch = _watch(certify_request, begun)
    for ended, (request, outcome) in enumerate(tried, start=1):
        cell = requests[request]
        trials.update({cell: _certified(certify_request, cell, outcome)} if isinstance(outcome, Trialed) else {})
        not_begun.update({cell: str(outcome)} if isinstance(outcome, KafkaTrialError) else {})
        write_certificate(certificate, certify_request.out)
        write_junit(certificate, certify_request.out, not_begun)
        say(f"{ended}/{len(requests)} {' '.join(map(str, cell))}: {_told(outcome)}")
        if changes := watch.new_changes():
            say(changes)
    write_certificate(certificate, certify_request.out)
    write_junit(certificate, certify_request.out, not_begun)
    return certificate


def lanes_of(certify_request: CertifyRequest) -> int:
    """Returns how many lanes one of its trials needs at most."""
    spec = spec_from_toml(certify_request.consumer, image=certify_request.image)
    scenarios = [one for one in registry.scenarios().values() if _problem(certify_request, spec, one) is None]
    specs = [
        make_trial_spec(one, certify_request.consumer, seed=1, image=certify_request.image, load=certify_request.load)
        for one in scenarios
    ]
    return max(one.lanes for one in specs)


def _suite_seconds(certify_request: CertifyRequest) -> dict[str, float]:
    """Returns how long a trial of the consumer takes on each suite that was timed."""
    kafka = spec_from_toml(certify_request.consumer, image=certify_request.image).kafka
    return suite_seconds(waits_s=waits_for_metadata_s(kafka, registry.scenarios().values()))


def _in_turn(certify_request: CertifyRequest, cells: Sequence[Cell], takes_s: Mapping[str, float]) -> list[Cell]:
    """Returns the order in which trials are begun: the longest first, those that nobody has timed before it.

    With a budget the others follow by their worth, for a machine that is slower than it was thought to be; with
    `minutes` alone all stay in their order.
    """
    longest_first = sorted(cells, key=lambda cell: -takes_s.get(cell[0], math.inf))
    if certify_request.budget_s is not None:
        return [*longest_first[:1], *(cell for cell in cells if cell != longest_first[0])]
    return list(cells) if certify_request.minutes is not None else longest_first


def _chosen(certify_request: CertifyRequest, spec: ConsumerSpec) -> Chosen:
    """Returns the suites to try, and why each other one is left out.

    Raises:
        InputError: one that is named cannot be played with the consumer's payload or sink, or at so small a load, or
            none can.
    """
    scenarios = registry.scenarios()
    problems = {name: problem for name, one in scenarios.items() if (problem := _problem(certify_request, spec, one))}
    if wrong := [f"{name} cannot be played: {problems[name]}" for name in certify_request.suites if name in problems]:
        raise InputError("--suite", wrong)
    named = [name for name in scenarios if name in (certify_request.suites or scenarios) and name not in problems]
    if not named:
        raise InputError(
            str(certify_request.consumer), [f"{name} cannot be played: {told}" for name, told in problems.items()]
        )
    others = {name: problems.get(name, NOT_NAMED) for name in scenarios if name not in named}
    if certify_request.budget_s is None:
        return Chosen(named, others)
    chosen = choose_suites(
        named,
        budget_s=certify_request.budget_s,
        trials_each=len(_versions(certify_request)) * len(certify_request.seeds),
        side_by_side=certify_request.side_by_side or os.cpu_count() or 1,
        waits_s=waits_for_metadata_s(spec.kafka, scenarios.values()),
    )
    return replace(chosen, left_out=chosen.left_out | others)


def _problem(certify_request: CertifyRequest, spec: ConsumerSpec, scenario: Scenario) -> str | None:
    """Returns why a suite cannot be played with a consumer; None where it can."""
    if problem := scenario_load_problem(spec, scenario, certify_request.load) or scenario_consumer_problem(
        spec, scenario
    ):
        return problem
    return load_problem(spec.payload_files, scenario_at_load(spec, scenario, certify_request.load).load)


def _versions(certify_request: CertifyRequest) -> list[str]:
    return list(certify_request.kafka_versions or (DEFAULT_VERSION,))


def _request(certify_request: CertifyRequest, cell: Cell, begin_by_s: float) -> TrialRequest:
    scenario, version, seed = cell
    place = certify_request.out / RUNS / version / scenario / str(seed)
    for left in (place, *place.parent.glob(f"{seed}-try*")):  # of one that was stopped in the midst of this trial
        shutil.rmtree(left, ignore_errors=True)
    spec = make_trial_spec(
        registry.find_scenario(scenario),
        certify_request.consumer,
        kafka_version=version,
        seed=seed,
        image=certify_request.image,
        load=certify_request.load,
    )
    return TrialRequest(spec, place, begin_by_s)


def _watch(certify_request: CertifyRequest, begun: Certificate) -> ChangeWatch:
    payload = spec_from_toml(certify_request.consumer, image=certify_request.image).payload_files
    return ChangeWatch(certify_request.consumer, payload, certify_request.out, begun.consumer["files"])


def _certified(certify_request: CertifyRequest, cell: Cell, outcome: Trialed) -> CertifiedTrial:
    folder, earlier = (
        outcome.folder,
        [
            {"run": _inside(certify_request, one.folder), "reasons": list(one.verdict.reasons)}
            for one in outcome.earlier
        ],
    )
    replay = read_report(folder, with_history=False).replay
    return certified(folder, cell=cell, run=_inside(certify_request, folder), replay=replay, earlier=earlier)


def _inside(certify_request: CertifyRequest, folder: RunFolder) -> str:
    return folder.path.relative_to(certify_request.out.absolute()).as_posix()


def _told(outcome: Trialed | KafkaTrialError) -> str:
    if isinstance(outcome, KafkaTrialError):
        return f"not begun: {outcome}"
    tries = len(outcome.earlier) + 1
    again = [f"tried {tries} times: the machine had made it unknown"] if tries > 1 else []
    return ", ".join([outcome.verdict.verdict, *(one.anomaly for one in outcome.verdict.violations), *again])
