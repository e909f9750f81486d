"""What each verb of the command does: read words, call one function, print, return the exit status."""

from __future__ import annotations

import os
import random
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from kafka_trial import registry
from kafka_trial.claim import Claim
from kafka_trial.consumers.patched_consumer import read_consumer_toml
from kafka_trial.errors import NOT_BEGUN, PASS, UNKNOWN, InputError, worst
from kafka_trial.history.store import check_out
from kafka_trial.trial.console import Console

if TYPE_CHECKING:
    from kafka_trial.history.store import RunFolder
    from kafka_trial.kafka_protocol.security import Security
    from kafka_trial.verdict.decide import Verdict

Rows = list[dict[str, str]]


def init(options: Namespace) -> int:
    """`init FOLDER`: a consumer.toml and a small consumer, and the commands that build it and put it on trial."""
    from kafka_trial.starters.starter import build_lines, write_starter

    folder = Path(options.folder)
    name = options.name or folder.resolve().name
    files = write_starter(folder, name=name, language=options.language, sink=options.sink)
    print(*(f"wrote {file}" for file in files), "\nnow:", sep="\n")
    enter = [] if folder == Path() else [f"cd {folder}"]
    trial = "kafka-trial run member-killed --consumer consumer.toml"
    print(*(f"  {line}" for line in (*enter, *build_lines(name, options.language), trial)), sep="\n")
    return PASS


def run(options: Namespace) -> int:
    """`run SCENARIO --consumer FILE`: one trial or several in turn, judged and reported."""
    from kafka_trial.cluster.wiring import LANES
    from kafka_trial.trial.runs import ask, consumer_in_words, run_all
    from kafka_trial.trial.session import Session

    asked, cluster = ask(options)
    lanes = max(LANES, *(one.trial_spec.lanes_in_all for one in asked))
    with (
        Console() as console,
        Session(console=console, judging=not options.no_check, cluster=cluster, lanes=lanes) as session,
    ):
        if told := consumer_in_words(options.consumer):
            console.say(told)
        if not options.no_check:
            return run_all(session, asked, retry_unknown=options.retry_unknown)
        statuses = []
        for one in asked:
            folder = session.run_one(one.trial_spec, out=one.out)
            with console.paused():
                print(folder.path, flush=True)
            statuses.append(status_without_check(folder, console))
        return worst(statuses)


def check(options: Namespace) -> int:
    """`check RUN…`: judges stored runs again; the worst status wins."""
    from kafka_trial.check import check_run
    from kafka_trial.history.store import open_run_folder
    from kafka_trial.judge.spark_session import check_master
    from kafka_trial.report.text import last_lines, text_report
    from kafka_trial.trial.judge_process import judging_in_words

    check_master(options.spark_master)
    folders = [open_run_folder(Path(given)) for given in options.runs]
    statuses = []
    with Console() as console:
        for folder in folders:
            console.phase("check", judging_in_words(folder))
            verdict = check_run(folder, spark_master=options.spark_master, partitions=options.partitions)
            with console.paused():
                print(text_report(folder), last_lines(folder), sep="\n", flush=True)
            statuses.append(verdict.exit)
    return worst(statuses)


def report(options: Namespace) -> int:
    """`report RUN…`: writes the pages of runs that have been judged."""
    from kafka_trial.history.store import open_run_folder
    from kafka_trial.report.html import write_reports

    for given in options.runs:
        folder = open_run_folder(Path(given))
        write_reports(folder)
        print(folder.path / "report.html")
    return PASS


def show(options: Namespace) -> int:
    """`show RUN SELECTOR…`: one event, or all that the history says of one record, with neighbours."""
    from kafka_trial.history.store import open_run_folder
    from kafka_trial.report.excerpts import show as told

    print(told(open_run_folder(Path(options.run)), options.selectors, around=max(0, options.around)))
    return PASS


def explain(options: Namespace) -> int:
    """`explain ANOMALY`: its definition, its usual cause, what to change, and how often it was found where it was."""
    from kafka_trial.report.explain import calibrated, page
    from kafka_trial.report.explain import explain as section

    if options.all:
        print(page(), end="")  # figures that every measurement changes have no place in a page
    else:
        print(section(options.anomaly), calibrated(options.anomaly), sep="\n\n")
    return PASS


