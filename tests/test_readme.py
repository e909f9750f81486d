"""The pages are true: the README's consumer runs and passes, the commands of all exist, and their places."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_trial.cli import EXAMPLES
from kafka_trial.registry import CHECKOUT, find_scenario
from kafka_trial.trial.session import Session
from kafka_trial.verbs import LISTS, markdown

README = (CHECKOUT / "README.md").read_text()
LINES_MAX = 150  # what a newcomer reads
PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
PAGES_BY_NAME = {page.name: page for page in PAGES}


def test_the_first_page_is_short() -> None:
    """The rest is in docs/, and each of its pages is reached from there."""
    assert len(README.splitlines()) <= LINES_MAX
    linked = {name for page in PAGES for name in re.findall(r"\((?:docs/)?([\w-]+\.md)[)#]", page.read_text())}
    assert PAGES_BY_NAME.keys() - linked == {"README.md"}


def test_the_glossary_is_short() -> None:
    """At most forty words, each once."""
    words = re.findall(r"^\| ([^|]+) \| ", PAGES_BY_NAME["glossary.md"].read_text(), re.MULTILINE)[2:]
    assert len(words) == len(set(words)) <= 40


@pytest.mark.parametrize("name", PAGES_BY_NAME)
def test_the_commands_of_a_page_exist(name: str) -> None:
    """Every `kafka-trial VERB` and `make TARGET` it names is there."""
    text, makefile = PAGES_BY_NAME[name].read_text(), (CHECKOUT / "Makefile").read_text()
    verbs = set(re.findall(r"kafka-trial ([a-z]+)", text))
    targets = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", text))
    assert verbs - set(EXAMPLES) == set()
    assert {target for target in targets if f"\n{target}:" not in makefile} == set()


@pytest.mark.parametrize("name", PAGES_BY_NAME)
def test_the_links_of_a_page_lead_somewhere(name: str) -> None:
    """Every relative link is a file of the repository."""
    page = PAGES_BY_NAME[name]
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_catalogue_is_that_of_the_invariants() -> None:
    """The table is what `list invariants --markdown` prints, line for line."""
    text = PAGES_BY_NAME["verdicts.md"].read_text()
    table = text.partition("<!-- invariants -->\n")[2].partition("<!-- /invariants -->")[0]
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
