"""A consumer stored as a patch is an ordinary folder to a trial; its diff applies exactly, or says what is wrong.

Of a consumer.toml that extends another: what is merged, how the text looks, and what is refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_trial import registry
from kafka_trial.consumers.consumer import spec_from_toml
from kafka_trial.consumers.patched_consumer import (
    apply_diff,
    build_consumer_folder,
    find_patch,
    merged_text,
    program_source,
    render_patched_files,
)
from kafka_trial.errors import InputError
from kafka_trial.trial.consumer_files import folder_digest
from kafka_trial.trial.spec import make_trial_spec
from kafka_trial.workload.payload import payload_digest

DIFF = "--- ../../reference/orders/main.py\n+++ main.py\n@@ -1,2 +1,2 @@\n import os\n-print(1)\n+print(2)\n"
PROGRAM = "import os\nprint(1)\n"
TOML = 'schema = 1\nname = "orders"\ncommand = ["{python}", "main.py"]\n[claim]\ndelivery = "at-least-once"\n'


@pytest.fixture
def sin(tmp_path: Path) -> Path:
    """The consumer.toml of a sin beside its reference, in two folders as ours are."""
    reference, faulty = tmp_path / "reference" / "orders", tmp_path / "faulty" / "prints-two"
    for folder in (reference, faulty):
        folder.mkdir(parents=True)
    (reference / "main.py").write_text(PROGRAM)
    (reference / "consumer.toml").write_text(TOML)
    (faulty / "sin.diff").write_text(DIFF)
    (faulty / "notes.txt").write_text("kept\n")
    (tmp_path / "start.py").write_text("pass\n")
    toml = faulty / "consumer.toml"
    toml.write_text('extends = "../../reference/orders/consumer.toml"\ncommand = ["{python}", "../../start.py"]\n')
    return toml


def test_it_is_made_an_ordinary_folder(sin: Path, tmp_path: Path) -> None:
    """The program, its TOML file merged, what lies beside it, what its command names; nothing of a patch."""
    made = build_consumer_folder(sin, tmp_path / "run")
    files = {file.relative_to(tmp_path / "run").as_posix() for file in (tmp_path / "run").rglob("*") if file.is_file()}
    inside = "faulty/prints-two"
    assert files == {"start.py", f"{inside}/consumer.toml", f"{inside}/main.py", f"{inside}/notes.txt"}
    assert (made.parent / "main.py").read_text() == program_source(sin.parent) == "import os\nprint(2)\n"
    assert "extends" not in made.read_text()
    assert spec_from_toml(made).command == spec_from_toml(sin).command
    assert (find_patch(made.parent), render_patched_files(made.parent)) == (None, {})


@pytest.mark.parametrize(
    "named", ['template = "../../reference/orders/a.json"', 'samples = "../../reference/orders/values"']
)
def test_the_payload_of_its_reference_comes_along(named: str, sin: Path, tmp_path: Path) -> None:
    """A file, or a folder, beside the fixture's own: what it reads from there is the same."""
    orders = tmp_path / "reference" / "orders"
    (orders / "values").mkdir()
    (orders / "values" / "1.avro").write_bytes(b"\0\1")
    (orders / "a.json").write_text('{"id": "${id}"}')
    (orders / "consumer.toml").write_text(f"{TOML}[payload]\n{named}\n")
    made, stored = spec_from_toml(build_consumer_folder(sin, tmp_path / "run")), spec_from_toml(sin)
    places = [one.payload_files.template or one.payload_files.samples for one in (made, stored)]
    assert [place.is_relative_to(tmp_path / "run") for place in places if place] == [True, False]
    assert payload_digest(made.payload_files) == payload_digest(stored.payload_files) != ""


def test_its_digest_is_that_of_the_folder_it_is_made(sin: Path, tmp_path: Path) -> None:
    """However it is stored; and a change of the reference is one of the sin."""
    digest = folder_digest(sin.parent)
    assert digest == folder_digest(build_consumer_folder(sin, tmp_path / "run").parent)
    reference = tmp_path / "reference" / "orders" / "main.py"
    reference.write_text(PROGRAM + "print(3)\n")
    assert folder_digest(sin.parent) != digest


def test_a_reference_that_has_changed_there_is_told_before_anything_starts(sin: Path, tmp_path: Path) -> None:
    """The file, the hunk, and what to do."""
    (tmp_path / "reference" / "orders" / "main.py").write_text("import sys\nprint(1)\n")
    with pytest.raises(
        InputError, match=r"prints-two/sin.diff, hunk 1: line 1 must be 'import os.n'.*make the diff again"
    ):
        make_trial_spec(registry.find_scenario("control"), sin)


