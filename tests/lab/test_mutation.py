"""Planted bugs: which there are, that they are noticed, and that the page tells what the rows say."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from kafka_trial.process.waiting import wait_until
from kafka_trial.registry import CHECKOUT
from lab.mutation.campaign import EQUIVALENTS, PAGE, ROWS, SOURCES, read_modules
from lab.mutation.killers import TESTS, Judges, Outcome
from lab.mutation.operators import Mutant, Place, digest_of, function_digests, mutants, planted
from lab.mutation.rows import Equivalent, Module, Row, contradictions, counting, page, read_equivalents, read_rows

pytestmark = pytest.mark.lengthy

ONE = Mutant("skips", "poll_skip", "inversion", "~killed", "killed")
MODULES = {"skips": Module("skips", "", {"poll_skip": "d1"}, {ONE: Place(50, 0, 7, "killed")})}
ROW = Row(ONE, 50, 9, "survived", "", "t1", "c1", function_digest="d1")
LISTED = Equivalent("skips", "poll_skip", "~killed", "killed", "nobody is ever killed")


@pytest.mark.parametrize(
    ("line", "planted_as"),
    [
        ("a < b", ["a <= b", "a >= b"]),
        ("(a & b) == c", ["(a & b) != c", "((a | b)) == c", "(a) == c", "(b) == c"]),
        ("a + 1", ["(a - 1)", "a + (2)", "a + (0)"]),
        ("60", ["(120)", "(30)"]),
        ("~a", ["a"]),
        ("a and not b", ["(a or (not b))", "((not b))", "(a)", "a and b"]),
        ("x if a else b", ["x if (not a) else b"]),
        ("np.where(a, b, c)", ["np.where(a, c, b)"]),
        ('find(a, side="left")', ["find(a, side='right')"]),
        ("at_or_before(a, NONE)", ["at_or_after(a, NONE)", "at_or_before(a, NEVER)"]),
        ("f'{a + 1}'", []),
        ('"a message"', []),
    ],
)
def test_what_is_planted(line: str, planted_as: list[str]) -> None:
    """Each operator at its places, and nothing in what is only told."""
    source = f"def f():\n    return {line}\n"
    texts = [planted(source, place) for place in mutants("m", source).values()]
    assert [text.removeprefix("def f():\n    return ").rstrip("\n") for text in texts] == planted_as


def test_dropped_lines() -> None:
    """Statements that change what is there already; a name's first value is not left out, that would only be missed."""
    source = "def f(a):\n    b = a\n    b = g(b)\n    b[0] = a\n    b |= a\n    h(b)\n    return b\n"
    dropped = [place.line for one, place in mutants("m", source).items() if one.operator == "dropped line"]
    assert dropped == [3, 4, 5, 6]


def test_every_mutant_is_another_module() -> None:
    """All of them can be compiled, none is the module as it is, and there are thousands."""
    count = 0
    for module in read_modules().values():
        spans = [_lines(statement) for statement in ast.parse(module.text).body]
        for place in module.mutants.values():
            text, count = planted(module.text, place), count + 1
            assert text != module.text
            (lines,) = [span for span in spans if place.line in span]  # what else there is, is as it was
            more = text.count("\n") - module.text.count("\n")
            changed = text.splitlines(keepends=True)[lines.start - 1 : lines.stop - 1 + more]
            compile("".join(changed), module.name, "exec")
    assert count > 3000


def _lines(statement: ast.stmt) -> range:
    """Returns the lines of a statement of a module, its decorators' too."""
    first = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", ()))])
    return range(first, (statement.end_lineno or first) + 1)


def test_a_planted_bug_is_noticed_and_none_is_not(tmp_path: Path) -> None:
    """The tests of one module on it as it is, and with one comparison turned round."""
    text = (SOURCES / "anomalies" / "processes.py").read_text()
    bug = text.replace(">= STORM_MIN", "< STORM_MIN")
    judges = Judges(tmp_path, histories_per_sin=0)
    judges.prepare([])
    order = [TESTS / "invariants" / "test_storms.py"]
    outcomes = [judges.judge("processes", changed, order) for changed in (text, bug)]
    assert outcomes == [Outcome("survived"), Outcome("killed", outcomes[1].by)]
    assert outcomes[1].by.startswith("tests/invariants/test_storms.py")


ENDLESS = """
import sys, time
from pathlib import Path
from lab.mutation.killers import Judges
Judges(Path(sys.argv[1]))._asked(time.sleep, 600)
"""


def test_the_mutant_ends_with_who_asked_for_it(tmp_path: Path) -> None:
    """A campaign that is ended by SIGTERM leaves no process behind."""
    asking = subprocess.Popen([sys.executable, "-c", ENDLESS, str(tmp_path)], cwd=CHECKOUT / "harness")
    begun = wait_until(lambda: _grandchildren(asking.pid), within_s=30, what="the process of a mutant")
    asking.terminate()
    asking.wait()
    _, left = psutil.wait_procs(begun, timeout=10)
    assert left == []


