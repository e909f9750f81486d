"""The reference pages are complete: every key, placeholder, role, fault, option and line has its row, and no other."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
import types
import typing
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.claim import CHOICES, Claim
from kafka_trial.consumers import spec, spec_toml, wire
from kafka_trial.consumers.spec import OF_THIS_MACHINE, PLACEHOLDERS
from kafka_trial.nemesis.fault import EACH_MEMBER, list_faults
from kafka_trial.nemesis.targets import ROLES
from kafka_trial.registry import CHECKOUT
from kafka_trial.scenario import (
    COMPRESSION,
    FORMATS,
    KEYS,
    Burst,
    FurtherGroup,
    FurtherTopic,
    Limits,
    Load,
    Scenario,
    Step,
    Topic,
)
from kafka_trial.workload.template import KINDS

CONSUMER_TOML, SCENARIOS, CONSUMERS = (
    (CHECKOUT / "docs" / f"{name}.md").read_text() for name in ("consumer-toml", "scenarios", "consumers")
)
HEAD = "Outside any section"
OF_CONSUMER: dict[str, type[Any]] = {
    HEAD: spec_toml._Head,
    **{f"[{name}]": kind for name, kind in spec_toml._SECTIONS.items()},
    "[image]": spec.ImageLimits,
    "[sink.topic]": spec.SinkTopic,
    "[sink.postgres]": spec.SinkPostgres,
    "[claim]": Claim,
}
OF_SCENARIO: dict[str, type[Any]] = {
    HEAD: Scenario,
    "[topic]": Topic,
    "[load]": Load,
    "[[load.bursts]]": Burst,
    "[[schedule]]": Step,
    "[[further_topics]]": FurtherTopic,
    "[[further_groups]]": FurtherGroup,
    "[limits]": Limits,
}
# Of consumer.toml, whose defaults in the code stand in for what is missing.
REQUIRED = {(spec_toml._Head, "name"), (spec.SinkPostgres, "schema_file")}
ONE_OF_THE_TWO = {(spec_toml._Head, "command"), (spec_toml._Head, "image")}
BEFORE = {"[image]": [("name", "required")]}  # keys of a section that the code keeps elsewhere
BY_SECTION = {"topic", "load", "limits"}  # tables of their own
READERS_OWN = {"main.py", "/tmp/main.py"}


@pytest.mark.parametrize(
    ("page", "heading", "kind"),
    [
        *((CONSUMER_TOML, heading, kind) for heading, kind in OF_CONSUMER.items()),
        *((SCENARIOS, heading, kind) for heading, kind in OF_SCENARIO.items()),
    ],
    ids=[*(f"consumer.toml {heading}" for heading in OF_CONSUMER), *(f"scenario {heading}" for heading in OF_SCENARIO)],
)
def test_every_key_has_its_row_with_its_default(page: str, heading: str, kind: type[Any]) -> None:
    """A new key needs a row here: `| `key` | default | meaning |`, in the order of the code."""
    rows = [(row[0], row[1].strip("`")) for row in _table(page, heading)]
    assert rows == [*BEFORE.get(heading, ()), *((field.name, _default(kind, field)) for field in fields(kind))]


@pytest.mark.parametrize(
    ("page", "key", "choices"),
    [
        (CONSUMER_TOML, "protocol", spec.PROTOCOLS),
        (CONSUMER_TOML, "kind", spec.PROGRESS_KINDS),
        (CONSUMER_TOML, "events", spec.EVENT_DIALECTS),
        (CONSUMER_TOML, "sink", spec.SINKS),
        (CONSUMER_TOML, "signal", spec.STOP_SIGNALS),
        *((CONSUMER_TOML, key, choices) for key, choices in CHOICES.items()),
        (SCENARIOS, "keys", KEYS),
        (SCENARIOS, "compression", COMPRESSION),
        (SCENARIOS, "format", FORMATS),
    ],
)
def test_every_choice_is_in_its_row(page: str, key: str, choices: tuple[str, ...]) -> None:
    """As it is written in the file, in quotes."""
    row, *_ = re.findall(rf"^\| `{key}` \|.*$", page, re.MULTILINE)
    assert [choice for choice in choices if f'`"{choice}"`' not in row] == []


def test_every_placeholder_role_and_line_is_there() -> None:
    """The closed lists of the code, each with what it means."""
    placeholders = [row[0].strip("{}") for row in _table(CONSUMER_TOML, "Placeholders")]
    roles = [row[0] for row in _table(SCENARIOS, "Roles")]
    lines = {row[0] for row in _table(CONSUMERS, 'Lines (`events = "jsonl"`)')}
    assert (sorted(placeholders), sorted(roles)) == (sorted([*PLACEHOLDERS, "address"]), sorted([*ROLES, EACH_MEMBER]))
    assert lines | {"record_data", "records_consumed", "shutdown_requested"} == set(wire.DIALECTS["jsonl"])
    assert [outcome for outcome in wire.OUTCOMES if f'`"{outcome}"`' not in CONSUMERS] == []


def test_what_no_container_sees_is_said_to_be_not_for_images() -> None:
    """Of those placeholders, and of no other."""
    rows = {row[0].strip("{}"): row[1] for row in _table(CONSUMER_TOML, "Placeholders")}
    assert {name for name, meaning in rows.items() if meaning.endswith("not for images")} == set(OF_THIS_MACHINE)


def test_every_placeholder_of_a_template_is_there() -> None:
    """As it is written, in the order of the code."""
    rows = [row[0] for row in _table(CONSUMER_TOML, "Templates")]
    assert rows == [kind.example for kind in KINDS.values()]


def test_the_example_of_a_template_is_one(tmp_path: Path) -> None:
    """Both files as they stand on the page make JSON, with the id where the other says."""
    section = CONSUMER_TOML.partition("\n## Templates\n")[2].partition("\n## ")[0]
    toml, order = (section.partition(f"```{kind}\n")[2].partition("```")[0] for kind in ("toml", "json"))
    (tmp_path / "order.json").write_text(order)
    (tmp_path / "consumer.toml").write_text(
        f'schema = 1\nname = "orders"\ncommand = ["{{python}}"]\n{toml}[claim]\ndelivery = "at-least-once"\n'
    )
    read = spec_toml.spec_from_toml(tmp_path / "consumer.toml")
    assert (read.identity.json_path, sorted(read.payload.headers)) == ("$.order.id", ["content-type", "traceparent"])


def test_every_fault_has_its_row_and_every_option_its_meaning() -> None:
    """Targets, options with their defaults, and the summary of its docstring."""
    rows = {row[0]: row[1:] for row in _table(SCENARIOS, "Faults")}
    faults = {
        name: [", ".join(fault.targets), ", ".join(_options(fault.options)) or "none", fault.summary]
        for name, fault in list_faults().items()
    }
    options = {option for fault in list_faults().values() for option in fault.options}
    assert {name: [cell.replace("`", "") for cell in rows.get(name, ())] for name in faults} == faults
    assert rows.keys() - faults.keys() == options | {"option"}


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (CONSUMERS, "by a folder that has a `consumer.toml` (`--consumer .`"),
        (CONSUMERS, "the verdict can at best be *unknown*"),
        (SCENARIOS, "counts the members that were there when the faults began"),
        (SCENARIOS, "the longest drain. It ends earlier when all is handled and committed"),
    ],
)
def test_what_newcomers_asked_is_answered(page: str, words: str) -> None:
    """Each of these sentences stands where somebody looked for it in vain, or read the opposite."""
    assert words in page.replace("\n", " ")


def test_the_advice_on_kafkajs_is_what_our_own_consumer_declares() -> None:
    """Session and rebalance timeout are the client's defaults, as in `kafkajs-each-message`."""
    section = CONSUMERS.partition("## Node")[2].partition("\n## ")[0]
    advised = tomllib.loads(section.partition("```toml\n")[2].partition("```")[0])
    ours = tomllib.loads((CHECKOUT / "fixtures" / "unusual" / "kafkajs-each-message" / "consumer.toml").read_text())
    assert advised == {name: ours[name] for name in advised}


