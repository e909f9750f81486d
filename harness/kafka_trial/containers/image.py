"""Images without a registry: a folder that becomes the root of a file system, and what makes it one.

What an image is built from follows from its inputs; their digest is its label, and while that is the same nothing is
built again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kafka_trial.cluster.user_cache import cache_folder, locked, made_once, megabytes, run_tool, tail
from kafka_trial.errors import StartError
from kafka_trial.process.steps import step

if TYPE_CHECKING:
    from docker import DockerClient

LABEL = "kafka-trial.inputs"
USER_ID = 1000  # also the group's
DOCKERFILE, ROOT = "Dockerfile", "root.tar"
APT = ("apt-get", "download", "busybox-static")
GATHERED = "once: half a minute to three, from what is on this machine"


@dataclass(frozen=True)
class Recipe:
    """How one image is made: its tag, the Dockerfile that adds `root.tar`, and what fills that.

    `inputs` name or contain all that it depends on; `owned` are the places below the root that belong to `USER_ID`.
    """

    tag: str
    dockerfile: str
    fill: Callable[[Path], None]
    inputs: tuple[str | bytes, ...]
    owned: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits: other inputs, or another way to put them together, make others."""
        digest = hashlib.sha256(Path(__file__).read_bytes())
        for part in (self.dockerfile, *self.owned, *self.inputs):
            content = part if isinstance(part, bytes) else part.encode()
            digest.update(b"%d\n%s" % (len(content), content))
        return digest.hexdigest()[:12]


def built(client: DockerClient, recipe: Recipe) -> str:
    """Returns the tag of an image, built unless the engine has it from the same inputs.

    Raises:
        StartError: something that it needs is missing, or the build failed; with its last lines.
    """
    with locked(f"image-{re.sub('[^a-z0-9.]+', '-', recipe.tag)}"):
        label = _label(client, recipe.tag)
        if label != recipe.digest:
            before = client.images.get(recipe.tag).id if label is not None else None
            _build(client, recipe)
            if before:
                _remove(client, before)
    return recipe.tag


def engine_has(client: DockerClient, tag: str) -> bool:
    """Tells whether the engine has an image."""
    return _label(client, tag) is not None


def _label(client: DockerClient, tag: str) -> str | None:
    """Returns the digest an image was built from; empty where another built it, None where there is none."""
    from docker.errors import ImageNotFound

    try:
        return str(client.images.get(tag).labels.get(LABEL, ""))
    except ImageNotFound:
        return None


def _remove(client: DockerClient, image: str) -> None:
    """Removes an image that has lost its tag to a newer one, unless a container still needs it."""
    from docker.errors import APIError

    with contextlib.suppress(APIError):
        client.images.remove(image)


def _build(client: DockerClient, recipe: Recipe) -> None:
    from docker.errors import APIError, BuildError

    with (
        tempfile.TemporaryDirectory(prefix="kafka-trial-image-") as temporary,
        tempfile.TemporaryFile() as context,
        ExitStack() as stack,
    ):
        root = Path(temporary) / "root"
        root.mkdir(mode=0o755)
        with step(f"gathering the files of the image {recipe.tag}", about=GATHERED, done=lambda: _gathered(root)):
            recipe.fill(root)
        with step(f"packing the image {recipe.tag}", about=_gathered(root), done=lambda: _written(temporary)):
            _write_context(context, recipe, root, Path(temporary))
        try:
            stack.enter_context(step(f"giving the image {recipe.tag} to the engine", about=_gathered(root)))
            client.images.build(
                fileobj=context,
                custom_context=True,
                tag=recipe.tag,
                labels={LABEL: recipe.digest},
                network_mode="none",
                rm=True,
                forcerm=True,
            )
        except BuildError as error:
            said = tail("\n".join(str(line.get("stream") or line.get("error") or "") for line in error.build_log))
            raise StartError(f"the image {recipe.tag} could not be built: {error.msg}: {said}") from error
        except APIError as error:
            raise StartError(f"the image {recipe.tag} could not be built: {error.explanation}") from error


def _gathered(root: Path) -> str:
    return f"{megabytes(place for place in root.rglob('*') if not place.is_symlink())} MB"


def _written(folder: str) -> str:
    return f"{megabytes([Path(folder) / ROOT])} MB written"


