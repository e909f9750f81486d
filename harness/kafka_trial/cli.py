"""The command `kafka-trial`: the hands. Each verb reads its words, calls one function, and ends in a status.

Exit status: 0 pass, 1 fail, 2 wrong input, 3 no history could be begun, or an error that nothing here expected,
4 unknown, 130 Ctrl-C or SIGTERM after cleanup. Only a verdict ends in 1.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from kafka_trial import __version__, plugins, verbs
from kafka_trial.errors import INTERRUPTED, did_you_mean, end_in_status, unknown_name
from kafka_trial.option_checks import check_options, given_words
from kafka_trial.preflight.plan import DURATION_WORDS, SIZE_WORDS
from kafka_trial.preflight.size_settings import CODECS, LIBRARIES
from kafka_trial.process.signals import sigterm_as_ctrl_c
from kafka_trial.starters.starter import LANGUAGES, SINKS

if TYPE_CHECKING:
    _Subparsers = argparse._SubParsersAction[Any]

EXAMPLES = {
    "init": "kafka-trial init orders --language go --sink http",
    "run": "kafka-trial run member-killed --consumer consumer.toml --seed 7",
    "check": "kafka-trial check trial-runs/20260101T120000Z-control-orders-1a2b",
    "report": "kafka-trial report trial-runs/20260101T120000Z-control-orders-1a2b",
    "show": "kafka-trial show trial-runs/20260101T120000Z-control-orders-1a2b partition 0 record 344",
    "explain": "kafka-trial explain commit-ahead",
    "list": "kafka-trial list scenarios --json",
    "doctor": "kafka-trial doctor --fetch 4.3.1",
    "cluster": "kafka-trial cluster up --detach --kafka 4.3.1",
    "demo": "kafka-trial demo --seed 7",
    "cuts": "kafka-trial cuts --consumer consumer.toml --api OffsetCommit --out cuts",
    "certify": "kafka-trial certify --consumer consumer.toml --out certificate",
    "upgrade": "kafka-trial upgrade --from 3.9.2 --to 4.3.1 --consumer orders/consumer.toml billing/consumer.toml",
    "verify": "kafka-trial verify certificate/certificate.json",
    "preflight": "kafka-trial preflight --record-max 300MB --partitions 360 --consumers 1\n"
    "         kafka-trial preflight --to 4.4.0 --bootstrap broker1:9092 --request-log broker-logs",
    "audit": "kafka-trial audit --bootstrap broker1:9092 --topic orders --group billing --from 12h --until now\n"
    "         kafka-trial audit --bootstrap broker1:9092 --group billing shipping --from 12h\n"
    "         kafka-trial audit … --sink-topic bills dead-orders --sink-id-field $.order.id\n"
    "         kafka-trial audit … --sink-db postgresql://reader@db/billing --sink-query 'select id, at from bills'",
}

PREFLIGHT_OPTIONS = {
    "--record-max": "the largest record: key, value and headers together, uncompressed",
    "--key-max": "how much of it is the key",
    "--batch-max": "the largest batch on the wire, if larger than one record",
    "--claim-check": "the size of the reference, if Kafka holds only a reference to the payload",
    "--compression-ratio": "how many times smaller a batch is on the wire",
    "--partitions": "partitions of the topic",
    "--consumers": "consumers that share them",
    "--partitions-per-consumer": "instead of the two options above",
    "--consumers-per-process": "consumers in one JVM or container (default 1)",
    "--buffered-per-partition": "records that the application buffers of each partition",
    "--brokers": "brokers that lead a consumer's partitions (default 1: the largest response)",
    "--memory-max": "memory of one process",
    "--backlog": "records of one partition to work off by blocking fetches",
    "--blocking-timeout": "how long a fetch blocks on an empty partition",
    "--empty-partitions": "empty partitions that a consumer visits in turn (default: all but one)",
    "--service-time": "how long the work on one record takes",
    "--records-per-fetch": "records that a fetch returns of one partition (default: by the fetch settings)",
    "--arrivals-per-s": "records that arrive in a second meanwhile",
}


DEBUG = "on an error, also show where in the program it happened"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb and returns the exit status, whether or not somebody still reads what it prints."""
    if arguments is None:
        sys.stdout, sys.stderr = unbroken(sys.stdout), unbroken(sys.stderr)
    options = _parser().parse_args(arguments)
    try:
        with sigterm_as_ctrl_c():
            check_options(options)
            plugins.load(options.plugin or ())
            return _call(options.verb_function, options)
    except KeyboardInterrupt:
        print("kafka-trial: interrupted; everything was healed and cleaned up", file=sys.stderr)
        return INTERRUPTED
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a traceback ends in 1, as the verdict *fail* does
        named = given_words(options)
        return end_in_status(f"kafka-trial {options.verb}", error, debug=options.debug, named=named)


