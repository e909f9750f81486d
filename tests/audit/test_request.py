"""What an audit may be asked: times in several forms, and every problem told at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_trial.audit.request import NS_PER_S, Limits, make_audit_request, stamp
from kafka_trial.errors import InputError

NOW_NS = 1_800_000_000 * NS_PER_S
WORDS: dict[str, Any] = {"bootstrap": "h:9092", "topic": "t", "group": "g", "from": "12h", "until": "now"}


@pytest.mark.parametrize(
    ("text", "ago_s"),
    [("90s", 90), ("30min", 1800), ("1.5h", 5400), ("2d", 172800), (stamp(NOW_NS - 60 * NS_PER_S), 60)],
)
def test_a_time_is_a_moment_or_how_long_ago(text: str, ago_s: int) -> None:
    """Both count from the wall clock of this machine."""
    asked = make_audit_request(WORDS | {"from": text}, now_ns=NOW_NS)
    assert (NOW_NS - asked.from_ns, asked.until_ns) == (ago_s * NS_PER_S, NOW_NS)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"from": "1h", "until": "2h"}, "reversed"),
        ({"from": "yesterday"}, "is no time"),
        ({"from": "2026-01-01T00:00:00"}, "no time zone"),
        ({"until": "2099-01-01T00:00:00Z"}, "lies in the future"),
        ({"bootstrap": "h:9092,nonsense"}, "'nonsense' is no host:port"),
        ({"request_logs": ["no-such.log"]}, "there is no such file"),
        ({"max_records": 0}, "must be above 0"),
    ],
)
def test_what_makes_no_sense_is_told(wrong: dict[str, Any], said: str) -> None:
    """Before any broker is asked."""
    with pytest.raises(InputError, match=said):
        make_audit_request(WORDS | wrong, now_ns=NOW_NS)


def test_all_problems_are_told_at_once() -> None:
    """Who corrects one finds no second."""
    with pytest.raises(InputError) as told:
        make_audit_request(WORDS | {"from": "1h", "until": "2h", "bootstrap": "h", "max_mib": -1}, now_ns=NOW_NS)
    assert len(told.value.problems) == 3


def test_limits_are_as_given_else_as_documented(tmp_path: Path) -> None:
    """Mebibytes become bytes."""
    log = tmp_path / "requests.log"
    log.touch()
    asked = make_audit_request(WORDS | {"max_mib": 2, "readers": 1, "request_logs": [str(log)]}, now_ns=NOW_NS)
    assert (asked.limits, asked.request_logs) == (Limits(bytes_max=2 << 20, readers=1), (log,))
