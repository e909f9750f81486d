"""Differences between versions that are known, and must be found without being told: which consumer meets each, in
which stage, and who is accused. Where one cannot be met on this harness, it is named here too, with the reason.

Those with the same path are played side by side on one cluster. Beside them is a consumer that none of them concerns,
and all of its stages must be a go: an accusation of everybody would find everything.

Sources: KIP-896 and Kafka 4.0, "Upgrading" (request versions that brokers no longer serve), KIP-429 (a member that
shares no assignor is refused), KIP-899 and KIP-1102 (clients know their first addresses alone until they are
connected), and the issues that are named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka_trial import registry
from kafka_trial.upgrade.cluster_state import SETTING
from kafka_trial.upgrade.outcome import CONSUMER, GO, NO_GO, NOT_KNOWN
from lab.upgrades.plays import LAST_WORDS_MAX, NO_RECORD, Play

FOLDER: Final = "fixtures/upgrades"
OF_THE_FIXTURES: Final = (".toml", ".diff", ".go", ".mod", ".sum")  # what is built of them is not
TIMES: Final = 5  # a known difference is found five times of five
STANDS_STILL: Final = ("stuck-partition", "unseen", "never-rejoined", "late-convergence")
CONTROL: Final = "python-at-least-once"
STATIC: Final = "python-static-members"
TRANSACTIONAL: Final = "python-transactional"
BATCHES: Final = "python-batch-auto-commit"
CONTROLS: Final = {  # subject → as the option has it
    CONTROL: CONTROL,
    STATIC: f"{STATIC}={STATIC}/consumer-protocol",
    TRANSACTIONAL: TRANSACTIONAL,
    BATCHES: BATCHES,
}


@dataclass(frozen=True)
class KnownPath:
    """A path that is played for known differences, up to the stage `until`: all of them are found by then. `control`:
    the subject of a consumer that must be a go in all of these stages, for none of them concerns it. Both are empty
    where the path is refused. `added`: how many partitions each topic gets."""

    before: str
    after: str
    until: str
    shape: str = "in-place"
    control: str = CONTROL
    added: int = 0


TO_4: Final = KnownPath("3.9.2", "4.0.2", "mixed-1")
REPLACED: Final = KnownPath("3.9.2", "4.0.2", "replaced", "replace")
TRANSACTIONS: Final = KnownPath("3.9.2", "4.0.2", "mixed-1", control=TRANSACTIONAL)
CLIENTS: Final = KnownPath("3.9.2", "4.0.2", "clients-mixed", control=STATIC)
FENCED: Final = KnownPath("4.2.2", "4.3.1", "finalised", control=TRANSACTIONAL)
PARTITIONS_ADDED: Final = KnownPath("4.2.2", "4.3.1", "partitions-added", control=BATCHES, added=4)
REFUSED: Final = KnownPath("3.9.2", "4.0.1", "", control="")


@dataclass(frozen=True)
class Difference:
    """A known difference: the consumer that meets it (`--consumer`) and its name in the record; the first stage that is
    no-go, whose fault it is, and `words`: its reason begins with one of these. `cause`: what the reason must say
    besides. `mended`: a stage that must be a go again, because the new version takes the difference away.

    Without a `stage` the path itself is refused, with these words.
    """

    name: str
    source: str
    path: KnownPath
    consumer: str
    subject: str
    words: tuple[str, ...]
    stage: str = ""
    accused: str = CONSUMER
    cause: str = ""
    mended: str = ""


TOO_OLD: Final = "too old for these brokers"
NO_LONGER_SERVED: Final = "requests that brokers no longer serve"
KNOWN: Final = (
    Difference(
        name=f"{NO_LONGER_SERVED}, kafka-python",
        source="KIP-896",
        path=TO_4,
        consumer=f"{FOLDER}/pins-api-version",
        subject="pins-api-version",
        words=STANDS_STILL,
        stage="mixed-1",
        cause=TOO_OLD,
    ),
    Difference(
        name=f"{NO_LONGER_SERVED}, a silent consumer",
        source="KIP-896",
        path=TO_4,
        consumer=f"{FOLDER}/pins-api-version/quiet.toml",
        subject="pins-api-version-quiet",
        words=STANDS_STILL,
        stage="mixed-1",
        cause=TOO_OLD,
    ),
    Difference(
        name=f"{NO_LONGER_SERVED}, sarama",
        source="KIP-896",
        path=TO_4,
        consumer=f"{FOLDER}/sarama-old-version",
        subject="sarama-old-version",
        words=STANDS_STILL,
        stage="mixed-1",
        cause=TOO_OLD,
    ),
    Difference(
        name="a reader that is no member of a group stops at the roll",
        source="Kafka, Upgrading: brokers one at a time",
        path=TO_4,
        consumer=f"{FOLDER}/stops-at-the-roll",
        subject="stops-at-the-roll",
        words=STANDS_STILL,
        stage="mixed-1",
    ),
    Difference(
        name="every first address of a client is gone",
        source="KIP-899, KIP-1102",
        path=REPLACED,
        consumer=f"{FOLDER}/begins-anew",
        subject="begins-anew",
        words=("every address that",),
        stage="replaced",
        accused=SETTING,
    ),
    Difference(
        name="assignors of which members share none",
        source="KIP-429",
        path=CLIENTS,
        consumer=f"{CONTROL}={CONTROL}/cooperative",
        subject=CONTROL,
        words=("crash-loop", *STANDS_STILL),
        stage="clients-mixed",
    ),
    Difference(
        name="transactions of version 2 before they are finalised",
        source="KIP-890, franz-go 1.19.2",
        path=TRANSACTIONS,
        consumer=f"{FOLDER}/assumes-transaction-version-2",
        subject="assumes-transaction-version-2",
        words=STANDS_STILL,
        stage="mixed-1",
    ),
    Difference(
        name="commits of a member epoch that has passed are fenced before 4.3",
        source="KIP-1251",
        path=FENCED,
        consumer=f"{FOLDER}/gives-up-when-fenced",
        subject="gives-up-when-fenced",
        words=("skipped", "commit-ahead"),
        stage="before",
        mended="finalised",
    ),
    Difference(
        name="`auto.offset.reset = latest` meets new partitions",
        source="Kafka, Consumer Configs",
        path=PARTITIONS_ADDED,
        consumer="passes-over-new-partitions",
        subject="passes-over-new-partitions",
        words=("unseen", "skipped", "commit-ahead"),
        stage="partitions-added",
    ),
    Difference(
        name="a static member replaced across protocols",
        source="KAFKA-19546",
        path=REFUSED,
        consumer=CONTROLS[STATIC],
        subject=STATIC,
        words=("KAFKA-19546",),
    ),
)
CANNOT: Final = {
    "kafka-python 1.4": "what it sends depends on `api_version` too, which the kafka-python of the lock has as well: "
    "pins-api-version",
}


@dataclass(frozen=True)
class KnownRow:
    """What a play of known differences left: by difference "" where it was found, else what was said instead;
    `control`: what was said of the consumer that none concerns, "" if all was a go.

    `digest` is of the code that plays upgrades, makes and judges histories, and of the fixtures; `commit` the state of
    the checkout.
    """

    play: Play
    found: Mapping[str, str]
    control: str
    seconds: float
    digest: str
    commit: str


def known_plays(times: int = TIMES) -> Iterator[tuple[KnownPath, Play]]:
    """Yields each play with its path: seed by seed, all paths of a seed."""
    for seed in range(1, times + 1):
        for path in dict.fromkeys(one.path for one in KNOWN):
            yield path, Play(path.before, path.after, path.shape, consumers_of(path), seed, path.added)


def consumers_of(path: KnownPath) -> tuple[str, ...]:
    """Returns the consumers that go along a path, as the option has them: the one that none concerns is the first."""
    control = (CONTROLS[path.control],) if path.control else ()
    return (*control, *(one.consumer for one in KNOWN if one.path == path))


def said_instead(one: Difference, record: Mapping[str, Any]) -> str:
    """Returns "" if a record has found a difference, otherwise what it says in its place."""
    if not one.stage:
        refusals = record["path"]["refusals"]
        found = any(word in said for said in refusals for word in one.words)
        return "" if found else f"refused by {refusals or 'nothing'}"
    if nothing := _no_outcome(one.subject, record):
        return nothing
    said = next(_not_go(one.subject, record), None)
    if said is None:
        return GO
    right = (said["stage"], said["outcome"], said["accused"]) == (one.stage, NO_GO, one.accused)
    if not (right and said["reason"].startswith(one.words) and one.cause in said["reason"]):
        return _in_words(said)
    at_last = [told for told in record["outcomes"] if (told["subject"], told["stage"]) == (one.subject, one.mended)]
    if not one.mended or [told["outcome"] for told in at_last] == [GO]:
        return ""
    return next(map(_in_words, at_last), f"{one.mended}: no outcome")


def said_of_control(path: KnownPath, record: Mapping[str, Any]) -> str:
    """Returns what a record says, up to the path's last stage, of the consumer that no difference of it concerns; "" if
    all is a go."""
    if not path.control:
        return ""
    if nothing := _no_outcome(path.control, record):
        return nothing
    own = [one for one in record["outcomes"] if one["subject"] == path.control]
    if path.until not in (stages := [one["stage"] for one in own]):
        return f"{path.until}: {NOT_KNOWN}; not played"
    said = next((one for one in own[: stages.index(path.until) + 1] if one["outcome"] != GO), None)
    return "" if said is None else _in_words(said)


def known_row(
    path: KnownPath, play: Play, record: Mapping[str, Any], *, seconds: float, digest: str, commit: str
) -> KnownRow:
    """Returns the row of a play by its upgrade.json."""
    found = {one.name: said_instead(one, record) for one in KNOWN if one.path == path}
    return KnownRow(play, found, said_of_control(path, record), round(seconds, 1), digest, commit)


def row_without_record(path: KnownPath, play: Play, why: str, *, digest: str, commit: str) -> KnownRow:
    """Returns the row of a play that left no record: everything is unknown."""
    said = f"{NO_RECORD}: {NOT_KNOWN}; {why[-LAST_WORDS_MAX:].strip()}"
    return KnownRow(play, {one.name: said for one in KNOWN if one.path == path}, said, 0.0, digest, commit)


def is_answered(row: KnownRow) -> bool:
    """Tells whether nothing that a play was for is unknown in it."""
    return not any(f": {NOT_KNOWN}" in said for said in (*row.found.values(), row.control))


def known_from_table(table: dict[str, Any]) -> KnownRow:
    """Returns a row by its table."""
    play = table.pop("play")
    return KnownRow(play=Play(**{**play, "consumers": tuple(play["consumers"])}), **table)


def fixtures_digest() -> str:
    """Returns the digest of the consumers that only this is for."""
    digest = hashlib.sha256()
    for file in sorted((registry.CHECKOUT / FOLDER).rglob("*")):
        if file.suffix in OF_THE_FIXTURES:
            digest.update(f"{file.relative_to(registry.CHECKOUT)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _no_outcome(subject: str, record: Mapping[str, Any]) -> str:
    """Returns why a record says nothing of a consumer: nothing is no go; "" where it says something."""
    if any(one["subject"] == subject for one in record["outcomes"]):
        return ""
    return f"{NO_RECORD}: {NOT_KNOWN}; refused by {record['path']['refusals'] or 'nothing'}"


def _not_go(subject: str, record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (one for one in record["outcomes"] if one["subject"] == subject and one["outcome"] != GO)


def _in_words(said: Mapping[str, Any]) -> str:
    whose = f", accused: {said['accused']}" if said["accused"] else ""
    return f"{said['stage']}: {said['outcome']}{whose}; {said['reason']}"