def test_a_patch_stands_for_a_program_and_is_on_one(sin: Path, tmp_path: Path) -> None:
    """Two programs would be one too many; and a patch on nothing is none."""
    (sin.parent / "main.py").write_text("")
    with pytest.raises(InputError, match=r"sin.diff: is beside a main.py, which it stands for"):
        render_patched_files(sin.parent)
    (sin.parent / "main.py").unlink()
    (tmp_path / "reference" / "orders" / "main.py").unlink()
    with pytest.raises(InputError, match=r"is on ../../reference/orders/main.py, and there is no file"):
        program_source(sin.parent)


def test_an_ordinary_folder_is_as_it_is(tmp_path: Path) -> None:
    """Whatever else lies there."""
    (tmp_path / "main.py").write_text(PROGRAM)
    (tmp_path / "last-week.diff").write_text("no diff at all")
    assert (render_patched_files(tmp_path), program_source(tmp_path)) == ({}, PROGRAM)


POEM = "one\ntwo\nthree\nfour\nfive\nsix\n"
HEAD = "--- poem\n+++ mine\n"
TWO_HUNKS = HEAD + "@@ -1,2 +1,3 @@\n one\n+one and a half\n two\n@@ -5,2 +6,1 @@\n-five\n six\n"


def test_every_hunk_is_applied() -> None:
    """Lines come, go, and stay where they are."""
    assert apply_diff(TWO_HUNKS, POEM, where="a.diff") == "one\none and a half\ntwo\nthree\nfour\nsix\n"


@pytest.mark.parametrize(
    ("hunk", "text", "made"),
    [
        ("@@ -0,0 +1,2 @@\n+one\n+two\n", "", "one\ntwo\n"),
        ("@@ -1,2 +0,0 @@\n-one\n-two\n", "one\ntwo\n", ""),
        ("@@ -1 +1 @@\n-one\n+two\n", "one\n", "two\n"),
        ("@@ -1,0 +2 @@\n+two\n", "one\nthree\n", "one\ntwo\nthree\n"),
        ("@@ -1 +1 @@ def one():\n-one\n\\ No newline at end of file\n+one\n", "one", "one\n"),
        ("@@ -1 +1 @@\n-one\n+one\n\\ No newline at end of file\n", "one\n", "one"),
        ("@@ -1,2 +1,2 @@\n-one\n+un\n two\n\\ No newline at end of file\n", "one\ntwo", "un\ntwo"),
        ("@@ -1 +1,2 @@\n one\r\n+\x0ctwo\r\n", "one\r\n", "one\r\n\x0ctwo\r\n"),
    ],
)
def test_edges_of_the_format(hunk: str, text: str, made: str) -> None:
    """Empty files, counts that are left out, no context, ends of files without a newline, other ends of lines."""
    assert apply_diff(HEAD + hunk, text, where="a.diff") == made


@pytest.mark.parametrize(
    ("hunks", "said"),
    [
        (
            "@@ -1,2 +1,2 @@\n one\n-too\n+2\n",
            r"a.diff, hunk 1: line 2 must be 'too\\n', the file has 'two\\n'; make .*",
        ),
        ("@@ -1,2 +1,2 @@\n one \n-two\n+2\n", r"hunk 1: line 1 must be 'one \\n', the file has 'one\\n'"),
        ("@@ -2,2 +2,2 @@\n one\n-two\n+2\n", r"hunk 1: line 2 must be 'one\\n', the file has 'two\\n'"),
        ("@@ -1,2 +2,2 @@\n one\n-two\n+2\n", "hunk 1: its lines come at line 1 of what is made, it says 2"),
        ("@@ -9,0 +10 @@\n+ten\n", "hunk 1: its lines come at line 7 of what is made, it says 10"),
        ("@@ -6,2 +6,2 @@\n-six\n+6\n seven\n", r"hunk 1: line 7 must be 'seven\\n', the file ends before it"),
        ("@@ -6 +6 @@\n-six\n\\ No newline at end of file\n+6\n", r"line 6 must be 'six', the file has 'six\\n'"),
        ("@@ -2 +2 @@\n-two\n+2\n\\ No newline at end of file\n", "has no newline, which is not the last of the file"),
        (
            "@@ -1,2 +1,2 @@\n-one\n+1\n two\n@@ -2 +2 @@\n-two\n+2\n",
            "hunk 2: it begins at line 2, inside the hunk bef",
        ),
        ("@@ -3 +3 @@\n-three\n+3\n@@ -1 +1 @@\n-one\n+1\n", "hunk 2: it begins at line 1, inside the hunk before"),
        ("@@ -1,3 +1,2 @@\n-one\n two\n", "hunk 1: it has 2 and 1 lines, its head says 3 and 2"),
        ("@@ -1,2 +1,2 @@\n one\n\n-two\n+2\n", "hunk 1: '' begins with none of: a space, -, +"),
        ("@@ one +1 @@\n-one\n", "hunk 1: '@@ one .1 @@' is no head of a hunk"),
        ("", "has no hunk after its two first lines, so it changes nothing"),
        ("index 1..2\n@@ -1 +1 @@\n-one\n+1\n", "has no hunk after its two first lines"),
    ],
)
def test_what_does_not_fit_to_the_line_is_refused(hunks: str, said: str) -> None:
    """File, hunk, what was expected, what is there, and what to do; no fuzz, no offset."""
    with pytest.raises(InputError, match=said) as caught:
        apply_diff(HEAD + hunks, POEM, where="a.diff")
    assert "make the diff again with diff -U1" in str(caught.value)


