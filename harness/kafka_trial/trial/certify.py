"""Certifying: all suites for one consumer, resumable.

The certificate is written again after every trial, so that one that was stopped goes on where it stopped. Which of its
trials count in the one to go on with is said at the end of this module.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from kafka_trial import __version__, registry
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.consumers.spec import ConsumerSpec
from kafka_trial.containers.engine import connect
from kafka_trial.containers.network import require_image
from kafka_trial.errors import UNKNOWN, InputError, unknown_name
from kafka_trial.history.output_names import CERTIFICATE
from kafka_trial.report.certificate import Cell, Certificate, CertifiedTrial, read_certificate
from kafka_trial.report.sealed_files import changed_files
from kafka_trial.scenario import Scenario, factor_problem
from kafka_trial.trial.certificate_ledger import CertificateLedger, CertifyRequest
from kafka_trial.trial.compare_certificates import compare_certificate, consumer_kind
from kafka_trial.trial.consumer_files import IF_WRITTEN, ConsumerFiles, changes_in_words, consumer_files, folder_digest
from kafka_trial.trial.session import Session
from kafka_trial.trial.spec import (
    make_trial_spec,
    scenario_at_load,
    scenario_consumer_problem,
    scenario_load_problem,
    tier_problem,
)
from kafka_trial.trial.suite_budget import Chosen, choose_suites, suite_seconds, waits_for_metadata_s
from kafka_trial.workload.payload_checks import load_problem

NOT_NAMED = "not named by --suite"
BEGIN_AGAIN = "Name another --out, or take this one away to begin again"
CHANGES_TOLD = 3  # of a run folder


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
    return replace(new, trials=_gone_on_with(certify_request.out, new, files))


def begin_baseline(certify_request: CertifyRequest, begun: Certificate) -> Certificate | None:
    """Returns the certificate of the baseline to go on with, beside the one that was begun; None without a baseline.

    Raises:
        InputError: as `begin_certificate`.
    """
    return None if certify_request.baseline is None else begin_certificate(certify_request.of_baseline(begun))


def certify(
    session: Session,
    certify_request: CertifyRequest,
    begun: Certificate,
    *,
    say: Callable[[str], object],
    baseline: Certificate | None = None,
) -> Certificate:
    """Tries what is missing of a certificate, writes it after every trial and says so, and returns it; at the end it
    says what differs between its versions. `baseline`: the certificate of the baseline that was begun beside it.

    The longest trial begins first, so that no core is idle while it goes on alone at the end. Trials that will be
    compared follow each other, so that a machine that changes meanwhile changes both.
    """
    began_s = time.monotonic()
    until_s = None if certify_request.minutes is None else began_s + certify_request.minutes * 60
    ends_s = math.inf if certify_request.budget_s is None else began_s + certify_request.budget_s
    ledgers = [CertificateLedger(certify_request, begun)]
    if baseline is not None:
        ledgers.append(CertificateLedger(certify_request.of_baseline(begun), baseline, label="baseline "))
    for ledger in ledgers:
        for told in _trials_left(ledger.certify_request.out, ledger.certificate):
            say(f"{ledger.label}{told}")
    takes_s = _suite_seconds(certify_request)
    requests = {
        ledger.request(cell, ends_s - takes_s.get(cell[0], 0)): (ledger, cell)
        for ledger, cell in _in_turn(certify_request, ledgers, takes_s)
    }
    tried = session.try_many(
        list(requests),
        side_by_side=certify_request.side_by_side,
        until_s=until_s,
        retry_unknown=certify_request.retry_unknown,
    )
    for ended, (request, outcome) in enumerate(tried, start=1):
        ledger, cell = requests[request]
        say(f"{ended}/{len(requests)} {ledger.take(cell, outcome)}")
        if changes := ledger.new_changes():
            say(changes)
    for ledger in reversed(ledgers):
        _compare(ledger, ledgers)
        ledger.write()
    return ledgers[0].certificate


def _compare(ledger: CertificateLedger, ledgers: Sequence[CertificateLedger]) -> None:
    """Has a certificate say what differs, where it has several versions or a baseline."""
    old = ledgers[-1].certificate if ledger is ledgers[0] and len(ledgers) > 1 else None
    if old is None and len(ledger.certificate.kafka) == 1:
        return
    request = ledger.certify_request
    kind = consumer_kind(spec_from_toml(request.consumer, image=request.image))
    ledger.compare(compare_certificate(ledger.certificate, request.out, kind, baseline=old))


def lanes_of(certify_request: CertifyRequest) -> int:
    """Returns how many lanes one of its trials needs at most, or of its baseline's."""
    tried = [(certify_request.consumer, certify_request.image)]
    tried += [(certify_request.baseline, None)] if certify_request.baseline else []
    lanes = []
    for consumer, image in tried:
        spec = spec_from_toml(consumer, image=image)
        scenarios = [one for one in registry.scenarios().values() if _problem(certify_request, spec, one) is None]
        specs = [make_trial_spec(one, consumer, seed=1, image=image, load=certify_request.load) for one in scenarios]
        lanes += [one.lanes_in_all for one in specs]
    return max(lanes)


