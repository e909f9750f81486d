"""The supervisor: a small process that starts children for the harness and dies with them when the harness goes.

It stands between the harness and everything a run starts. The harness holds one end of a socket pair; when that end
closes, for whatever reason (kill -9 included), every process group started here is killed, and what the other arguments
name is taken away: folders, and what a command takes away (an argument that begins with [ is its argv, in JSON).
Children also get a parent-death signal, so that they go when the supervisor itself is killed; orphaned grandchildren
are adopted (`PR_SET_CHILD_SUBREAPER`) and killed too. One thread, standard library only: `prctl` follows threads.

Wire, one JSON datagram each way (SOCK_SEQPACKET): `{"spawn": n, "argv", "env", "cwd"}` with stdin, stdout and
stderr as passed descriptors → `{"spawned": n, "pid"}` or `{"failed": n, "error"}`; `{"signal": pid, "number",
"group"}`; and, unasked, `{"exited": pid, "status"}` (as of `os.waitstatus_to_exitcode`).
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
DATAGRAM_MAX = 1 << 20
TAKEN_AWAY_WITHIN_S = 60
LOOK_EVERY_MS = 1000
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Serves the harness on the descriptor named by the first argument, until its other end closes."""
    harness = socket.socket(fileno=int(sys.argv[1]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the harness heals, then closes us
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: dict[int, subprocess.Popen[bytes]] = {}
    try:
        with suppress(ConnectionResetError, BrokenPipeError):  # killed, and what it was told last lies unread
            _serve(harness, wake_read, children)
    finally:
        _kill_all(children)
        for belonging in sys.argv[2:]:
            _take_away(belonging)


def _take_away(belonging: str) -> None:
    if not belonging.startswith("["):
        shutil.rmtree(belonging, ignore_errors=True)
        return
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(json.loads(belonging), stdin=subprocess.DEVNULL, timeout=TAKEN_AWAY_WITHIN_S, check=False)


def _serve(harness: socket.socket, wake: int, children: dict[int, subprocess.Popen[bytes]]) -> None:
    poll = select.poll()  # `select` knows no descriptor above 1023, and a harness may have more
    for descriptor in (harness.fileno(), wake):
        poll.register(descriptor, select.POLLIN)
    while True:
        ready = [descriptor for descriptor, _ in poll.poll(LOOK_EVERY_MS)]
        if wake in ready:
            with suppress(BlockingIOError):
                os.read(wake, 4096)
        if harness.fileno() in ready:
            message, descriptors, _, _ = socket.recv_fds(harness, DATAGRAM_MAX, 3)
            if not message:
                return
            _obey(harness, json.loads(message), descriptors, children)
        for pid, status in _reaped(children):
            harness.send(json.dumps({"exited": pid, "status": status}).encode())


def _obey(
    harness: socket.socket, order: dict[str, object], fds: list[int], children: dict[int, subprocess.Popen[bytes]]
) -> None:
    if "spawn" in order:
        harness.send(json.dumps(_spawn(order, fds, children)).encode())
    elif "signal" in order:
        child = children.get(int(str(order["signal"])))
        if child is not None:  # not reaped yet, so the number cannot belong to anybody else
            send = os.killpg if order["group"] else os.kill
            with suppress(ProcessLookupError):
                send(child.pid, int(str(order["number"])))


def _spawn(order: dict, fds: list[int], children: dict[int, subprocess.Popen[bytes]]) -> dict[str, object]:  # type: ignore[type-arg]
    try:
        child = subprocess.Popen(
            order["argv"],
            stdin=fds[0],
            stdout=fds[1],
            stderr=fds[2],
            env=order["env"],
            cwd=order["cwd"],
            start_new_session=True,
            preexec_fn=_die_with_supervisor,  # noqa: PLW1509 - this process has one thread
        )
    except OSError as error:
        return {"failed": order["spawn"], "error": f"{order['argv'][0]}: {error.strerror}"}
    finally:
        for descriptor in fds:
            os.close(descriptor)
    children[child.pid] = child
    return {"spawned": order["spawn"], "pid": child.pid}


def _die_with_supervisor() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _reaped(children: dict[int, subprocess.Popen[bytes]]) -> list[tuple[int, int]]:
    gone: list[tuple[int, int]] = []
    while True:
        try:
            pid, raw = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return gone
        if pid == 0:
            return gone
        if children.pop(pid, None) is not None:
            gone.append((pid, os.waitstatus_to_exitcode(raw)))


def _kill_all(children: dict[int, subprocess.Popen[bytes]]) -> None:
    for pid in list(children):
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        for orphan in _direct_children():
            with suppress(ProcessLookupError):
                os.kill(orphan, signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
        except ChildProcessError:
            return


def _direct_children() -> list[int]:
    with suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as listing:
        return [int(pid) for pid in listing.read().split()]
    return []


if __name__ == "__main__":
    main()
