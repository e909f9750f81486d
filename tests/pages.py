"""The commands that the pages show: those in blocks, and those in the text; and the files that a page has for them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kafka_trial.registry import CHECKOUT

README = CHECKOUT / "README.md"
CASES = sorted((CHECKOUT / "docs" / "cases").glob("*.md"))
PAGES = [README, CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").glob("*.md")), *CASES]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# What stands for words that a page has said before: of the verb's first whole command.
WHOLE = {
    "audit": "--bootstrap broker1:9092 --topic orders --group billing --from 12h --until now",
    "run": "member-killed --consumer consumer.toml",
}


@dataclass(frozen=True)
class Command:
    """One command of a page, and the folder of the checkout that its block goes to first."""

    text: str
    page: Path
    folder: Path | None = None

    def words(self) -> Iterator[list[str]]:
        """Yields its words, whatever the page leaves out filled in: once for each of `suites|faults`."""
        words = shlex.split(self.text)
        if "…" in words:
            at = words.index("…")
            words[at : at + 1] = shlex.split(WHOLE[words[1]])
        words = [word.removesuffix("…") for word in words]
        (choices,) = [word.split("|") for word in words if "|" in word] or [[""]]
        for choice in choices:
            yield [choice if "|" in word else word for word in words]


def block_commands(pages: list[Path] = PAGES) -> Iterator[Command]:
    """Yields every command that stands behind a prompt in a console block, or begins a line of a block."""
    for page in pages:
        for language, text in BLOCK.findall(page.read_text()):
            folder = None
            for line in re.sub(r"\s*\\\n\s*", " ", text).splitlines() if language in ("", "console", "sh") else ():
                if line.startswith("$ cd "):
                    folder = CHECKOUT / line.removeprefix("$ cd ").strip()
                elif line.startswith("$ ") or re.match(r"kafka-trial |make |pytest ", line):
                    words = line.removeprefix("$ ").partition("   ")[0].strip()
                    yield Command(re.sub(r"\s+#.*", "", words), page, folder)


def text_commands(pages: list[Path] = PAGES) -> Iterator[Command]:
    """Yields every command of ours in the text of a page that is more than a verb by its name."""
    for page in pages:
        for text in re.findall(r"`(kafka-trial\s[a-z]+\s[^`]+)`", BLOCK.sub("", page.read_text())):
            yield Command(" ".join(text.split()), page)


def files_of(page: Path) -> set[str]:
    """Returns the names of the files that a page prints whole (their first line is `# NAME`)."""
    return set(re.findall(r"^```\w+\n# (\S+\.\w+)", page.read_text(), re.MULTILINE))


def folders_of(page: Path) -> set[str]:
    """Returns the folders that the commands of a page make, by `--out` or by themselves."""
    outs = {
        words[words.index("--out") + 1]
        for command in block_commands([page])
        for words in command.words()
        if "--out" in words
    }
    return {"trial-runs", *outs}
