"""The page: every setting with its default, every hop, every figure of the answer, and what it shows of an output."""

from __future__ import annotations

import re

import pytest

from kafka_trial.cli import main
from kafka_trial.preflight.answer import answer, as_json
from kafka_trial.preflight.plan import make_plans
from kafka_trial.preflight.size_settings import LIBRARIES, SIZE_SETTINGS
from kafka_trial.registry import CHECKOUT

PAGE = (CHECKOUT / "docs" / "preflight.md").read_text()


def test_every_setting_is_there_with_its_default() -> None:
    """`name` default, in the order of the code."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.partition("\n## Settings")[2].splitlines() if "`" in line]
    found = {(role, name): settings for role, libraries, settings in rows for name in libraries.split(", ")}
    wanted = {
        (role, library or "all"): ", ".join(
            f"`{setting.name}` {'none' if setting.default is None else setting.default}" for setting in size_settings
        )
        for (role, library), size_settings in SIZE_SETTINGS.items()
    }
    assert found == wanted


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_hop_is_in_the_table(library: str) -> None:
    """Where it is, and its setting."""
    table = PAGE.partition("\n## The hops")[2].partition("\n## ")[0]
    words = {"producer_library": library, "consumer_library": library, "compression": "zstd", "compression_ratio": 2}
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    for settings in ({}, {"topic": {"max.message.bytes": 1, "segment.bytes": 20}}):
        (plan,) = make_plans({"record_max": 1, "partitions_per_consumer": 1, **words, **settings})
        for hop in answer(plan).hops:
            name = hop.setting if "size of a" in hop.setting else f"`{hop.setting}`"
            dotted = name.replace("_", ".")
            at = [row for row in rows if row.startswith(f"| {hop.hop} |") and (name in row or dotted in row)]
            assert len(at) == 1, hop


def test_every_figure_that_the_page_names_is_one() -> None:
    """As `--json` prints it."""
    (plan,) = make_plans({"record_max": 1, "partitions_per_consumer": 1})
    told = as_json([answer(plan)])
    named = set(re.findall(r"`(\w+_(?:bytes|encodable|s))`", PAGE)) - {"max_poll_records"}
    sizes = {name for name in named if not name.startswith(("max_", "receive_", "fetch_max"))}
    assert (sizes - set(told), len(sizes) > 4) == (set(), True)


def test_what_it_shows_of_an_output_is_still_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Line by line: it is shortened, not changed."""
    shown = PAGE.partition("shortened:\n\n```\n")[2].partition("```")[0].splitlines()
    main(["preflight", "--record-max", "300MB", "--partitions", "360", "--consumers", "1"])
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in shown if line not in printed] == []
    assert len(shown) > 10
