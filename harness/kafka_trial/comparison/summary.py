"""What differs, in words: the same lines for the terminal, the page, JUnit and the job summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kafka_trial.comparison.interval import ALIKE, DIFFERS, NOT_SHOWN, TOO_FEW

Row = Mapping[str, Any]
HEADLINES: Final = {
    "worse": "WORSE: {} is worse than its baseline {}",
    "not worse": "NOT WORSE: {} is not worse than its baseline {} in what was tried",
    "unknown": "UNKNOWN: whether {} is worse than its baseline {} cannot be told",
}
REST: Final = {  # the outcomes of figures that do not differ, in the order of the lines
    ALIKE: "less than 10 % apart",
    NOT_SHOWN: "a difference of 10 % or more is neither shown nor excluded",
    TOO_FEW: "too few pairs to say (5 are needed)",
}


@dataclass(frozen=True)
class Part:
    """Some lines under a title."""

    title: str
    lines: tuple[str, ...]


def parts_of(comparison: Row, name: str) -> list[Part]:
    """Returns all that differs, by what was compared; `name`: the consumer's. The client's verdict comes first."""
    client = comparison["client"]
    verdict = [] if client is None else [Part(client_headline(client, name), tuple(_client_lines(client)))]
    return verdict + [Part(_title(one), tuple(_lines(one))) for one in comparison["between"]]


def client_headline(client: Row, name: str) -> str:
    """Returns the verdict on a new client in one sentence."""
    return HEADLINES[client["verdict"]].format(name, client["baseline"])


def _client_lines(client: Row) -> Iterator[str]:
    titles = {
        "worse": "worse",
        "unknown": "cannot be told",
        "alike": "broken by both",
        "better": "broken by the baseline only",
        "not_compared": "not compared, the baseline was not judged",
        "notes": "note",
    }
    for field, title in titles.items():
        yield from (f"{title}: {told}" for told in client[field])


def _title(one: Row) -> str:
    kafka = "Kafka " if one["versions"] else ""
    alone = f", {one['not_paired']} trials without a decided counterpart" if one["not_paired"] else ""
    return (
        f"{kafka}{one['before']} → {one['after']}: {_counted(one['pairs'], 'pair')} of the same suite and seed{alone}"
    )


def _lines(one: Row) -> Iterator[str]:
    yield from (_finding_in_words(row) for row in one["findings"])
    if not one["findings"]:
        few = "" if one["pairs"] >= 5 else f"; {REST[TOO_FEW]}"
        yield f"verdicts and anomalies: the same in all {_counted(one['pairs'], 'pair')}{few}"
    yield from (_figure_in_words(row) for row in one["figures"] if row["outcome"] == DIFFERS)
    for outcome, words in REST.items():
        rows = [row for row in one["figures"] if row["outcome"] == outcome]
        if rows:
            yield f"{words}: {', '.join(_in_brackets(row) for row in rows)}"


def _finding_in_words(row: Row) -> str:
    name = "verdict fail" if row["name"] == "fail" else row["name"]
    counts = f"{row['before']} → {row['after']} of {_counted(row['pairs'], 'pair')} ({', '.join(row['suites'])})"
    weight = {DIFFERS: "", NOT_SHOWN: "; it may be chance", TOO_FEW: f"; {TOO_FEW}"}[row["outcome"]]
    return f"{name}: {counts}{weight}{_because(row)}"


def _figure_in_words(row: Row) -> str:
    values = f"{_value(row['before'], row['unit'])} → {_value(row['after'], row['unit'])}"
    return f"{row['name']}: {_change(row)}, {values}, {_pairs(row)}{_because(row)}"


def _in_brackets(row: Row) -> str:
    if row["ratio"] is None:
        return f"{row['name']} ({_pairs(row)})"
    return f"{row['name']} ({_change(row)}, {_pairs(row)})"


def _pairs(row: Row) -> str:
    lacking = f", {row['missing']} lack it" if row["missing"] else ""
    return f"{_counted(row['pairs'], 'pair')}{lacking}"


def _change(row: Row) -> str:
    """Returns the median change with its interval, in percent: "+21 % (+12 to +30 %)"."""
    middle, low, high = (_percent(row[name]) for name in ("ratio", "low", "high"))
    return f"{middle} % ({low} to {high} %)"


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.0f}"


def _value(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value / 1e6:.1f} MB"
    return f"{value:.3g} {unit}"


def _because(row: Row) -> str:
    because: Sequence[str] = row["because"]
    return f". {'; '.join(because)}" if because else ""


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