def list_things(options: Namespace) -> int:
    """`list scenarios|suites|faults|invariants|consumers`."""
    rows = LISTS[options.what]()
    if options.json:
        print(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
    elif options.markdown:
        print("\n".join(markdown(rows)))
    else:
        width = max((len(row["name"]) for row in rows), default=0)
        for row in rows:
            print(f"{row['name']:{width}}  {_in_one_line(row)}")
    return PASS


def _in_one_line(row: dict[str, str]) -> str:
    """Returns the summary of a row, and in brackets what else is known."""
    more = "; ".join(f"{key} {value}" for key, value in row.items() if key not in ("name", "summary") and value)
    return f"{row['summary'].rstrip('.')} ({more})" if more else row["summary"].rstrip(".")


def doctor(options: Namespace) -> int:
    """`doctor`: every part with its place, version and remedy; 3 when something that a trial needs is missing."""
    from kafka_trial.cluster.doctor import examine, in_words

    with Console(live=False) as console:
        console.phase("doctor", "looking at every part", shown=False)
        findings = examine(fetch=options.fetch or [])
    if options.json:
        print(orjson.dumps([vars(finding) for finding in findings], option=orjson.OPT_INDENT_2, default=str).decode())
    else:
        print(in_words(findings))
    return PASS if all(finding.ok for finding in findings) else NOT_BEGUN


def cluster(options: Namespace) -> int:
    """`cluster up|down|status|list`."""
    from kafka_trial.cluster import detached

    if options.action == "up":
        with Console(live=False):
            return detached.up(options.kafka, brokers=options.brokers, name=options.name, detach=options.detach)
    if options.action == "down":
        return detached.down(options.name)
    if options.action == "status":
        return detached.status(options.name)
    return detached.list_clusters()


def cuts(options: Namespace) -> int:
    """`cuts --consumer FILE`: cuts a member at every place of every API that it uses, and shows the matrix."""
    from kafka_trial.cluster.kafka_cut import API_KEYS, WHERE
    from kafka_trial.nemesis.cut_scenarios import CUT_ACTIONS, MATRIX_ACTIONS
    from kafka_trial.report.cut_page import PAGE, matrix_text
    from kafka_trial.trial.cut_matrix import MatrixRun, lanes_for, named, walk
    from kafka_trial.trial.session import Session

    check_out(Path(options.out))
    asked = MatrixRun(
        registry.find_consumer(options.consumer),
        Path(options.out),
        kafka_version=options.kafka,
        seed=options.seed,
        apis=named("--api", options.api or (), API_KEYS),
        places=named("--where", options.where or WHERE, WHERE),
        actions=named("--action", options.action or MATRIX_ACTIONS, CUT_ACTIONS),
        minutes=options.minutes,
        side_by_side=options.side_by_side,
        retry_unknown=options.retry_unknown,
        image=options.consumer_image,
    )
    with (
        Console() as console,
        Session(lanes=lanes_for(asked)) as session,
    ):
        console.phase("cuts", "a line for each trial that has ended")
        matrix = walk(session, asked, say=console.say)
    print(matrix_text(matrix), Path(options.out) / PAGE, sep="\n")
    return matrix.exit_status


def certify(options: Namespace) -> int:
    """`certify --consumer FILE`: all suites, one certificate; the status is that of the worst trial, with a baseline
    whether the consumer is worse than that."""
    from kafka_trial.cluster.wiring import LANES
    from kafka_trial.report.certificate import PAGE
    from kafka_trial.report.markdown import append_summary, certificate_summary
    from kafka_trial.trial.certificate_ledger import CertifyRequest
    from kafka_trial.trial.certify import begin_baseline, begin_certificate, lanes_of
    from kafka_trial.trial.certify import certify as try_all
    from kafka_trial.trial.session import Session
    from kafka_trial.trial.suite_budget import budget_seconds

    check_out(Path(options.out))
    at_once = options.side_by_side or os.cpu_count() or 1
    asked = CertifyRequest(
        registry.find_consumer(options.consumer),
        Path(options.out),
        suites=options.suite or (),
        kafka_versions=words_of_list(options.kafka or ()),
        seeds=range(1, options.repeat + 1),
        minutes=options.minutes,
        budget_s=None if options.budget is None else budget_seconds(options.budget),
        side_by_side=at_once,
        retry_unknown=options.retry_unknown,
        image=options.consumer_image,
        load=options.load,
        baseline=registry.find_consumer(options.baseline) if options.baseline else None,
    )
    begun = begin_certificate(asked)
    baseline = begin_baseline(asked, begun)
    with Console() as console, Session(lanes=max(LANES, at_once * lanes_of(asked))) as session:
        console.say(begun.covers)
        console.phase("certify", "a line for each trial that has ended")
        certificate = try_all(session, asked, begun, say=console.say, baseline=baseline)
    if problem := append_summary(certificate_summary(certificate, Path(options.out), page=PAGE)):
        print(problem, file=sys.stderr)
    told = [line for part in certificate.differs for line in (part.title, *(f"  {line}" for line in part.lines))]
    print(
        f"{certificate.verdict.upper()}: {certificate.in_words}",
        certificate.covers,
        *told,
        Path(options.out) / PAGE,
        sep="\n",
    )
    return certificate.status


def words_of_list(given: Sequence[str]) -> list[str]:
    """Returns the words of an option that takes several, which commas may part too, each once."""
    return list(dict.fromkeys(word for one in given for word in one.split(",") if word))


def upgrade(options: Namespace) -> int:
    """`upgrade --from A --to B --consumer FILE…`: go (0) or no-go (1) for these consumers, stage by stage."""
    from kafka_trial.compatibility.paths import PathError
    from kafka_trial.history.output_names import UPGRADE_PAGE
    from kafka_trial.report.markdown import append_summary
    from kafka_trial.upgrade.batches import consumers_per_cluster, rehearse_all
    from kafka_trial.upgrade.make_record import refused_record
    from kafka_trial.upgrade.record_page import write_upgrade
    from kafka_trial.upgrade.record_results import upgrade_summary, upgrade_text
    from kafka_trial.upgrade.request import SHAPES, make_upgrade_request
    from kafka_trial.upgrade.successors import parse_chain

    out = Path(options.out)
    check_out(out, empty=True)
    chains = [parse_chain(given, registry.find_consumer) for given in options.consumer]
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    shape = SHAPES[options.shape]
    move, image, added = (options.from_version, options.to), options.consumer_image, options.add_partitions
    try:
        request = make_upgrade_request(*move, chains, seed=seed, out=out, shape=shape, added=added, image=image)
    except PathError as refused:
        write_upgrade(refused_record(*move, refused.problems, seed=seed, shape=shape, out=out), out)
        raise
    with Console() as console:
        console.say(str(request.way_back))
        for flaw in request.open_flaws:
            console.say(f"{flaw.issue}: {flaw.what}. {flaw.remedy}")
        record = rehearse_all(request, per_cluster=options.side_by_side or consumers_per_cluster(), console=console)
    if problem := append_summary(upgrade_summary(record, out)):
        print(problem, file=sys.stderr)
    print(upgrade_text(record), out / UPGRADE_PAGE, sep="\n")
    return record.exit


def verify(options: Namespace) -> int:
    """`verify FILE|DIR`: whether a certificate or the record of an upgrade holds; 1 where not, whatever it says."""
    from kafka_trial.history.output_names import CERTIFICATE, UPGRADE
    from kafka_trial.trial.verify_certificate import verify as certificate_holds
    from kafka_trial.upgrade.record_file import verify as record_holds

    file = Path(options.certificate)
    if file.is_dir():
        there = [name for name in (UPGRADE, CERTIFICATE) if (file / name).exists()]
        if not there:
            raise InputError(str(file), f"has neither {CERTIFICATE} nor {UPGRADE} in it: name one, or its folder")
        file /= there[0]
    return (record_holds if file.name == UPGRADE else certificate_holds)(file, say=print)


def demo(options: Namespace) -> int:
    """`demo`: a sound and a faulty consumer; 0 when acquitted and convicted as they must be."""
    from kafka_trial.trial.runs import ask_demonstration, demonstrate, demonstration_in_words
    from kafka_trial.trial.session import Session

    asked = ask_demonstration(
        scenario=options.scenario,
        sound=options.sound,
        faulty=options.faulty,
        kafka_version=options.kafka,
        seed=random.SystemRandom().randrange(2**31) if options.seed is None else options.seed,
    )
    with Console() as console, Session(console=console) as session:
        shown = demonstrate(session, asked)
    print(demonstration_in_words(shown))
    return shown.exit_status


def audit(options: Namespace) -> int:
    """`audit`: exports what a group did on a cluster that is not ours, judges it and reports; or several, in turn."""
    from kafka_trial.audit.command_config import read_command_config
    from kafka_trial.audit.export import export
    from kafka_trial.audit.request import make_audit_request
    from kafka_trial.audit.settings import read_claim
    from kafka_trial.audit.several_audits import is_several
    from kafka_trial.report.text import last_lines, text_report

    if is_several(vars(options)):
        return _several_audits(options)
    claim = read_claim(Path(options.claim)) if options.claim else {}
    security, unused = read_command_config(Path(options.command_config)) if options.command_config else (None, ())
    words = vars(options) | {"claim": claim, "request_logs": options.request_log, "security": security}
    words |= {"group": options.group[0], "topic": options.topic[0]}
    asked = make_audit_request(words, now_ns=time.time_ns())
    if options.out:
        check_out(Path(options.out), empty=True)
    with Console() as console:
        _say_unused(options, unused, console)
        folder = export(asked, out=Path(options.out) if options.out else None, console=console).folder
        verdict = _audit_judged(folder, options, console)
        if verdict is None:
            print(folder.path)
            return PASS
    print(text_report(folder), last_lines(folder), sep="\n")
    return verdict.exit


def _several_audits(options: Namespace) -> int:
    """Audits several groups or topics in turn; the worst verdict wins."""
    from kafka_trial.audit.several_audits import audit_all, find_pairs, make_several_audits
    from kafka_trial.history.output_names import AUDITS_PAGE

    asked = make_several_audits(vars(options), now_ns=time.time_ns())
    with Console() as console:
        _say_unused(options, asked.unused, console)
        found = find_pairs(asked, console)
        overview = audit_all(
            asked, found, judge=lambda folder: _audit_judged(folder, options, console), console=console
        )
    print(*overview.without_commits_in_words, f"\n{overview.in_words}", sep="\n")
    print(f"report: {asked.out.absolute() / AUDITS_PAGE}")
    return overview.exit_status


def _say_unused(options: Namespace, unused: Sequence[str], console: Console) -> None:
    if unused:
        console.say(f"--command-config {options.command_config}: not used here: {', '.join(unused)}")


def _audit_judged(folder: RunFolder, options: Namespace, console: Console) -> Verdict | None:
    """Returns the verdict on an export; None with --no-check, where it is Parquet as `check` makes it, for Spark
    elsewhere."""
    from kafka_trial.check import check_run
    from kafka_trial.judge.cache import slice_rows
    from kafka_trial.trial.judge_process import judging_in_words

    if options.no_check:
        console.phase("parquet", f"{slice_rows(folder).path}")
        return None
    console.phase("check", judging_in_words(folder))
    return check_run(folder)


def preflight(options: Namespace) -> int:
    """`preflight`: whether a configuration carries these records at all; 0 it does, 1 it does not.

    With `--to`: what an upgrade of the brokers would mean.
    """
    from kafka_trial.compatibility.outlook import is_upgrade

    if is_upgrade(vars(options)):
        return _outlook(options)
    return _records_fit(options)


def _outlook(options: Namespace) -> int:
    from kafka_trial.compatibility.live import ask_cluster, version_now
    from kafka_trial.compatibility.outlook import as_json, as_text, consumer_plan, make_outlook, upgrade_problems
    from kafka_trial.compatibility.request_logs import read_request_logs
    from kafka_trial.consumers.spec_toml import spec_from_toml
    from kafka_trial.kafka_protocol.connection import Brokers

    if problems := upgrade_problems(vars(options)):
        raise InputError("preflight --to", problems)
    spec = spec_from_toml(registry.find_consumer(options.consumer), must_be_set=False) if options.consumer else None
    logs = read_request_logs([Path(place) for place in options.request_log]) if options.request_log else None
    cluster, now = None, options.from_version
    if options.bootstrap:
        with Brokers(options.bootstrap, answer_within_s=10.0, security=_security(options)) as brokers:
            cluster = ask_cluster(brokers)
        now = version_now(cluster, to=options.to, given=now)
    consumer = None
    if spec is not None:
        consumer = consumer_plan(
            spec.name,
            protocol=spec.kafka.protocol,
            transactional=spec.progress.kind == "transaction",
            command=spec.command,
            env=spec.env,
        )
    outlook = make_outlook(to=options.to, now=now, cluster=cluster, logs=logs, consumer=consumer)
    print(orjson.dumps(as_json(outlook), option=orjson.OPT_INDENT_2).decode() if options.json else as_text(outlook))
    return outlook.exit_status


def _records_fit(options: Namespace) -> int:
    from kafka_trial.preflight.answer import answer, as_json, as_text, exit_status
    from kafka_trial.preflight.plan import make_plans, read_plan_toml, unused_settings, words_of

    plan = read_plan_toml(Path(options.config)) if options.config else {}
    given = {"producer": options.producer_config, "consumer": options.consumer_config}
    configs = {role: _client_config(f"--{role}-config", Path(file)) for role, file in given.items() if file}
    words = words_of(vars(options), plan=plan, client_configs=configs)
    for role, names in unused_settings(words, configs).items():
        if names:
            print(f"--{role}-config: limits no size, not used here: {', '.join(names)}", file=sys.stderr)
    answers = [answer(one) for one in make_plans(_over_cluster(options, words))]
    if options.json:
        print(orjson.dumps(as_json(answers), option=orjson.OPT_INDENT_2).decode())
    else:
        print(as_text(answers))
    return exit_status(answers)


def _client_config(option: str, file: Path) -> dict[str, str]:
    from kafka_trial.audit.command_config import parse_properties

    try:
        return parse_properties(file.read_text(encoding="latin-1"))  # as Java reads it
    except OSError as error:
        raise InputError(f"{option} {file}", f"cannot be read: {error.strerror}. Check the path") from error
    except ValueError as error:
        raise InputError(f"{option} {file}", f"is no properties file: {error}") from error


def _security(options: Namespace) -> Security:
    """Returns how to get into the cluster: as `--command-config` says, or without anything."""
    from kafka_trial.audit.command_config import read_command_config
    from kafka_trial.kafka_protocol.security import UNSECURED

    return read_command_config(Path(options.command_config))[0] if options.command_config else UNSECURED


def _over_cluster(options: Namespace, words: dict[str, Any]) -> dict[str, Any]:
    """Returns the words over what the cluster of `--bootstrap` tells, where one is named."""
    from kafka_trial.kafka_protocol.connection import Brokers
    from kafka_trial.preflight.live import words_of_cluster
    from kafka_trial.preflight.plan import bootstrap_problems, over_cluster

    if problems := bootstrap_problems(vars(options)):
        raise InputError("preflight", problems)
    if not options.bootstrap:
        return words
    with Brokers(options.bootstrap, answer_within_s=10.0, security=_security(options)) as brokers:
        found, untold = words_of_cluster(brokers, options.topic, options.group)
    for one in untold:
        print(f"not told by the cluster: {one}", file=sys.stderr)
    return over_cluster(words, found)


def status_without_check(folder: RunFolder, console: Console) -> int:
    """Returns the status of a trial that is not judged now: 4 when its history can only be judged unknown."""
    if (because := folder.end_told()) == "":
        return PASS
    console.say(f"cut short, can only be judged unknown: {because or 'its end is not told'}")
    return UNKNOWN


def _list_scenarios() -> Rows:
    return [{"name": name, "summary": scenario.summary} for name, scenario in registry.scenarios().items()]


def _list_suites() -> Rows:
    return [
        {"name": name, "summary": registry.suite_summary(file), "module": file.name}
        for name, file in registry.suites().items()
    ]


def _list_consumers() -> Rows:
    rows = []
    for name, file in registry.consumers().items():
        claim = read_consumer_toml(file).get("claim", {})  # one that is not built yet is listed too
        kinds = {"faulty": "faulty", "twins": "twin"}
        kind = kinds.get(file.parent.parent.name, "reference")
        rows.append(
            {
                "name": name,
                "summary": registry.consumer_summary(file),
                "kind": kind,
                "claims": f"{claim.get('delivery', '?')}, order per {claim.get('order', Claim.order)}",
            }
        )
    return rows


def _list_faults() -> Rows:
    from kafka_trial.nemesis.fault import list_faults

    return [
        {"name": name, "summary": spec.summary, "targets": ", ".join(spec.targets), "breaks": spec.scope}
        for name, spec in list_faults().items()
    ]


def _list_invariants() -> Rows:
    from kafka_trial.anomalies.invariant import list_invariants
    from kafka_trial.verdict.decide import breaks

    return [
        {
            "name": invariant.name,
            "summary": invariant.summary,
            "family": invariant.family,
            "level": invariant.level,
            "breaks": ", ".join(breaks(invariant.rule)) or "none, counted",
        }
        for invariant in list_invariants()
    ]


LISTS: dict[str, Callable[[], Rows]] = {
    "scenarios": _list_scenarios,
    "suites": _list_suites,
    "faults": _list_faults,
    "invariants": _list_invariants,
    "consumers": _list_consumers,
}


def markdown(rows: Rows) -> list[str]:
    """Returns rows as the lines of a Markdown table."""
    if not rows:
        return []
    heads = list(rows[0])
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    return lines + [f"| {' | '.join(row[head].replace('|', '/') for head in heads)} |" for row in rows]
