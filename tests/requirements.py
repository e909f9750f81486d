"""What tests need of the machine: where a tool is missing a test is skipped and says why; a plugin of pytest.

Where the environment variable KAFKA_TRIAL_REQUIRE names the tool (`chromium,docker`), the test fails instead.

python tests/requirements.py
    prints the tools that must be there on this machine, joined by commas: what `.ci/run` requires; and why not others
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

REQUIRE = "KAFKA_TRIAL_REQUIRE"
TOOLS = {
    "allure": "Allure, by npm",
    "axe": "axe-core, by npm",
    "cargo": "Rust",
    "chromium": "a Chromium",
    "curl": "curl",
    "docker": "a container engine that answers, or that can be started",
    "dockerd": "a container engine that can be started",
    "go": "Go",
    "javac": "a JDK with the Java that trials find",
    "mvn": "Maven",
    "npm": "npm",
    "openssl": "openssl",
    "postgres": "PostgreSQL's server",
}
INSTALLED = ("chromium", "postgres", "docker", "dockerd")  # by `make services`, where apt-get may
CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}  # bits, by capabilities(7): what an engine needs of root


def missing(tool: str, reason: str) -> NoReturn:
    """Skips the test because a tool is missing, or fails it where the environment requires that tool."""
    assert tool in TOOLS, f"{tool} is none of {', '.join(TOOLS)}"
    if tool in required():
        pytest.fail(f"{reason} ({REQUIRE} names {tool})", pytrace=False)
    pytest.skip(reason)


def required() -> set[str]:
    """Returns the tools that the environment requires."""
    return {name.strip() for name in os.environ.get(REQUIRE, "").split(",")} - {""}


def pytest_configure() -> None:
    """Refuses a tool that no test asks for: it would be required in vain."""
    if unknown := sorted(required() - TOOLS.keys()):
        known = ", ".join(f"{name} ({what})" for name, what in TOOLS.items())
        raise pytest.UsageError(f"{REQUIRE} names {', '.join(unknown)}, which no test needs; there are {known}")


def to_be_required(*, installs: bool, found: Callable[[str], str | None]) -> Iterator[tuple[str, str | None]]:
    """Yields each tool of `INSTALLED`, and why it need not be there; None where it must.

    `installs`: this user may install and run all of them, so that what is missing is a fault. Others must have what
    there is: `found` returns why a tool is not to be had, or None.
    """
    for tool in INSTALLED:
        yield tool, None if installs else found(tool)


def may_install() -> bool:
    """Tells whether `make services` may install everything, and an engine may run: root, with root's capabilities."""
    status = Path("/proc/self/status").read_text()
    effective = int(re.findall(r"^CapEff:\s+(\w+)$", status, re.MULTILINE)[0], 16)
    can = all(effective >> bit & 1 for bit in CAPABILITIES.values())
    return os.geteuid() == 0 and can and shutil.which("apt-get") is not None


def why_not(tool: str) -> str | None:
    """Returns why a tool of `INSTALLED` is not to be had here; None where it is."""
    from browser import NAMES
    from kafka_trial.cluster.postgres import find_postgres
    from kafka_trial.containers.engine import connect
    from kafka_trial.containers.private_engine import private_engine
    from kafka_trial.errors import StartError

    if tool == "chromium":
        return None if any(map(shutil.which, NAMES)) else f"none of {', '.join(NAMES)} is on PATH"
    try:
        if tool == "postgres":
            find_postgres()
        elif tool == "docker":
            connect().close()
        else:
            with private_engine():
                pass
    except StartError as error:
        can_be_started = tool == "docker" and why_not("dockerd") is None
        return None if can_be_started else str(error)
    return None


def main() -> int:
    """Prints what must be there; on stderr, what need not."""
    tools = dict(to_be_required(installs=may_install(), found=why_not))
    for tool, why in tools.items():
        if why is not None:
            print(f"not required: {tool}: {why}", file=sys.stderr)
    print(",".join(tool for tool, why in tools.items() if why is None))
    return 0


if __name__ == "__main__":
    sys.exit(main())
