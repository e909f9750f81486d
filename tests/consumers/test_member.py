"""What a member that ended by itself said last."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_trial.consumers.member import exited, is_ready, last_words
from kafka_trial.consumers.spec import Ready


def member(file: Path) -> Any:
    return SimpleNamespace(name="m0", incarnation=0, exit_code=1, stderr_file=file, oom_killed=False)


def test_the_last_words_are_quoted(tmp_path: Path) -> None:
    """The last three lines of stderr, and where the rest is."""
    file = tmp_path / "m0-0.stderr"
    file.write_text("Traceback\n  one\n  two\n\nModuleNotFoundError: No module named 'orders'\n")
    assert exited(member(file)).message == (
        "with status 1; its last words in logs/m0-0.stderr: one / two / ModuleNotFoundError: No module named 'orders'"
    )


NODE = """node:events:497
      throw er; // Unhandled 'error' event
      ^

TimeoutError: Request timed out
    at new TimeoutError (file:///app/kafka/errors.js:12:3)
    at #onRequestTimeout (file:///app/kafka/connection.js:322:26)
    at process.processTimers (node:internal/timers:521:7)
Emitted 'error' event on Consumer instance at:
    at Consumer.emitWithDebug (file:///app/kafka/base.js:101:25) {
  code: 'PLT_KFK_NETWORK',
  canRetry: false
}

Node.js v22.23.3
"""
GO = """panic: no such order

goroutine 1 [running]:
main.main()
\t/orders/main.go:12 +0x1d
exit status 2
"""
JAVA = """Exception in thread "main" java.lang.IllegalStateException: giving up
\tat Orders.main(Orders.java:30)
Caused by: java.net.ConnectException: Connection refused
\tat java.base/sun.nio.ch.Net.connect0(Native Method)
\tat java.base/sun.nio.ch.Net.connect(Net.java:589)
\t... 8 more
"""
AGAIN = """2026/11/26 12:39:15 starting
2026/11/26 12:39:15 not written: pq: SSL is not enabled on the server
2026/11/26 12:39:16 not written: pq: SSL is not enabled on the server
2026/11/26 12:39:17 not written: pq: SSL is not enabled on the server
"""


@pytest.mark.parametrize(
    ("wrote", "quoted"),
    [
        (NODE, "TimeoutError: Request timed out / … / code: 'PLT_KFK_NETWORK', / canRetry: false / Node.js v22.23.3"),
        (GO, "panic: no such order / … / main.main() / /orders/main.go:12 +0x1d / exit status 2"),
        (
            JAVA,
            "Caused by: java.net.ConnectException: Connection refused / … / at java.base/sun.nio.ch.Net.connect0"
            "(Native Method) / at java.base/sun.nio.ch.Net.connect(Net.java:589) / ... 8 more",
        ),
        (AGAIN, "2026/11/26 12:39:15 starting / 2026/11/26 12:39:17 not written: pq: SSL is not enabled on the server"),
    ],
)
def test_what_names_the_error_is_among_them(tmp_path: Path, wrote: str, quoted: str) -> None:
    """Above a stack, of which the last lines say nothing; what is logged again and again stands there once."""
    file = tmp_path / "m0-0.stderr"
    file.write_text(wrote)
    assert last_words(member(file)) == f"its last words in logs/m0-0.stderr: {quoted}"


def test_of_a_long_log_whole_lines_are_quoted(tmp_path: Path) -> None:
    """Only its end is read, which begins in the middle of a line; of one endless line that end is quoted."""
    file = tmp_path / "m0-0.stderr"
    file.write_text("not written: no such table\n" * 1000)
    assert last_words(member(file)) == "its last words in logs/m0-0.stderr: not written: no such table"
    file.write_text("x" * 10_000 + "end")
    assert last_words(member(file)) == f"its last words in logs/m0-0.stderr: {'x' * 297}end"


def test_one_that_writes_to_stdout_alone_is_quoted_from_there(tmp_path: Path) -> None:
    """As many loggers do; stderr goes first, where it has a word."""
    (tmp_path / "m0-0.stdout").write_text("ERROR no such table: invoices\n")
    file = tmp_path / "m0-0.stderr"
    assert last_words(member(file)) == "its last words in logs/m0-0.stdout: ERROR no such table: invoices"
    file.write_text("Killed\n")
    assert last_words(member(file)) == "its last words in logs/m0-0.stderr: Killed"


def test_one_that_said_nothing(tmp_path: Path) -> None:
    """Neither a file nor a word is needed."""
    assert exited(member(tmp_path / "m0-0.stderr")).message.endswith("it wrote nothing to logs/m0-0.stderr")


@pytest.mark.parametrize(
    ("by_hand", "assigned", "spoke", "ready"),
    [(False, True, True, True), (False, False, True, False), (True, False, True, True), (True, False, False, False)],
)
def test_who_assigns_itself_is_ready_by_any_word(by_hand: bool, assigned: bool, spoke: bool, ready: bool) -> None:
    """It has no callback that could say that it was assigned; members of a group have."""
    one: Any = SimpleNamespace(alive=True, log_match=None, assigned=assigned, spoke=spoke)
    assert is_ready(one, Ready(), url="", by_hand=by_hand) is ready
