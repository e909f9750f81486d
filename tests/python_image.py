"""An image with Python in it, made without a registry: what `ci/Dockerfile` is built from in a test."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from pathlib import Path

from docker import DockerClient

from kafka_trial.containers.image import Recipe, add_file, add_libraries, add_shell, add_system, built, programs_in

DOCKERFILE = """FROM scratch
ADD root.tar /
ENV PATH=/usr/local/bin:/usr/bin:/bin
"""
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PIP_CONF = Path("/etc/pip.conf")
UNUSED = ("__pycache__", "config-*", "idlelib", "lib2to3", "site-packages", "test", "tests", "tkinter", "turtledemo")
# What wheels load and expect of any Linux with glibc (PEP 600), beside what Python itself needs.
OF_ANY_LINUX = ("libstdc++.so.6", "libgcc_s.so.1", "librt.so.1", "libpthread.so.0", "libdl.so.2", "libutil.so.1")


def python_image(engine: DockerClient) -> str:
    """Returns an image of this machine's Python with a shell: what the installation needs of `python:3.11-slim`."""
    inputs = (sys.version, sys.base_prefix, Path(__file__).read_bytes())
    return built(engine, Recipe("kafka-trial/python-of-tests:1", DOCKERFILE, _fill, inputs))


def _fill(root: Path) -> None:
    add_system(root, "somebody")
    add_shell(root)
    bash, python = Path(str(shutil.which("bash"))), Path(sys.executable).resolve()
    (root / "bin" / "bash").unlink(missing_ok=True)
    add_file(root, "bin/bash", bash.resolve(), mode=0o755)
    (root / "usr" / "bin").mkdir(parents=True)
    (root / "usr" / "bin" / "env").symlink_to("/bin/busybox")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    prefix = Path(sys.base_prefix).relative_to("/")
    shutil.copytree(
        sysconfig.get_path("stdlib"), root / prefix / "lib" / version, ignore=shutil.ignore_patterns(*UNUSED)
    )
    add_file(root, f"{prefix}/bin/python3", python, mode=0o755)
    (root / "usr" / "local" / "bin").mkdir(parents=True)
    (root / "usr" / "local" / "bin" / "python3").symlink_to(f"/{prefix}/bin/python3")
    add_file(root, str(CERTIFICATES).lstrip("/"), CERTIFICATES.resolve())
    if PIP_CONF.exists():
        add_file(root, str(PIP_CONF).lstrip("/"), PIP_CONF)
    add_libraries(root, [bash, python, *programs_in(root)])
    for name in OF_ANY_LINUX:
        for place in Path("/lib").glob(f"*-linux-gnu/{name}"):
            add_file(root, str(place).lstrip("/"), place.resolve(), mode=0o755)