def _call(function: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Calls a verb, and has what it printed arrive: a full disk is told while there is somebody to tell it to."""
    status = function(options)
    print(end="", flush=True)
    return status


class Parser(argparse.ArgumentParser):
    """A parser that names the nearest word where one is unknown: a verb, a choice, an option."""

    def _check_value(self, action: argparse.Action, value: str) -> None:
        if action.choices is not None and value not in action.choices:
            what = action.dest if action.dest in ("verb", "action") else "name"
            raise argparse.ArgumentError(None, unknown_name(what, value, action.choices))

    def error(self, message: str) -> NoReturn:
        """Ends in status 2, with the nearest option for one that is unknown."""
        given = [word.partition("=")[0] for word in message.split() if word.startswith("--")]
        if message.startswith("unrecognized arguments") and given:
            message += f".{did_you_mean(given[0], self._option_string_actions)} `{self.prog} --help` names all"
        super().error(message)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As its parent; but a verb's own parser tells of its unknown options, for it knows the others."""
        options, rest = self.parse_known_args(args, namespace)
        if rest:
            verbs_of = next(action for action in self._actions if isinstance(action, argparse._SubParsersAction))
            verbs_of.choices[options.verb].error(f"unrecognized arguments: {' '.join(rest)}")
        return options


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="kafka-trial",
        description="Puts a Kafka consumer on trial: boots a cluster, breaks it on purpose, judges with evidence.",
        epilog="Exit status: 0 pass, 1 fail, 2 wrong input, 3 could not start, or unexpected error, 4 unknown, "
        "130 interrupted.",
    )
    parser.add_argument("--debug", action="store_true", help=DEBUG)
    parser.add_argument("--version", action="version", version=f"kafka-trial {__version__}")
    verb_parsers = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for add in (
        _init,
        _run,
        _check,
        _report,
        _show,
        _explain,
        _list,
        _doctor,
        _cluster,
        _demo,
        _cuts,
        _certify,
        _upgrade,
        _verify,
        _audit,
        _preflight,
    ):
        add(verb_parsers)
    return parser


