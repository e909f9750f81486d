"""`python -m lab.images [TEAM…]`: builds the images of a cluster and of four example teams that know no Kafka Trial.

A team is a program in `fixtures/images/`, with what it runs on: Python and confluent-kafka from this installation, Java
and Kafka's client from those of brokers, static Go programs. With COMMIT=before in their environment they are faulty.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_trial.cluster.images import JAVA_MODULES, UPGRADED_FROM, add_java, image_for_kafka, image_for_toxiproxy
from kafka_trial.cluster.jars import CHECKSUMS
from kafka_trial.cluster.java import find_java, java_identity
from kafka_trial.cluster.kafka_jars import kafka_jars
from kafka_trial.cluster.toxiproxy import find_go
from kafka_trial.cluster.user_cache import run_tool, tail
from kafka_trial.cluster.versions import DEFAULT_VERSION
from kafka_trial.containers.engine import connect
from kafka_trial.containers.image import Recipe, add_file, add_libraries, add_system, built, programs_in
from kafka_trial.errors import PASS, InputError, KafkaTrialError, StartError, unknown_name
from kafka_trial.registry import CHECKOUT
from kafka_trial.trial.console import Console

if TYPE_CHECKING:
    from docker import DockerClient

FOLDER = CHECKOUT / "fixtures" / "images"
OF_THE_CLIENT = ("kafka-clients-", "lz4-java-", "slf4j-api-", "snappy-java-", "zstd-jni-")
NEVER_IMPORTED = (
    *("__pycache__", "config-*", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages", "test", "tests"),
    *("tkinter", "turtledemo", "venv", "_tkinter*", "_test*", "*.a"),
)


def image_of_team(client: DockerClient, name: str) -> str:
    """Returns the image of an example team, built where it is missing; `name` is one of `TEAMS`.

    Raises:
        InputError: there is no such team.
        StartError: it cannot be built.
    """
    if name not in TEAMS:
        raise InputError("team image", unknown_name("image", name, TEAMS))
    fill, inputs = TEAMS[name]
    files = [file for file in sorted((FOLDER / name).iterdir()) if file.is_file()]
    recipe = Recipe(
        tag=f"kafka-trial/{name}:1",
        dockerfile=(FOLDER / name / "Dockerfile").read_text(),
        fill=partial(fill, FOLDER / name),
        inputs=(
            *(part for file in files for part in (file.name, file.read_bytes())),
            Path(__file__).read_bytes(),
            *inputs(),
        ),
    )
    return built(client, recipe)


def _fill_python(source: Path, root: Path) -> None:
    add_system(root, "orders")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    unused = shutil.ignore_patterns(*NEVER_IMPORTED)
    shutil.copytree(sysconfig.get_path("stdlib"), root / "usr/local/lib" / version, ignore=unused)
    program = Path(sys.executable).resolve()
    add_file(root, "usr/local/bin/python3", program, mode=0o755)
    for file in metadata.files("confluent-kafka") or ():
        if ".." not in file.parts and "__pycache__" not in file.parts:
            add_file(root, f"app/libraries/{file}", Path(str(file.locate())), mode=0o755)
    add_file(root, "app/main.py", source / "main.py")
    add_libraries(root, [program, *programs_in(root)])


def _python_inputs() -> tuple[str, ...]:
    return sys.version, metadata.version("confluent-kafka")


def _fill_java(source: Path, root: Path) -> None:
    add_system(root, "orders")
    jars = [jar for jar in kafka_jars(DEFAULT_VERSION) if jar.name.startswith(OF_THE_CLIENT)]
    for jar in jars:
        add_file(root, f"app/{jar.name}", jar)
    home = find_java().resolve().parent
    with tempfile.TemporaryDirectory() as folder:
        paths = ":".join(map(str, jars))
        _run("javac", home / "javac", "-d", folder, "-cp", paths, source / "Orders.java")
        _run("jar", home / "jar", "--create", "--file", root / "app" / "orders.jar", "-C", folder, ".")
    add_java(root)


def _java_inputs() -> tuple[str, ...]:
    checksums = (CHECKSUMS / f"{DEFAULT_VERSION}.sha256").read_text()
    return java_identity(find_java()), checksums, *JAVA_MODULES


def _fill_go(source: Path, root: Path) -> None:
    environment = ("CGO_ENABLED=0", "GOFLAGS=", "GOTOOLCHAIN=local")
    build = ("build", "-trimpath", "-mod=readonly", "-ldflags=-s -w", "-o", root / source.name, ".")
    _run("go build", "env", *environment, find_go(), *build, cwd=source)


def _go_inputs() -> tuple[str, ...]:
    return (subprocess.check_output([find_go(), "version"], text=True, timeout=60),)


TEAMS: dict[str, tuple[Callable[[Path, Path], None], Callable[[], tuple[str, ...]]]] = {
    "python-orders": (_fill_python, _python_inputs),
    "java-orders": (_fill_java, _java_inputs),
    "go-orders": (_fill_go, _go_inputs),
    "go-invoices": (_fill_go, _go_inputs),
}


def _run(name: str, *command: str | Path, cwd: Path | None = None) -> None:
    status, said = run_tool(name, command, cwd=cwd)
    if status != 0:
        raise StartError(f"{name} ended with {status} while an example image was built: {tail(said)}")


def _cluster_images(client: DockerClient) -> Iterator[str]:
    """Yields the images of a cluster, each built where it is missing: brokers of the versions that trials and upgrades
    begin with.
    """
    yield image_for_toxiproxy(client)
    for version in (DEFAULT_VERSION, UPGRADED_FROM):
        yield image_for_kafka(client, version)


def main(arguments: list[str]) -> int:
    """Builds what is missing, tells meanwhile what it does, and prints each image: those of the teams named, else all.

    A team's image that cannot be built is told, and the others are built.
    """
    status = PASS
    with Console(live=False):
        try:
            client = connect()
            for image in () if arguments else _cluster_images(client):
                print(image, flush=True)
        except KafkaTrialError as error:
            print(error, file=sys.stderr)
            return error.exit_status
        for name in arguments or TEAMS:
            try:
                print(image_of_team(client, name), flush=True)
            except KafkaTrialError as error:
                print(f"not built: {name}: {error}", file=sys.stderr)
                status = error.exit_status
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