def _write_context(context: IO[bytes], recipe: Recipe, root: Path, temporary: Path) -> None:
    def owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        inside = entry.name.removeprefix("./")
        whose = USER_ID if any(inside == place or inside.startswith(f"{place}/") for place in recipe.owned) else 0
        entry.uid, entry.gid, entry.uname, entry.gname = whose, whose, "", ""
        return entry

    with tarfile.open(temporary / ROOT, "w") as content:
        content.add(root, ".", filter=owner)
    (temporary / DOCKERFILE).write_text(recipe.dockerfile)
    with tarfile.open(fileobj=context, mode="w") as both:
        for name in (DOCKERFILE, ROOT):
            both.add(temporary / name, name)
    context.seek(0)


def add_file(root: Path, place: str, content: str | Path, *, mode: int = 0o644) -> None:
    """Writes a text, or copies a file, to `place` below the root."""
    target = root / place
    target.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, Path):
        shutil.copyfile(content, target)
    else:
        target.write_text(content)
    target.chmod(mode)


def add_folder(root: Path, place: str, *, mode: int = 0o755) -> None:
    """Makes an empty folder."""
    (root / place).mkdir(parents=True, exist_ok=True)
    (root / place).chmod(mode)


def add_system(root: Path, user: str) -> None:
    """Adds what programs expect of any system: `/tmp`, a root, an unprivileged user, and how names are resolved."""
    add_folder(root, "tmp", mode=0o1777)
    add_folder(root, f"home/{user}")
    home = f"/home/{user}:/bin/sh"
    add_file(root, "etc/passwd", f"root:x:0:0:root:/root:/bin/sh\n{user}:x:{USER_ID}:{USER_ID}:{user}:{home}\n")
    add_file(root, "etc/group", f"root:x:0:\n{user}:x:{USER_ID}:\n")
    add_file(root, "etc/nsswitch.conf", "hosts: files dns\n")


def add_shell(root: Path) -> None:
    """Adds busybox with all its commands, each as a link in `/bin`."""
    add_file(root, "bin/busybox", busybox(), mode=0o755)
    for command in subprocess.check_output([busybox(), "--list"], text=True, timeout=60).split():
        if command != "busybox":
            (root / "bin" / command).symlink_to("busybox")


def busybox() -> Path:
    """Returns a busybox that needs no libraries: the one on PATH, else that of Debian's package, fetched once.

    Raises:
        StartError: there is none and it cannot be fetched.
    """
    on_path = shutil.which("busybox")
    if on_path and not list(libraries([Path(on_path)])):
        return Path(on_path).resolve()
    place = cache_folder() / "busybox" / "busybox"
    with made_once(place, "busybox") as temporary:
        if temporary is not None:
            _fetch_busybox(temporary)
    return place


def _fetch_busybox(place: Path) -> None:
    remedy = "`apt-get update && apt-get install busybox-static`, or put a static busybox on PATH"
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise StartError(f"no static busybox for images, and no apt-get to fetch Debian's busybox-static: {remedy}")
    with tempfile.TemporaryDirectory(prefix="kafka-trial-busybox-") as folder:
        if os.geteuid() == 0:  # apt would give the download to a user of its own, who may not write there
            Path(folder).chmod(0o777)
        status, said = run_tool("apt-get", APT, cwd=Path(folder), what="fetching Debian's busybox-static")
        packages = list(Path(folder).glob("busybox-static_*.deb"))
        if status == 0 and packages:
            status, said = run_tool("dpkg-deb", ["dpkg-deb", "--extract", packages[0], Path(folder) / "content"])
        unpacked = [Path(folder) / "content" / place / "busybox" for place in ("bin", "usr/bin")]
        there = [program for program in unpacked if program.exists()]
        if status != 0 or not there:
            raise StartError(f"Debian's busybox-static could not be fetched: {tail(said)}. {remedy}")
        shutil.copy(there[0], place)


def add_libraries(root: Path, programs: Iterable[Path]) -> None:
    """Adds the libraries that programs need, at their places on this machine; those below the root are there."""
    for library in libraries(programs):
        if root not in library.parents:
            add_file(root, str(library).lstrip("/"), library.resolve(), mode=0o755)


def libraries(programs: Iterable[Path]) -> list[Path]:
    """Returns the libraries that `ldd` names for programs and libraries, sorted; none for a static one."""
    named: set[Path] = set()
    for program in programs:
        done = subprocess.run(["ldd", program], capture_output=True, text=True, timeout=60)
        named |= {Path(place) for place in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", done.stdout, re.MULTILINE)}
    return sorted(named)


def programs_in(folder: Path) -> list[Path]:
    """Returns every program and library (ELF) in a folder, sorted."""
    return sorted(place for place in folder.rglob("*") if place.is_file() and not place.is_symlink() and _is_elf(place))


def _is_elf(place: Path) -> bool:
    with place.open("rb") as content:
        return content.read(4) == b"\x7fELF"
