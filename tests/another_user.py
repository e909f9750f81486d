"""Programs of another user than root, who is nobody but for the group that may use the engine's socket.

They run in a mount namespace of their own: there what they need of root's home is at its place (a Python, this
checkout), and nothing else of it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka_trial.cluster.spark_java import spark_class_data_archive
from kafka_trial.cluster.toxiproxy import toxiproxy_server
from kafka_trial.registry import CHECKOUT
from requirements import missing

NAME = "nobody"
# Arguments: the user's folder, the engine's socket, uid, gid, how many folders are closed to others; those; what is to
# be seen below them; --, the command.
LEND = """
own=$1 socket=$2 uid=$3 gid=$4 closed=$5
shift 5
touch "$own/docker.sock"
mount --bind "$socket" "$own/docker.sock"
hide=
while [ "$closed" -gt 0 ]; do hide="$hide $1"; closed=$((closed - 1)); shift; done
kept=0
for place in "$@"; do
  [ "$place" = -- ] && break
  mkdir -p "$own/lent/$kept"
  mount --bind "$place" "$own/lent/$kept"
  kept=$((kept + 1))
done
for place in $hide; do mount -t tmpfs -o mode=755 tmpfs "$place"; done
kept=0
while [ "$1" != -- ]; do
  mkdir -p "$1"
  mount --move "$own/lent/$kept" "$1"
  kept=$((kept + 1))
  shift
done
shift
cd "$own"
exec setpriv --reuid "$uid" --regid "$uid" --groups "$gid" --inh-caps=-all -- "$@"
"""


@dataclass(frozen=True)
class AnotherUser:
    """One with a folder that is its own, and what it needs of the environment."""

    folder: Path
    socket: Path
    env: dict[str, str]

    def command(self, *command: str | Path) -> Sequence[str | Path]:
        """Returns what root runs so that the user runs `command`; the process stays the same."""
        user = pwd.getpwnam(NAME)
        needed = list(dict.fromkeys([Path(sys.base_prefix), Path(sys.prefix), CHECKOUT]))
        closed = {place: found for place in needed if (found := _closed_above(place)) is not None}
        mounts = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", LEND, "sh"]
        whose = [str(user.pw_uid), str(self.socket.stat().st_gid)]
        hidden = sorted(set(closed.values()))
        return [*mounts, self.folder, self.socket, *whose, str(len(hidden)), *hidden, *closed, "--", *command]


def _closed_above(place: Path) -> Path | None:
    """Returns the first folder above a place that is closed to others; None where they can get there."""
    return next((folder for folder in reversed(place.parents) if not folder.stat().st_mode & 0o001), None)


@contextmanager
def another_user(engine_host: str) -> Iterator[AnotherUser]:
    """Lends one to a test, with Toxiproxy and Spark's archive, which take long to make; skips where this user cannot
    start programs of others."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        missing("dockerd", "only root, with util-linux' setpriv, can start programs of another user")
    if not engine_host.startswith("unix://"):
        missing("dockerd", f"the engine at {engine_host} has no socket that a group could use")
    folder = Path(tempfile.mkdtemp(prefix="kafka-trial-nobody-"))
    try:
        folder.chmod(0o755)
        for name in ("home", "cache", "tmp", "out"):
            (folder / name).mkdir()
            shutil.chown(folder / name, NAME)
        shutil.copy(toxiproxy_server(), folder / "toxiproxy-server")
        if (archive := spark_class_data_archive()) is not None:
            (folder / "cache" / "archive").mkdir()
            shutil.chown(folder / "cache" / "archive", NAME)
            shutil.copy(archive, folder / "cache" / "archive")
        yield AnotherUser(folder, Path(engine_host.removeprefix("unix://")), _environment(folder))
    finally:
        shutil.rmtree(folder)


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "KAFKA_TRIAL_CACHE": str(folder / "cache"),
        "KAFKA_TRIAL_TOXIPROXY": str(folder / "toxiproxy-server"),
        "DOCKER_HOST": f"unix://{folder / 'docker.sock'}",
        **{name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ},
    }
