"""What run.json says of a trial: versions, seed, limits, and a digest of everything that was run."""

from __future__ import annotations

import hashlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from kafka_trial import __version__
from kafka_trial.cluster.toxiproxy import TOXIPROXY_VERSION
from kafka_trial.consumers.patched_consumer import PATCHES, render_patched_files
from kafka_trial.history.store import RUN_SCHEMA
from kafka_trial.registry import plugin_names

LIBRARIES = ("aiokafka", "confluent-kafka", "kafka-python", "numpy", "pyarrow", "pyspark")


def run_metadata(
    *,
    seed: int,
    kafka_version: str,
    consumer_file: Path,
    scenario_file: str | None = None,
    rebuilt_because: str | None = None,
) -> dict[str, Any]:
    """Returns the facts of run.json that stand before the trial begins; no environment values, no secrets.

    `scenario_file` says what runs this scenario again, where it has no registered name; relative to the run folder.
    `rebuilt_because`: the warm cluster of the trials before was not used again, for this reason.
    """
    return {
        "schema": RUN_SCHEMA,
        "kafka_trial": __version__,
        "seed": seed,
        "kafka": kafka_version,
        "toxiproxy": TOXIPROXY_VERSION,
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in LIBRARIES},
        "machine": {
            "system": platform.system(),
            "kernel": platform.release(),
            "cores": os.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
        },
        "consumer_file": str(consumer_file.absolute()),
        "consumer_digest": folder_digest(consumer_file.parent),
        "scenario_file": scenario_file,
        "cluster_rebuilt_because": rebuilt_because,
        **({"plugins": known} if (known := {name: plugin_digest(name) for name in plugin_names()}) else {}),
    }


def plugin_digest(name: str) -> str:
    """Returns a digest of what a plug-in's file holds; empty for an installed module."""
    file = Path(name)
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.is_absolute() else ""


def folder_digest(folder: Path) -> str:
    """Returns a digest of the files below a folder (names and contents), without those of a megabyte or more.

    Of a consumer that is stored as a patch it is that of the folder that a trial makes of it.

    Raises:
        InputError: the patch does not apply.
    """
    digest = hashlib.sha256()
    made = {folder / name: content for name, content in render_patched_files(folder).items()}
    for file in sorted({*folder.rglob("*"), *made}):
        if file in made:
            digest.update(file.name.encode() + b"\0" + made[file] + b"\0")
        elif _counts(file) and not (made and file.name in PATCHES):
            digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _counts(file: Path) -> bool:
    return file.is_file() and "__pycache__" not in file.parts and file.stat().st_size < 1_000_000


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