def _verb(
    parsers: _Subparsers, name: str, function: Callable[[argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = parsers.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=f"Example: {EXAMPLES[name]}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--plugin", action="append", metavar="FILE", help="also load this plug-in (repeatable)")
    parser.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=DEBUG)
    parser.set_defaults(verb_function=function)
    return parser


def _init(parsers: _Subparsers) -> None:
    parser = _verb(parsers, "init", verbs.init, "write a consumer.toml, and a minimal sound consumer beside it")
    parser.add_argument(
        "folder", nargs="?", default=".", metavar="FOLDER", help="where to write them (default: this folder)"
    )
    parser.add_argument(
        "--language",
        default="python",
        choices=LANGUAGES,
        help="the consumer's language, or `image`: Python in a container",
    )
    parser.add_argument(
        "--sink",
        default="none",
        choices=SINKS,
        help="where the consumer's effects go (default: none; it prints what it does)",
    )
    parser.add_argument("--name", help="the consumer's name (default: the folder's)")


def _run(parsers: _Subparsers) -> None:
    parser = _verb(parsers, "run", verbs.run, "run one trial, judge it and print the report")
    parser.add_argument("scenario", metavar="SCENARIO", help="a name of `list scenarios`, or a TOML file")
    _consumer_options(parser)
    _trial_options(parser)
    _load_option(parser)
    times = parser.add_mutually_exclusive_group()
    times.add_argument(
        "--seeds", metavar="A..B", help="one trial after the other, with each of these seeds: 1..5, or 3,7,11"
    )
    times.add_argument(
        "--repeat", type=int, metavar="N", help="N trials, one after the other; with --seed, all with that seed"
    )
    parser.add_argument(
        "--retry-unknown",
        type=int,
        default=0,
        metavar="N",
        help="repeat a trial up to N times if its environment made it unknown (the machine, a fault without effect)",
    )
    parser.add_argument(
        "--cluster",
        metavar="NAME",
        help="use this cluster of `cluster up`; only for scenarios that leave brokers alone",
    )
    parser.add_argument("--schedule", metavar="FILE", help="replay this schedule.json instead of drawing one")
    parser.add_argument("--payload", metavar="DIR", help="replay the records of a run: its folder `payload`")
    parser.add_argument(
        "--exact", action="store_true", help="with --schedule: hit the recorded targets, not their roles"
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="the run folder (new or empty); default: a new one in ./trial-runs; several trials: DIR/1, DIR/2, …",
    )
    parser.add_argument("--no-check", action="store_true", help="record only; judge later with `check`")


def _check(parsers: _Subparsers) -> None:
    parser = _verb(parsers, "check", verbs.check, "judge stored runs again, without a cluster or a network")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run folder")
    parser.add_argument(
        "--spark-master", metavar="URL", help="spark://HOST:PORT, yarn, k8s://URL; default: this machine"
    )
    parser.add_argument(
        "--partitions", type=int, metavar="N", help="how many Spark tasks; the verdict does not depend on it"
    )


def _report(parsers: _Subparsers) -> None:
    parser = _verb(parsers, "report", verbs.report, "write report.txt, report.json and report.html of judged runs")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run folder that `check` has judged")


def _show(parsers: _Subparsers) -> None:
    parser = _verb(parsers, "show", verbs.show, "print one event or record of a run's history, with its neighbours")
    parser.add_argument("run", metavar="RUN", help="a run folder")
    parser.add_argument(
        "selectors",
        nargs="+",
        metavar="SELECTOR",
        help="an event as reports name it (offsets#131), or a record: partition 0 record 344",
    )
    parser.add_argument(
        "--around", type=int, default=5, metavar="N", help="how many neighbours before and after it (default 5)"
    )


def _explain(parsers: _Subparsers) -> None:
    parser = _verb(parsers, "explain", verbs.explain, "say what an anomaly is, its usual cause, and what to change")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("anomaly", nargs="?", metavar="ANOMALY", help="a name (see `list invariants`)")
    which.add_argument("--all", action="store_true", help="all anomalies, as in docs/anomalies.md")


def _list(parsers: _Subparsers) -> None:
    parser = _verb(parsers, "list", verbs.list_things, "list consumers, faults, invariants, scenarios or suites")
    parser.add_argument("what", choices=sorted(verbs.LISTS), help="what to list")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--markdown", action="store_true", help="as a Markdown table")


def _doctor(parsers: _Subparsers) -> None:
    parser = _verb(
        parsers,
        "doctor",
        verbs.doctor,
        "check what is installed: where each part is, its version, what to do if it is missing",
    )
    parser.add_argument("--fetch", metavar="VERSION", action="append", help="also provision this Kafka version now")
    parser.add_argument("--json", action="store_true", help="as JSON")


def _cluster(parsers: _Subparsers) -> None:
    parser = _verb(parsers, "cluster", verbs.cluster, "keep a cluster running for several trials")
    actions = parser.add_subparsers(dest="action", required=True, metavar="up|down|status|list")
    up = actions.add_parser("up", help="boot a cluster; without --detach it stays in the foreground until Ctrl-C")
    up.add_argument("--detach", action="store_true", help="leave it running in the background")
    up.add_argument("--kafka", metavar="VERSION", help="Kafka version")
    up.add_argument("--brokers", type=int, default=3, help="how many brokers (default 3)")
    up.add_argument("--name", help="its name (default: drawn at random)")
    for action, text in (("down", "stop a detached cluster"), ("status", "show the state of a detached cluster")):
        actions.add_parser(action, help=text).add_argument("name", nargs="?", help="default: the only one there is")
    actions.add_parser("list", help="list detached clusters")


def _demo(parsers: _Subparsers) -> None:
    parser = _verb(
        parsers, "demo", verbs.demo, "try a sound and a faulty consumer on one scenario, and print both verdicts"
    )
    parser.add_argument("--sound", default="python-poll-and-work", metavar="FILE", help="the consumer that must pass")
    parser.add_argument("--faulty", default="commits-backwards", metavar="FILE", help="the consumer that must fail")
    parser.add_argument("--scenario", default="member-paused", help="the scenario both go through")
    _trial_options(parser)


def _consumer_options(parser: argparse.ArgumentParser) -> None:
    """What a verb takes that tries one consumer."""
    parser.add_argument(
        "--consumer",
        required=True,
        metavar="FILE",
        help="consumer.toml, a folder with one in it, or a name of `list consumers`",
    )
    _image_option(parser)


def _image_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--consumer-image", metavar="IMAGE", help="try this container image instead of the one that FILE names"
    )


