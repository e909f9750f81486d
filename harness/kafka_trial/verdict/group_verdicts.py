"""The verdict on a trial of several groups: the worst of theirs, each told with its consumer's name.

Each group is judged by itself, on its own history and under its own claim, as the only one of a trial would be. What
further groups broke, and what is not known of them, is added to the first one's verdict, with their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kafka_trial.verdict.decide import EXITS, GroupVerdict, Verdict

WORST_FIRST = ("fail", "unknown", "pass")


def verdict_of_all(first: Verdict, consumer: str, further: Mapping[str, tuple[str, Verdict]]) -> Verdict:
    """Returns the verdict on a trial whose first group has this verdict; `further`: of each further group its
    consumer's name and its verdict. Without any, it is that of the first."""
    if not further:
        return first
    verdicts = [first, *(verdict for _, verdict in further.values())]
    word = next(word for word in WORST_FIRST if any(one.verdict == word for one in verdicts))
    unknown = [one for one in verdicts if one.verdict == "unknown"]
    names = {f"group {name} ({consumer_name})": verdict for name, (consumer_name, verdict) in further.items()}
    violations = [
        replace(one, sentence=f"{name}: {one.sentence}", events=())  # its events are in its own history
        for name, verdict in names.items()
        if verdict.verdict == "fail"
        for one in verdict.violations
    ]
    return replace(
        first,
        verdict=word,
        exit=EXITS[word],
        violations=(*first.violations, *violations),
        reasons=(*first.reasons, *_reasons(names)),
        retriable=word == "unknown" and all(one.retriable for one in unknown),
        groups=(
            GroupVerdict("", consumer, first.verdict),
            *(GroupVerdict(name, own, verdict.verdict) for name, (own, verdict) in further.items()),
        ),
    )


def _reasons(names: Mapping[str, Verdict]) -> Iterator[str]:
    for name, verdict in names.items():
        yield from (f"{name}: {reason}" for reason in verdict.reasons)
