"""The pages are true: their commands exist, and the places they lead to; `test_page_commands.py` executes them."""

from __future__ import annotations

import re

import pytest

from kafka_trial import __version__
from kafka_trial.cli import EXAMPLES
from kafka_trial.registry import CHECKOUT
from kafka_trial.verbs import LISTS, markdown

README = (CHECKOUT / "README.md").read_text()
README_LINES_MAX, CHANGELOG_LINES_MAX = 120, 150  # what a newcomer reads; of the changelog, one version
CASES = CHECKOUT / "docs" / "cases"
PAGES = [
    *(CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md")),
    *(page for folder in (CHECKOUT / "docs", CASES) for page in sorted(folder.glob("*.md"))),
]
PAGES_BY_NAME = {page.name: page for page in PAGES}


def test_the_first_page_is_short() -> None:
    """The rest is in docs/, and each of its pages is reached from there."""
    assert len(README.splitlines()) <= README_LINES_MAX
    linked = {
        name for page in PAGES for name in re.findall(r"\((?:docs/)?(?:cases/)?([\w-]+\.md)[)#]", page.read_text())
    }
    assert PAGES_BY_NAME.keys() - linked == {"README.md"}


def test_the_glossary_is_short() -> None:
    """At most forty words, each once."""
    words = re.findall(r"^\| ([^|]+) \| ", PAGES_BY_NAME["glossary.md"].read_text(), re.MULTILINE)[2:]
    assert len(words) == len(set(words)) <= 40


def test_the_changelog_has_this_version_and_no_word_of_ours() -> None:
    """It is for whoever runs trials: short, by version, and without what only developers of this project do."""
    text = (CHECKOUT / "CHANGELOG.md").read_text()
    assert f"\n## {__version__}" in text
    versions = text.split("\n## ")[1:]
    assert max(len(version.splitlines()) for version in versions) <= CHANGELOG_LINES_MAX
    assert re.findall(r"make (?:mutate|test|lint)|digest|mutant|garbage collector|possession", text) == []


@pytest.mark.parametrize("name", PAGES_BY_NAME)
def test_a_page_needs_no_insider_word(name: str) -> None:
    """What newcomers asked us about is said in plain words: a fault takes effect, or has none that was measured."""
    assert (
        re.findall(
            r"\b(?:vacuous|bitten|bite|NOT shown|because of its ground)\b|  bit  ", PAGES_BY_NAME[name].read_text()
        )
        == []
    )


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


def test_every_plot_of_the_cases_is_shown() -> None:
    """By one of their pages; that each shown one is there, the test of the links says."""
    shown = {name for page in CASES.glob("*.md") for name in re.findall(r"\]\(plots/([^)]+)\)", page.read_text())}
    assert {plot.name for plot in (CASES / "plots").iterdir()} == shown


def test_the_catalogue_is_that_of_the_invariants() -> None:
    """The table is what `list invariants --markdown` prints, line for line."""
    text = PAGES_BY_NAME["verdicts.md"].read_text()
    table = text.partition("<!-- invariants -->\n")[2].partition("<!-- /invariants -->")[0]
    assert table.splitlines() == markdown(LISTS["invariants"]())
