"""Pages in headless Chromium: its DevTools protocol over a pipe, so that a test needs no library and no port.

Messages are JSON, each ended by a zero byte; the commands are those of the protocol's stable domains (Page, Runtime,
Input, Emulation). Where Chromium cannot be had the test is skipped and says why, or fails
(`requirements.py`).
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import npm
from requirements import missing

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = (
    *("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--mute-audio"),
)
ANSWER_WITHIN_S = 30.0
AXE = Path(__file__).parent / "report" / "axe"


def axe_source() -> str:
    """Returns the script of axe-core, which npm fetches once as its lock file says."""
    return (npm.modules(AXE, tool="axe") / "axe-core" / "axe.min.js").read_text()


class Tab:
    """One page of a browser."""

    def __init__(self, asks: int, answers: int) -> None:
        self._asks, self._answers = asks, answers
        self._number, self._rest = 0, b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def open(self, path: Path, *, width: int = 1280, height: int = 900) -> None:
        """Shows a file in a window of some size, once it has been loaded and drawn."""
        self.events.clear()
        self.resize(width, height)
        self.ask("Page.navigate", url=path.absolute().as_uri())
        ends = time.monotonic() + ANSWER_WITHIN_S
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._take(ends)

    def resize(self, width: int, height: int = 900) -> None:
        """Makes the window another size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)

    def media(self, **features: str) -> None:
        """Sets what the page is told of its user: `prefers_color_scheme="dark"`."""
        told = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.ask("Emulation.setEmulatedMedia", features=told)

    def js(self, text: str) -> Any:
        """Returns what an expression gives, awaited; the page's own policy does not hold for it."""
        found = self.ask("Runtime.evaluate", expression=text, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, *keys: str) -> None:
        """Presses keys one after the other, as a keyboard would."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}
        for key in keys:
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            code = codes.get(key, ord(key[0].upper()))
            about = {"key": key, "windowsVirtualKeyCode": code, **({"text": text} if text else {})}
            self.ask("Input.dispatchKeyEvent", type="keyDown", **about)
            self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def mouse(self, kind: str, x: float, y: float) -> None:
        """Moves the mouse (`Moved`), or presses or releases its button there (`Pressed`, `Released`)."""
        button = {"button": "left", "clickCount": 1} if kind != "Moved" else {"buttons": 1}
        self.ask("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **button)

    def picture(self, file: Path) -> None:
        """Writes what is seen as a PNG file."""
        shot = self.ask("Page.captureScreenshot")
        file.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Returns what the browser logged, what was thrown, and what was loaded beside the page."""
        told = [event["params"]["entry"]["text"] for event in self.events if event["method"] == "Log.entryAdded"]
        thrown = [str(event["params"]) for event in self.events if event["method"] == "Runtime.exceptionThrown"]
        asked = [event["params"]["request"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [*told, *thrown, *(one["url"] for one in asked[1:])]

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Returns the answer to one command of the protocol."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": params}
        command |= {"sessionId": self._session} if self._session else {}
        told = memoryview(json.dumps(command).encode() + b"\0")
        while told:  # a pipe takes so much at once
            told = told[os.write(self._asks, told) :]
        ends = time.monotonic() + ANSWER_WITHIN_S
        while (answer := self._take(ends)).get("id") != self._number:
            pass
        assert "error" not in answer, (method, answer["error"])
        return dict(answer["result"])

    def _take(self, ends: float) -> dict[str, Any]:
        """Returns the next message; an event is kept."""
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, ends - time.monotonic()))
            assert ready, f"Chromium did not answer within {ANSWER_WITHIN_S} s"
            part = os.read(self._answers, 1 << 20)
            assert part, "Chromium has ended"
            self._rest += part
        one, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """Yields a page of a headless Chromium that ends with the block; `profile` is an empty folder for it."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        missing("chromium", "there is no Chromium; install it (Debian: apt-get install chromium)")
    (asked, asks), (answers, answered) = os.pipe(), os.pipe()
    shell = f'exec "$0" "$@" 3<&{asked} 4>&{answered}'
    process = subprocess.Popen(
        ["bash", "-c", shell, str(program), *FLAGS, f"--user-data-dir={profile}"],
        pass_fds=(asked, answered),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(asked)
    os.close(answered)
    try:
        yield Tab(asks, answers)
    finally:
        for end in (asks, answers):  # with its pipe the browser ends
            os.close(end)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
