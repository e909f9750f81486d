"""The images that a cluster of containers is made of: Kafka and Toxiproxy, from what is here, without a registry."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from kafka_trial.cluster.jars import CHECKSUMS
from kafka_trial.cluster.java import find_java, java_identity, short_hash
from kafka_trial.cluster.kafka_jars import kafka_jars
from kafka_trial.cluster.toxiproxy import TOXIPROXY_VERSION, toxiproxy_server
from kafka_trial.cluster.user_cache import cache_folder, made_once, run_tool, tail
from kafka_trial.cluster.versions import KNOWN, find_version
from kafka_trial.containers.image import (
    Recipe,
    add_file,
    add_folder,
    add_libraries,
    add_shell,
    add_system,
    built,
    engine_has,
    programs_in,
)
from kafka_trial.errors import InputError, StartError

if TYPE_CHECKING:
    from docker import DockerClient

FILES = Path(__file__).parent / "kafka_image"
USER = "appuser"  # as in Apache Kafka's own image
OWNED = ("opt/kafka", "etc/kafka", "var/lib/kafka", "mnt/shared", f"home/{USER}")
# What Kafka's and log4j's classes refer to, and what JMX, SASL and TLS load at run time.
JAVA_MODULES = (
    *("java.base", "java.compiler", "java.desktop", "java.logging", "java.management", "java.management.rmi"),
    *("java.naming", "java.net.http", "java.rmi", "java.scripting", "java.security.jgss", "java.security.sasl"),
    *("java.sql", "java.xml", "jdk.crypto.ec", "jdk.jcmd", "jdk.localedata", "jdk.management", "jdk.management.agent"),
    *("jdk.net", "jdk.security.auth", "jdk.security.jgss", "jdk.unsupported", "jdk.zipfs"),
)
# Of java.desktop, which log4j needs for one class of beans.
NEVER_LOADED = (
    "libawt*",
    "libfontmanager*",
    "libfreetype*",
    "libjavajpeg*",
    "libjsound*",
    "liblcms*",
    "libmlib_image*",
)
TOXIPROXY_DOCKERFILE = """FROM scratch
ADD root.tar /
ENTRYPOINT ["/toxiproxy-server"]
"""
UPGRADED_FROM = "3.9.2"
NONE_GIVEN: Mapping[str, str] = MappingProxyType({})
NAMED = "KAFKA_TRIAL_KAFKA_IMAGE"  # the variable that names the brokers' image; `{version}` in it is the trial's


def image_for_kafka(client: DockerClient, version: str) -> str:
    """Returns an image of a Kafka version: the one that is named, else Apache's own where the engine has it, else ours,
    built where it is missing.

    Raises:
        InputError: the version is unknown, or a jar has not the committed checksum.
        StartError: it cannot be built.
    """
    if named := os.environ.get(NAMED):
        return named.replace("{version}", find_version(version))
    official = f"apache/kafka:{find_version(version)}"
    return official if engine_has(client, official) else built(client, kafka_recipe(version))


def images_for_kafka(
    client: DockerClient, versions: Sequence[str], given: Mapping[str, str] = NONE_GIVEN
) -> dict[str, str]:
    """Returns an image of each of several Kafka versions, by version: that of `given`, else as `image_for_kafka` does.

    Raises:
        InputError: as there; and one image is named for all versions, so that nothing would be upgraded.
        StartError: one cannot be built.
    """
    require_named_apart(versions)
    return {version: given.get(version) or image_for_kafka(client, version) for version in versions}


def require_named_apart(versions: Sequence[str]) -> None:
    """Makes sure that the image that is named, if any, is not the same for different versions.

    Raises:
        InputError: it is: brokers would stay what they are, and every stage would be a go.
    """
    named = os.environ.get(NAMED)
    if named and len({*versions}) > 1 and "{version}" not in named:
        both = " and ".join(dict.fromkeys(versions))
        raise InputError(NAMED, f"names one image, {named}, for Kafka {both}: write {{version}} where they differ")


def image_for_toxiproxy(client: DockerClient) -> str:
    """Returns an image of Toxiproxy with our toxic for cuts, built where it is missing.

    Raises:
        StartError: it cannot be built.
    """
    return built(client, toxiproxy_recipe())


def kafka_recipe(version: str) -> Recipe:
    """Returns how the image of a Kafka version is made: its jars, this machine's Java, busybox, and our scripts."""
    files = sorted(FILES.iterdir())
    return Recipe(
        tag=f"kafka-trial/kafka:{version}",
        dockerfile=(FILES / "Dockerfile").read_text(),
        fill=partial(_fill_kafka, version),
        inputs=(
            *(part for file in files for part in (file.name, file.read_bytes())),
            (CHECKSUMS / f"{version}.sha256").read_bytes(),
            java_identity(find_java()),
            Path(__file__).read_bytes(),
        ),
        owned=OWNED,
    )


