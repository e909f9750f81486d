"""One word, one meaning, and the field's: what a thing was once called is refused as a name.

Looked at are modules, classes and public functions; what they say in prose is free.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

HARNESS = Path(__file__).parent.parent / "harness"

OLD = {  # as a part of a name → what it is called now
    **dict.fromkeys(("question", "asked"), "trial spec"),
    "setting": "setup, trial environment",
    "narrator": "console",
    **dict.fromkeys(("clockwork", "vitals", "pulse"), "clock and resource samples"),
    "facts": "run metadata",
    "autogroup": "CPU priority",
    "quiet": "silent variants",
    **dict.fromkeys(("cascade", "cascades"), "root causes"),
    **dict.fromkeys(("sentence", "sentences"), "messages"),
    **dict.fromkeys(("case", "found"), "check result"),
    "weighing": "audit rules",
    **dict.fromkeys(("crew", "household"), "thread group, child processes"),
    **dict.fromkeys(("dialogue", "errand", "pen"), "child RPC, launch context, event writer"),
    "conductor": "send scheduler",
    **dict.fromkeys(("ground", "scene", "playing"), "fault context, injection, runner"),
    **dict.fromkeys(("blast", "guest", "look"), "scope, extra member, snapshot"),
    **dict.fromkeys(("hearing", "conclude"), "collect, decide"),
    **dict.fromkeys(("vacuity", "vacuous"), "coverage gaps"),
    **dict.fromkeys(("identities", "mark", "marks"), "id index, id hash"),
    **dict.fromkeys(("census", "wholeness"), "line stats, history defects"),
    **dict.fromkeys(("through", "around"), "member and fault coverage"),
    **dict.fromkeys(("possession", "possessions"), "ownership epoch"),
    **dict.fromkeys(("grant", "grants"), "assignment record"),
    "circumstances": "trial context",
    **dict.fromkeys(("life", "lives"), "incarnation"),
    **dict.fromkeys(("standstill", "standstills"), "harness stalls"),
    "unheard": "uncertain after kill",
    "sieve": "window filter",
    **dict.fromkeys(("doubt", "doubts", "doubted", "unsettled"), "undecided"),
    **dict.fromkeys(("unjudged", "unaudited"), "not judged"),
    "heard": "read (by the harness), received (by a member), seen (at the sink)",
    "stalls": "harness stalls, machine stalled, stuck",
    "holdings": "ownership epochs",
    "busy": "occupied (a process); a machine is busy",
    **dict.fromkeys(("handling",), "sink evidence"),
    "holes": "gaps",
    "training": "JVM warm-up",
}

GONE = {  # left altogether: no identifier has such a part, be it a local name
    *("circumstances", "clockwork", "conductor", "crew", "doubt", "doubts", "facts", "grant", "grants", "holes"),
    *("household", "life", "lives", "narrator", "pen", "playing", "possession", "possessions", "sieve"),
    *("doubted", "holdings", "unjudged", "unsettled"),
    *("standstill", "standstills", "unheard", "vacuity", "vitals", "wholeness"),
}

ELSEWHERES = {"kafka_trial.cluster.java: facts"}  # what the file system says of a file
EXCEPTIONS = {
    "lab.scale.cases.Case": "one history of a campaign of measurements",
    "lab.scale.cases": "the cases of that campaign",
    "kafka_trial.judge.slices.found_frame": "the Spark frame of what was found",
}


def names() -> Iterator[str]:
    """Yields every module, class and public function, with its module."""
    for file in sorted(HARNESS.rglob("*.py")):
        module = ".".join(file.relative_to(HARNESS).with_suffix("").parts).removesuffix(".__init__")
        yield module
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                yield f"{module}.{node.name}"


def parts(name: str) -> list[str]:
    """Returns the words of the last part of a name: snake_case and CamelCase alike."""
    return [part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name.rpartition(".")[2])]


def test_nothing_is_called_by_an_old_word() -> None:
    """The table says by what it is called now."""
    old = {name: OLD[part] for name in names() for part in parts(name) if part in OLD and name not in EXCEPTIONS}
    assert old == {}


def identifiers() -> Iterator[str]:
    """Yields every identifier, with its module."""
    for file in sorted(HARNESS.rglob("*.py")):
        module = ".".join(file.relative_to(HARNESS).with_suffix("").parts).removesuffix(".__init__")
        tokens = tokenize.generate_tokens(StringIO(file.read_text()).readline)
        yield from {f"{module}: {token.string}" for token in tokens if token.type == tokenize.NAME}


def test_a_word_that_is_gone_is_in_no_identifier() -> None:
    """Not even a local name brings it back: columns and attributes are called by the same words."""
    back = {name for name in identifiers() if GONE.intersection(parts(name.replace(": ", ".")))}
    assert back == ELSEWHERES


def test_an_exception_is_still_one() -> None:
    """What was renamed meanwhile is taken off the list."""
    assert set(EXCEPTIONS) - set(names()) == set()