def _grandchildren(pid: int) -> list[psutil.Process]:
    children = psutil.Process(pid).children()
    return [grandchild for child in children for grandchild in child.children()]


@pytest.mark.rotates(every=4)
def test_only_files_that_call_the_changed_function_judge_it(tmp_path: Path) -> None:
    """What an import executes concerns every file; so does what nobody was heard to call."""
    storms, kernels = (TESTS / "invariants" / f"test_{name}.py" for name in ("storms", "kernels"))
    judges = Judges(tmp_path, histories_per_sin=0)
    assert judges.prepare([storms, kernels]) == Outcome("survived")
    asked = [("processes", "rebalance_storm"), ("processes", "module"), ("kernels", "first_of"), ("kernels", "nobody")]
    assert [[judges.calls(file, *function) for file in (storms, kernels)] for function in asked] == [
        [True, False],
        [True, True],
        [True, True],
        [True, True],
    ]


def test_the_page_is_that_of_the_rows() -> None:
    """Made again from the stored rows and the listed equivalents: the same bytes, and no equivalent was ever killed."""
    rows, equivalents, modules = read_rows(ROWS), read_equivalents(EQUIVALENTS), read_modules()
    assert page(rows, equivalents, modules) == PAGE.read_text(), "python -m lab.mutation --page makes it again"
    assert contradictions(rows, equivalents, modules) == []


@pytest.mark.rotates(every=4)
def test_every_listed_equivalent_is_a_mutant() -> None:
    """One whose text has changed is no reason any more: it would excuse what nobody has looked at."""
    mutants = [mutant for module in read_modules().values() for mutant in module.mutants]
    listed = read_equivalents(EQUIVALENTS)
    assert [one for one in listed if not any(one.is_about(mutant) for mutant in mutants)] == []
    assert len({replace(one, reason="") for one in listed}) == len(listed)


def test_the_last_row_of_the_last_text_counts() -> None:
    """Killed by a test added since; rows of an earlier text of the function, or of one that is gone, tell of others."""
    killed = replace(ROW, result="killed", by="tests/invariants/test_skips.py::test_new", tests_digest="t2")
    earlier = replace(killed, function_digest="d0")
    of_the_module = replace(killed, function_digest="", source_digest="d1")
    gone = replace(killed, mutant=replace(ONE, function="gone"))
    moved = replace(killed, mutant=replace(ONE, module="gone"))
    assert counting([ROW, earlier, of_the_module, gone, moved], MODULES) == {ONE: ROW}
    assert counting([ROW, killed, earlier], MODULES) == {ONE: killed}


def test_a_function_is_known_by_what_it_executes() -> None:
    """Its docstring, a comment, its place and another function's change leave its digest alone."""
    as_it_is = function_digests("def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    moved = function_digests(
        'LIMIT = 3\n\n\ndef g():\n    """Says."""\n    return 2  # two\n\n\ndef f():\n    return 4\n'
    )
    assert (moved["g"], moved["f"] != as_it_is["f"]) == (as_it_is["g"], True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x[1:]", "x[:1]"),
        ("x[:-1]", "x[-1:]"),
        ("g(a, h(b), c)", "g(a, h(b, c))"),
        ("d[f'{x.a}']", "d[f'{x.b}']"),
        ("lambda a, b: a", "lambda b, a: a"),
    ],
)
def test_another_shape_is_another_function(before: str, after: str) -> None:
    """Whatever is executed counts, not only the nodes that a mutant can change."""
    texts = [function_digests(f"def f(n=NONE):\n    return {code}\n")["f"] for code in (before, after)]
    assert texts[0] != texts[1]
    assert function_digests(f"def f(n=NEVER):\n    return {before}\n")["f"] != texts[0]


@pytest.mark.rotates(every=4)
def test_every_mutant_has_its_function_digest() -> None:
    """Methods, nested functions and what an import executes too."""
    for module in read_modules().values():
        assert all(digest_of(mutant, module.digests) for mutant in module.mutants)


def test_survivors_and_equivalents_are_told_apart() -> None:
    """A survivor is named with its line; listed, it stands with its reason, and is not in the share."""
    survivor = page([ROW], [], MODULES)
    assert "| all | 1 | 0 | 0 | 1 | 0.0% |" in survivor
    assert "- skips.poll_skip, line 50: `~killed` → `killed`\n" in survivor
    listed = page([ROW], [LISTED], MODULES)
    assert "| all | 1 | 0 | 1 | 0 | - |" in listed
    assert "`~killed` → `killed`: nobody is ever killed\n" in listed


def test_a_killed_equivalent_is_a_contradiction() -> None:
    """Somebody noticed what nobody could: the list is wrong, and the page says so."""
    killed = replace(ROW, result="killed", by="t")
    assert contradictions([killed], [LISTED], MODULES) == [killed]
    assert "## Listed as equivalent, and killed" in page([killed], [LISTED], MODULES)