def _many_trials_options(parser: argparse.ArgumentParser, *, retry_unknown: int) -> None:
    """What a verb takes that tries one consumer in many ways, side by side."""
    _consumer_options(parser)
    parser.add_argument("--minutes", type=float, metavar="N", help="begin no more trials after this long")
    parser.add_argument("--side-by-side", type=int, metavar="N", help="trials at once (default: as many as cores)")
    parser.add_argument(
        "--retry-unknown",
        type=int,
        default=retry_unknown,
        metavar="N",
        help="repeat a trial up to N times if only its environment made it unknown (default: %(default)s)",
    )


def _cuts(parsers: _Subparsers) -> None:
    parser = _verb(
        parsers,
        "cuts",
        verbs.cuts,
        "hit a member at each kind of request that it sends, before and after the answer: a matrix of trials",
    )
    parser.add_argument(
        "--api", nargs="+", action="extend", metavar="NAME", help="only these: OffsetCommit, JoinGroup, Fetch, …"
    )
    parser.add_argument(
        "--where", nargs="+", action="extend", metavar="NAME", help="only these: before, answered, after"
    )
    parser.add_argument(
        "--action", nargs="+", action="extend", metavar="NAME", help="only these: hold, close, delay, kill, pause"
    )
    parser.add_argument("--kafka", metavar="VERSION", help="Kafka version (default: the newest known)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of every trial (default 1)")
    _many_trials_options(parser, retry_unknown=0)
    parser.add_argument(
        "--out",
        default="cuts",
        metavar="DIR",
        help="folder of the results (default: cuts); the same command continues there",
    )


def _certify(parsers: _Subparsers) -> None:
    parser = _verb(
        parsers, "certify", verbs.certify, "try a consumer on all suites, and write a certificate with the evidence"
    )
    parser.add_argument(
        "--suite", nargs="+", action="extend", metavar="NAME", help="only these (default: all of `list suites`)"
    )
    parser.add_argument(
        "--kafka",
        nargs="+",
        action="extend",
        metavar="VERSION",
        help="these versions, and what differs between them (default: the newest known)",
    )
    parser.add_argument(
        "--baseline",
        metavar="FILE",
        help="consumer.toml of the client that is replaced, tried too: fail (1) only where the new one is worse",
    )
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="try each suite N times, with seeds 1 to N (default 1)"
    )
    _load_option(parser)
    parser.add_argument(
        "--budget",
        metavar="TIME",
        help="only the suites that find most in this time, by the calibration: 90s, 10m, 2h, or minutes",
    )
    _many_trials_options(parser, retry_unknown=1)
    parser.add_argument(
        "--out",
        default="certificate",
        metavar="DIR",
        help="folder of certificate, page and runs; the same command continues there",
    )


