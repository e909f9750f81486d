"""The settings of an audit: declared, else told by the group's records, else Kafka's defaults."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from kafka_trial.audit.offsets import GroupSettings
from kafka_trial.audit.request import NS_PER_S, AuditRequest
from kafka_trial.audit.settings import consumer_toml, read_claim, settings_of, settle_ns
from kafka_trial.errors import InputError
from kafka_trial.judge import consumer_settings as declared

ASKED = AuditRequest("h:1", "t", 'a "group"', 0, 1)
TOLD = GroupSettings("g", session_timeout_ms=10_000, rebalance_timeout_ms=60_000)


def test_the_groups_own_word_stands_before_kafkas_defaults() -> None:
    """45 s, 5 min and 5 s where nobody tells."""
    assert [settle_ns(settings_of(ASKED, told)) / NS_PER_S for told in (None, TOLD)] == [350.0, 75.0]


def test_what_is_declared_stands_before_all(tmp_path: Path) -> None:
    """A team's own consumer.toml will do as a claim's file."""
    path = tmp_path / "claim.toml"
    path.write_text(
        'command = ["x"]\n[claim]\ndelivery = "unclaimed"\n[kafka]\nsession_timeout_s = 1\npoll_interval_s = 2\n'
    )
    asked = AuditRequest("h:1", "t", "g", 0, 1, claim=read_claim(path))
    assert settle_ns(settings_of(asked, TOLD)) / NS_PER_S == 10.0  # 1 + 2 + 5, and never less than 10


def test_the_judge_reads_the_same_settings_from_the_run_folder(tmp_path: Path) -> None:
    """Names are quoted as they are."""
    path = tmp_path / "consumer.toml"
    path.write_text(consumer_toml(ASKED, settings_of(ASKED, TOLD)))
    assert (declared.settings_of(path), tomllib.loads(path.read_text())["name"]) == (
        settings_of(ASKED, TOLD),
        'a "group"',
    )


def test_a_groups_name_may_hold_any_letter(tmp_path: Path) -> None:
    """TOML wants control characters escaped: JSON's, and DEL."""
    name = 'a "b"\n\x00\x1f\x7f\u2028ü'
    text = consumer_toml(AuditRequest("h:1", "t", name, 0, 1), settings_of(ASKED))
    assert tomllib.loads(text)["name"] == name


@pytest.mark.parametrize(
    ("text", "said"),
    [("[clam]\n", "has no \\[claim\\] table"), ("[claim]\ndelivery = 'some'\n", "none of"), ("[claim", "as TOML")],
)
def test_a_claim_that_is_none_is_told(text: str, said: str, tmp_path: Path) -> None:
    """Before anything is read from the cluster."""
    path = tmp_path / "claim.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_claim(path)
