"""The README is true: its consumer runs and passes, its commands exist, its places exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_trial.cli import EXAMPLES
from kafka_trial.registry import CHECKOUT, find_scenario
from kafka_trial.session import Session
from kafka_trial.verbs import LISTS, markdown

README = (CHECKOUT / "README.md").read_text()


def test_its_commands_exist() -> None:
    """Every `kafka-trial VERB` and `make TARGET` it names is there."""
    verbs = set(re.findall(r"kafka-trial ([a-z]+)", README))
    targets = set(re.findall(r"`make ([a-z]+)`|\$ make ([a-z]+)", README))
    makefile = (CHECKOUT / "Makefile").read_text()
    assert verbs - set(EXAMPLES) == set()
    assert {name for pair in targets for name in pair if name and f"\n{name}:" not in makefile} == set()


def test_its_links_lead_somewhere() -> None:
    """Every relative link is a file of the repository."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert [link for link in links if not (CHECKOUT / link).exists()] == []


def test_its_catalogue_is_that_of_the_invariants() -> None:
    """The table is what `list invariants --markdown` prints, line for line."""
    table = README.partition("<!-- invariants -->\n")[2].partition("<!-- /invariants -->")[0]
    assert table.splitlines() == markdown(LISTS["invariants"]())


@pytest.mark.cluster
@pytest.mark.spark
def test_its_consumer_passes(kafka_trial_session: Session, tmp_path: Path) -> None:
    """The consumer of "five minutes", copied from the page, is acquitted where a member is killed."""
    (tmp_path / "consumer.toml").write_text(_block("toml"))
    (tmp_path / "mine.py").write_text(_block("python", "# mine.py"))
    quick = find_scenario(str(CHECKOUT / "tests" / "live" / "quick.toml"))
    trialed = kafka_trial_session.try_one(quick, tmp_path / "consumer.toml", seed=7, out=tmp_path / "run")
    assert trialed.verdict.verdict == "pass", trialed.text


def _block(language: str, begins: str = "") -> str:
    return next(
        block for block in re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL) if block.startswith(begins)
    )