def toxiproxy_recipe() -> Recipe:
    """Returns how Toxiproxy's image is made: nothing but the server, which needs nothing."""
    server = toxiproxy_server()
    digest = Recipe("", TOXIPROXY_DOCKERFILE, _fill_toxiproxy, (server.read_bytes(),)).digest
    tag = f"kafka-trial/toxiproxy:{TOXIPROXY_VERSION}-{digest}"
    return Recipe(tag, TOXIPROXY_DOCKERFILE, _fill_toxiproxy, (server.read_bytes(),))


def _fill_toxiproxy(root: Path) -> None:
    server = toxiproxy_server()
    add_file(root, "toxiproxy-server", server, mode=0o755)
    add_libraries(root, [server])  # one that was found, not built, may need some


def _fill_kafka(version: str, root: Path) -> None:
    for jar in kafka_jars(version):
        add_file(root, f"opt/kafka/libs/{jar.name}", jar)
    logging = (
        ("log4j2.yaml", "tools-log4j2.yaml")
        if KNOWN[version].log4j2
        else ("log4j.properties", "tools-log4j.properties")
    )
    for name in ("server.properties", *logging):
        add_file(root, f"etc/kafka/docker/{name}", FILES / name)
    for name in ("run", "train"):
        add_file(root, f"etc/kafka/docker/{name}", FILES / name, mode=0o755)
    for name in ("kafka-run-class.sh", "kafka-server-start.sh"):
        add_file(root, f"opt/kafka/bin/{name}", FILES / name, mode=0o755)
    for place in ("opt/kafka/config", "opt/kafka/logs", "etc/kafka/secrets", "var/lib/kafka/data", "mnt/shared/config"):
        add_folder(root, place)
    add_java(root)
    add_system(root, USER)
    add_shell(root)


def add_java(root: Path) -> None:
    """Adds this machine's Java as `/opt/java`, with the libraries it needs: linked anew where it can be, else whole.

    Raises:
        StartError: it cannot be linked.
    """
    home = find_java().resolve().parent.parent
    target = root / "opt" / "java"
    target.parent.mkdir(parents=True, exist_ok=True)
    if (home / "jmods").is_dir() and (home / "bin" / "jlink").exists():
        shutil.copytree(linked_java(home), target, symlinks=True)
    else:
        unused = shutil.ignore_patterns("jmods", "src.zip", "*.debuginfo", "demo", "man", "include", *NEVER_LOADED)
        shutil.copytree(home, target, ignore=unused, ignore_dangling_symlinks=True)
        _add_base_archive(target)
    add_libraries(root, programs_in(target))


def linked_java(home: Path) -> Path:
    """Returns a Java of the modules that images need, linked once from a JDK.

    Raises:
        StartError: it cannot be linked.
    """
    key = short_hash(java_identity(home / "bin" / "java"), *JAVA_MODULES, *NEVER_LOADED)
    with made_once(cache_folder() / "java-for-images" / key, f"java-for-images-{key}") as temporary:
        if temporary is not None:
            _link_java(home, temporary)
    return cache_folder() / "java-for-images" / key


def _link_java(home: Path, target: Path) -> None:
    command: list[str | Path] = [home / "bin" / "jlink", "--add-modules", ",".join(JAVA_MODULES), "--output", target]
    command += ["--strip-java-debug-attributes", "--no-man-pages", "--no-header-files"]
    status, said = run_tool("jlink", command, what="linking a Java for images", about="once: half a minute")
    if status != 0:
        raise StartError(f"{home} could not be linked for an image: {tail(said)}. Set JAVA_HOME to another Java.")
    _add_base_archive(target)
    for pattern in NEVER_LOADED:
        for library in (target / "lib").glob(pattern):
            library.unlink()


def _add_base_archive(java: Path) -> None:
    """Adds the archive of Java's own classes, on which that of Kafka's stands, where a Java brings none."""
    if not (java / "lib" / "server" / "classes.jsa").exists():
        status, said = run_tool(
            "java", [java / "bin" / "java", "-Xshare:dump"], what="writing the class-data archive of Java itself"
        )
        if status != 0:
            raise StartError(f"{java} could not write its base class-data archive: {tail(said)}")
