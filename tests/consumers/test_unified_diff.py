"""Unified diffs apply exactly or not at all, and say what is wrong."""

from __future__ import annotations

import pytest

from kafka_trial.consumers.unified_diff import apply_diff
from kafka_trial.errors import InputError

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
    assert "make the diff again with diff -u" in str(caught.value)


@pytest.mark.parametrize(
    "diff", ["", "+++ mine\n", "---\n+++ mine\n", "--- poem\n", "--- poem\n@@ -1 +1 @@\n-one\n+1\n"]
)
def test_what_is_no_diff_is_refused(diff: str) -> None:
    """An empty file too: a diff that changes nothing is a mistake."""
    with pytest.raises(InputError, match=r"a\.diff: (is no unified diff|has no hunk)"):
        apply_diff(diff, POEM, where="a.diff")