def _upgrade(parsers: _Subparsers) -> None:
    parser = _verb(
        parsers,
        "upgrade",
        verbs.upgrade,
        "rehearse an upgrade on a cluster of its own, with these consumers at work: go or no-go, stage by stage",
    )
    parser.add_argument(
        "--from", dest="from_version", required=True, metavar="VERSION", help="the Kafka version that brokers have"
    )
    parser.add_argument("--to", required=True, metavar="VERSION", help="the Kafka version that they are to have")
    parser.add_argument(
        "--consumer",
        required=True,
        nargs="+",
        action="extend",
        metavar="FILE",
        help="consumer.toml of each consumer at work on the cluster; A.toml=B.toml moves its members to B, and back",
    )
    _image_option(parser)
    parser.add_argument(
        "--shape",
        choices=["in-place", "replace"],
        default="in-place",
        help="brokers restart on their data, or new brokers take their place (default: in-place)",
    )
    parser.add_argument(
        "--side-by-side",
        type=int,
        metavar="N",
        help="consumers that share a cluster; more go in batches (default: twice as many as processors)",
    )
    parser.add_argument(
        "--add-partitions",
        type=int,
        default=0,
        metavar="N",
        help="when all else is new, give each topic N partitions more (default: none)",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="repeat an earlier rehearsal's choices (default: drawn)")
    parser.add_argument(
        "--out", default="upgrade", metavar="DIR", help="an empty folder for the record and the runs (default: upgrade)"
    )


def _verify(parsers: _Subparsers) -> None:
    parser = _verb(
        parsers,
        "verify",
        verbs.verify,
        "check a certificate: no file has changed, and the run folders give the same verdicts",
    )
    parser.add_argument("certificate", metavar="FILE", help="certificate.json, upgrade.json, or the folder of one")


def _audit(parsers: _Subparsers) -> None:
    parser = _verb(
        parsers,
        "audit",
        verbs.audit,
        "judge what a group did on a cluster that is not ours; reads only, breaks nothing",
    )
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT,…", help="brokers of the cluster")
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="a Kafka client's properties file, as Kafka's own tools take it: TLS, SASL (default: a plain listener)",
    )
    parser.add_argument(
        "--topic",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="the topic, or several (default: all on which a group has committed offsets)",
    )
    parser.add_argument(
        "--group",
        nargs="+",
        action="extend",
        required=True,
        metavar="NAME",
        help="the consumer group, or several: each is audited on each topic, and audits.html shows all verdicts",
    )
    parser.add_argument(
        "--from", required=True, metavar="TIME", help="2026-01-31T02:00:00Z, or how long ago: 90s, 30min, 12h, 2d"
    )
    parser.add_argument("--until", default="now", metavar="TIME", help="as --from (default: now)")
    parser.add_argument(
        "--request-log",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="saved logs of the brokers' kafka.request.logger",
    )
    parser.add_argument("--id-header", metavar="NAME", help="the header that holds a record's id (default kt-id)")
    parser.add_argument(
        "--id-field", metavar="PATH", help="or the place of the id in the JSON value, as in $.a[0].b (default id)"
    )
    parser.add_argument(
        "--sink-topic",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="topics that show by id which records were handled: what the group writes, and its dead letters",
    )
    parser.add_argument(
        "--sink-id-header", metavar="NAME", help="the header that holds the id there (default: --id-header)"
    )
    parser.add_argument(
        "--sink-id-field", metavar="PATH", help="or the place of the id in the value there (default: --id-field)"
    )
    parser.add_argument(
        "--sink-db", metavar="URL", help="or a database that shows it: postgresql://USER@HOST/NAME, sqlite:///FILE"
    )
    parser.add_argument(
        "--sink-query",
        metavar="SQL",
        help="the statement for it, in a read-only transaction: record id, time of writing; :from and :until are "
        "filled in, as in 'select order_id, written_at from done where written_at between :from and :until'",
    )
    parser.add_argument(
        "--claim", metavar="FILE", help="a TOML file with [claim]: all of it must then be judged for a pass"
    )
    parser.add_argument("--max-mib", type=float, metavar="N", help="read at most this much of each log (default 1024)")
    parser.add_argument("--max-records", type=int, metavar="N", help="and at most this many records (default 5000000)")
    parser.add_argument(
        "--max-minutes", type=float, metavar="N", help="begin no more reads after this long (default 10)"
    )
    parser.add_argument("--readers", type=int, metavar="N", help="partitions read side by side (default 4)")
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="the run folder (new or empty); default: a new one in ./trial-runs; of several audits: one below for each",
    )
    parser.add_argument("--no-check", action="store_true", help="export only; judge later with `check`")