def _suite_seconds(certify_request: CertifyRequest) -> dict[str, float]:
    """Returns how long a trial of the consumer takes on each suite that was timed."""
    kafka = spec_from_toml(certify_request.consumer, image=certify_request.image).kafka
    return suite_seconds(waits_s=waits_for_metadata_s(kafka, registry.scenarios().values()))


def _in_turn(
    certify_request: CertifyRequest, ledgers: Sequence[CertificateLedger], takes_s: Mapping[str, float]
) -> list[tuple[CertificateLedger, Cell]]:
    """Returns the order in which trials are begun: the longest first, those that nobody has timed before it.

    With a budget the others follow by their worth, for a machine that is slower than it was thought to be; with
    `minutes` alone all stay in their order.
    """
    turns = _side_by_side(ledgers)
    longest_first = sorted(turns, key=lambda turn: -takes_s.get(turn[1][0], math.inf))
    if certify_request.budget_s is not None:
        return [*longest_first[:1], *(turn for turn in turns if turn != longest_first[0])]
    return turns if certify_request.minutes is not None else longest_first


def _side_by_side(ledgers: Sequence[CertificateLedger]) -> list[tuple[CertificateLedger, Cell]]:
    """Returns what is missing, suite by suite; the trials of one suite and seed, which are compared, follow each other,
    with every other seed in the opposite order."""
    certificate, turns = ledgers[0].certificate, []
    for suite in certificate.suites:
        for number, seed in enumerate(certificate.seeds):
            both = [(ledger, (suite, kafka, seed)) for kafka in certificate.kafka for ledger in ledgers]
            turns += both[:: -1 if number % 2 else 1]
    return [(ledger, cell) for ledger, cell in turns if cell not in ledger.certificate.trials]


def _chosen(certify_request: CertifyRequest, spec: ConsumerSpec) -> Chosen:
    """Returns the suites to try, and why each other one is left out.

    Raises:
        InputError: one that is named cannot be played with the consumer's payload or sink, or at so small a load, or
            none can.
    """
    scenarios = registry.scenarios()
    problems = _problems(certify_request, spec)
    if certify_request.baseline is not None:
        of_baseline = _problems(certify_request, spec_from_toml(certify_request.baseline))
        problems = {name: f"the baseline cannot play it: {told}" for name, told in of_baseline.items()} | problems
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
        trials_each=len(_versions(certify_request))
        * len(certify_request.seeds)
        * (2 if certify_request.baseline else 1),
        side_by_side=certify_request.side_by_side or os.cpu_count() or 1,
        waits_s=waits_for_metadata_s(spec.kafka, scenarios.values()),
    )
    return replace(chosen, left_out=chosen.left_out | others)


def _problems(certify_request: CertifyRequest, spec: ConsumerSpec) -> dict[str, str]:
    """Returns why each suite that cannot be played with a consumer cannot."""
    scenarios = registry.scenarios().items()
    return {name: problem for name, one in scenarios if (problem := _problem(certify_request, spec, one))}


def _problem(certify_request: CertifyRequest, spec: ConsumerSpec, scenario: Scenario) -> str | None:
    """Returns why a suite cannot be played with a consumer; None where it can."""
    if problem := scenario_load_problem(spec, scenario, certify_request.load) or scenario_consumer_problem(
        spec, scenario
    ):
        return problem
    if problem := tier_problem(spec, scenario, _versions(certify_request)):
        return problem
    return load_problem(spec.payload_files, scenario_at_load(spec, scenario, certify_request.load))


def _versions(certify_request: CertifyRequest) -> list[str]:
    return list(certify_request.kafka_versions or (DEFAULT_VERSION,))


def _gone_on_with(out: Path, new: Certificate, files: ConsumerFiles) -> dict[tuple[str, str, int], CertifiedTrial]:
    """Returns the trials of the certificate in `out` that count in a new one; `files`: those of the consumer now.

    Raises:
        InputError: what is there is another's certificate.
    """
    file = out / CERTIFICATE
    if not file.exists():
        return {}
    old = read_certificate(file)
    if problem := _other(old, new, files):
        raise InputError(str(file), problem)
    return {cell: trial for cell, trial in old.trials.items() if not _left(out, new, trial)}


def _trials_left(out: Path, begun: Certificate) -> list[str]:
    """Returns which trials of the certificate that is there do not count in the one to go on with, and why."""
    file = out / CERTIFICATE
    if not file.exists():
        return []
    trials = read_certificate(file).trials.values()
    told = {trial.cell: because for trial in trials if (because := _left(out, begun, trial))}
    return [f"{' '.join(map(str, cell))} {because}" for cell, because in told.items()]


def _left(out: Path, new: Certificate, trial: CertifiedTrial) -> str:
    """Returns why a trial of an earlier sitting does not count; "" where it does."""
    if trial.cell not in new.cells:
        return "is not asked for any more, and is left out"
    if trial.exit == UNKNOWN:
        return "was unknown: it is tried again"
    changed = changed_files(out, trial.run, trial.files)
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