@pytest.mark.parametrize(
    "diff", ["", "+++ mine\n", "---\n+++ mine\n", "--- poem\n", "--- poem\n@@ -1 +1 @@\n-one\n+1\n"]
)
def test_what_is_no_diff_is_refused(diff: str) -> None:
    """An empty file too: a diff that changes nothing is a mistake."""
    with pytest.raises(InputError, match=r"a\.diff: (is no unified diff|has no hunk)"):
        apply_diff(diff, POEM, where="a.diff")


WHOLE = """# Orders.
schema = 1
name = "orders"
command = [
  "{python}", # ours
  "main.py",
]

[env]
TOPIC = "{topics}" # any

[claim]
delivery = "at-least-once"
"""
VARIANT = """# Orders, quiet.
extends = "consumer.toml"
name = "orders-quiet"
members = 2
[env]
TOPIC = "{group}"
MORE = '''a
b'''
[evidence]
events = "none"
sink = "none"
"""
MERGED = """# Orders, quiet.
schema = 1
name = "orders-quiet"
command = [
  "{python}", # ours
  "main.py",
]
members = 2

[env]
TOPIC = "{group}"
MORE = '''a
b'''

[claim]
delivery = "at-least-once"

[evidence]
events = "none"
sink = "none"
"""


def variant(folder: Path, text: str = VARIANT, *, whole: str = WHOLE) -> Path:
    """Writes both files; returns the one that extends the other."""
    (folder / "consumer.toml").write_text(whole)
    file = folder / "quiet.toml"
    file.write_text(text)
    return file


def test_the_merged_file_has_the_text_of_both(tmp_path: Path) -> None:
    """Each key in its place, new ones after the others of their table, with their comments; the opening comment too."""
    assert merged_text(variant(tmp_path)) == MERGED


def test_a_variant_is_read_as_the_merged_file(tmp_path: Path) -> None:
    """Its working folder is its own; what it does not say is as in the file that it extends."""
    spec = spec_from_toml(variant(tmp_path))
    assert (spec.path, spec.name, spec.members) == (tmp_path / "quiet.toml", "orders-quiet", 2)
    assert (spec.command, dict(spec.env)) == (("{python}", "main.py"), {"TOPIC": "{group}", "MORE": "a\nb"})
    assert (spec.evidence.events, spec.claim.delivery) == ("none", "at-least-once")


def test_what_extends_nothing_is_read_as_it_is(tmp_path: Path) -> None:
    """To the byte."""
    variant(tmp_path)
    assert merged_text(tmp_path / "consumer.toml") == WHOLE


def test_another_folder_can_be_named(tmp_path: Path) -> None:
    """Relative to the file's own; without a comment of its own it keeps the other's."""
    (tmp_path / "mine").mkdir()
    file = variant(tmp_path).rename(tmp_path / "mine" / "consumer.toml")
    file.write_text('extends = "../consumer.toml"\nname = "mine"')
    assert merged_text(file) == WHOLE.replace('"orders"', '"mine"')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('extends = "consumer.tml"', r"quiet.toml: extends = 'consumer.tml': there is no file .*consumer.tml"),
        ('extends = "quiet.toml"', r"quiet.toml: extends = 'quiet.toml' is this file itself; name the one that"),
        ("extends = 1", r"extends = 1 must be a path relative to this file, as in \"consumer.toml\""),
        ('extends = "/etc/consumer.toml"', "must be a path relative to this file"),
        ('extends = "consumer.toml"\nname = ', r"quiet.toml: is not TOML"),
        ('extends = "consumer.toml"\nenv.TOPIC = "t"', r"cannot be merged key by key; write its keys under the same"),
    ],
)
def test_what_cannot_be_extended_is_refused(text: str, said: str, tmp_path: Path) -> None:
    """With what to write instead."""
    with pytest.raises(InputError, match=said):
        spec_from_toml(variant(tmp_path, text))


@pytest.mark.parametrize(
    ("whole", "said"),
    [
        ('extends = "quiet.toml"\n', r"consumer.toml extends a file itself \('quiet.toml'\); only one level is read"),
        ('extends = "third.toml"\n', r"consumer.toml extends a file itself \('third.toml'\); only one level is read"),
        ("schema = \n", r"consumer.toml: is not TOML"),
    ],
)
def test_only_a_whole_file_is_extended(whole: str, said: str, tmp_path: Path) -> None:
    """Neither in a circle, nor on; and one that is wrong is named."""
    with pytest.raises(InputError, match=said):
        spec_from_toml(variant(tmp_path, whole=whole))