def _preflight(parsers: _Subparsers) -> None:
    parser = _verb(
        parsers,
        "preflight",
        verbs.preflight,
        "compute whether a configuration can carry records of a given size, and what to change; starts nothing",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--config", metavar="FILE", help="a TOML file: these options by their names, with underscores")
    plan = parser.add_argument_group("the plan", "sizes like 300MB (10^6) or 50MiB (2^20), times like 500ms or 10s")
    for option, text in PREFLIGHT_OPTIONS.items():
        word = option.removeprefix("--").replace("-", "_")
        metavar = "SIZE" if word in SIZE_WORDS else "TIME" if word in DURATION_WORDS else "N"
        plan.add_argument(option, metavar=metavar, help=text)
    plan.add_argument("--compression", metavar="CODEC", help=f"one of: {', '.join(CODECS)} (default: the producer's)")
    settings = parser.add_argument_group("settings, by Kafka's own names; any other has its default")
    for role in ("producer", "consumer"):
        settings.add_argument(
            f"--{role}-library", metavar="NAME", help=f"one of: {', '.join(LIBRARIES)} (default java)"
        )
        settings.add_argument(f"--{role}-config", metavar="FILE", help=f"the {role}'s properties file")
    for role in ("producer", "broker", "topic", "consumer"):
        settings.add_argument(
            f"--{role}-setting", nargs="+", action="extend", metavar="NAME=VALUE", help=f"settings of the {role}"
        )
    cluster = parser.add_argument_group("a cluster, which is only read")
    cluster.add_argument("--bootstrap", metavar="HOST:PORT,…", help="take partitions and settings from this cluster")
    cluster.add_argument("--topic", metavar="NAME", help="the topic there")
    cluster.add_argument("--group", metavar="NAME", help="count the members of this group as consumers")
    cluster.add_argument(
        "--command-config", metavar="FILE", help="a client's properties file, as for `audit`: TLS, SASL"
    )
    upgrade = parser.add_argument_group("before an upgrade: what it means for clients, features and settings")
    upgrade.add_argument("--to", metavar="VERSION", help="the Kafka version that brokers are to have")
    upgrade.add_argument(
        "--from", dest="from_version", metavar="VERSION", help="what they have (default: as they answer)"
    )
    upgrade.add_argument(
        "--request-log",
        nargs="+",
        action="extend",
        metavar="FOLDER",
        help="their request logs, for what clients send; or one file",
    )
    upgrade.add_argument("--consumer", metavar="FILE", help="a consumer.toml, for what it says of itself")


def _load_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--load",
        type=float,
        metavar="FACTOR",
        help="send this fraction of the scenario's load, above 0 and at most 1 (default: [load] factor, or all of it)",
    )


def _trial_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kafka", metavar="VERSION", help="Kafka version (default: the newest known)")
    parser.add_argument("--seed", type=int, help="the seed of all that is random (default: drawn, and printed)")


class _Unbroken(io.FileIO):
    """A file descriptor that takes everything, also when nobody reads it any more; a full disk is told once."""

    full = False

    def write(self, data: object, /) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BrokenPipeError:
            return memoryview(data).nbytes  # type: ignore[arg-type]
        except OSError:
            if self.full:  # Python tries again when it ends, and would end in a status of its own
                return memoryview(data).nbytes  # type: ignore[arg-type]
            self.full = True
            raise


def unbroken(stream: TextIO) -> TextIO:
    """Returns a stream to the same place as one of the interpreter's own; the same where it has no place of its own."""
    try:
        stream.flush()
        raw = _Unbroken(stream.fileno(), "w", closefd=False)
    except (OSError, ValueError, AttributeError):
        return stream
    by_line = bool(stream.line_buffering)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=stream.encoding, errors="backslashreplace", line_buffering=by_line
    )


if __name__ == "__main__":
    sys.exit(main())