def _table(page: str, heading: str) -> Iterator[list[str]]:
    """Yields the cells of each row of the tables under a heading, without their head."""
    body = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    for line in body.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if line.startswith("| ") and not cells[0].startswith("---") and cells[0] not in ("key", *HEADS):
            yield [cells[0].strip("`"), *cells[1:]]


HEADS = ("placeholder", "role", "fault", "name")


def _default(kind: type[Any], field: Field[Any]) -> str:
    """Returns a default as TOML has it; "none" for what is left to us, "required" for what must be there."""
    required = field.default is MISSING and field.default_factory is MISSING
    if required or (kind, field.name) in REQUIRED:
        return "required"
    if (kind, field.name) in ONE_OF_THE_TWO:
        return "one of the two"
    if kind in (Scenario, FurtherTopic) and field.name in BY_SECTION:
        return "see below"
    value = field.default_factory() if field.default_factory is not MISSING else field.default
    if value is None or isinstance(typing.get_type_hints(kind)[field.name], types.NoneType):
        return "none"
    return json.dumps(value)


def _options(options: Any) -> Iterator[str]:
    return (f"{name} = {json.dumps(default)}" for name, default in options.items())


def test_every_report_is_explained() -> None:
    """All files of rows, and the pages beside them, are named where it stands what they hold."""
    reports = CHECKOUT / "reports"
    text = (reports / "README.md").read_text()
    named = {file.name for file in reports.glob("*.*") if f"`{file.name}`" in text or file.name == "README.md"}
    assert {file.name for file in reports.glob("*.*")} - named == set()


def test_every_module_that_a_page_names_is_there() -> None:
    """`kafka_trial.check` can be imported, and `judge/evidence.py` is a file of ours; `main.py` is the reader's own."""
    pages = [*(CHECKOUT / "docs").rglob("*.md"), CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md"]
    text = "\n".join(page.read_text() for page in pages)
    dotted = set(re.findall(r"\b(?:kafka_trial|lab)(?:\.[a-z_]+)+", text))
    files = set(re.findall(r"`(?:harness/)?(?:kafka_trial/)?([a-z_/]+\.py)`", text)) - READERS_OWN
    ours = [f"/{file.relative_to(CHECKOUT)}" for room in ("harness", "tests", "suites") for file in _sources(room)]
    assert {name for name in dotted if importlib.util.find_spec(name) is None} == set()
    assert {name for name in files if not any(one.endswith(f"/{name}") for one in ours)} == set()


def _sources(room: str) -> Iterator[Path]:
    return (CHECKOUT / room).rglob("*.py")


def test_what_uninstalling_takes_away_from_tmp_is_all_that_is_made_there() -> None:
    """Every name of a temporary folder begins with what the page says; `make clean` has the clone's."""
    text = "\n".join(file.read_text() for file in _sources("harness/kafka_trial"))
    prefixes = re.findall(r"\bprefix=f?\"([^\"]*)\"(?!, dir)", text) + re.findall(r"_PREFIX = \"([^\"]*)\"", text)
    assert prefixes
    assert [prefix for prefix in prefixes if not prefix.startswith("kafka-trial-")] == []
    assert "`rm -rf /tmp/kafka-trial-*`" in (CHECKOUT / "docs" / "running.md").read_text()
