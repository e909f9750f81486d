"""When, where and of what a trial was: what the head of every report says, and the instant that all times count from.

Read from run.json, the harness's own events and, for the clients, the request logs. A run that was stored before one of
these was written down still gives the others. What a consumer or a client wrote is bounded here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from kafka_trial.history.event import Event, from_line
from kafka_trial.history.store import RunFolder, first_raw_line
from kafka_trial.report.event_text import bounded
from kafka_trial.report.library_advice import libraries_of
from kafka_trial.verdict.collect import own_events

COMMIT_DIGITS = 12
LIBRARIES_MAX, CLIENTS_MAX = 12, 8  # that a page names; each is the word of a client
NS_PER_S = 1e9


@dataclass(frozen=True)
class RunMetadata:
    """What a page says of a run beside its verdict, in words; "" and () for what was not recorded.

    `base`: what its times count from; `lasted_s`: from there to its end; `label`: what that span is called. `clients`:
    each client library that the brokers saw members use, with their client ids; `libraries`: those of them for which
    there is advice (`library_advice.py`).
    """

    base: str = ""
    label: str = "ran"
    began: str = ""
    lasted_s: float | None = None
    host: str = ""
    harness: str = ""
    consumer_commit: str = ""
    consumer_digest: str = ""
    image: str = ""
    clients: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()

    @property
    def span(self) -> str:
        """When it began, and for how long it lasted; "" where neither is known."""
        lasted = "" if self.lasted_s is None else f"for {duration_in_words(self.lasted_s)}"
        return f"{self.began} {lasted}".strip()


def read_run_metadata(folder: RunFolder, run: Mapping[str, Any], *, with_clients: bool = True) -> RunMetadata:
    """Returns what is known of a run; `run` is its run.json, as far as it can be read."""
    events = list(own_events(folder))
    start = _start_ns(events, folder)
    audit = run.get("kind") == "audit"
    ends = [event.time_ns for event in events if event.source == "run"]
    clients = clients_by_library(folder) if with_clients and not audit else {}
    return RunMetadata(
        base=base_in_words(run),
        label="window" if audit else "ran",
        began=_date(start if audit else _wall_ns(events, start)),
        lasted_s=round((max(ends) - start) / NS_PER_S, 1) if ends else None,
        host=_host(run),
        harness=_harness(run),
        consumer_commit=commit_in_words(run.get("consumer_commit")),
        consumer_digest=bounded(run.get("consumer_digest") or ""),
        image=_image(run),
        clients=tuple(clients_in_words(clients)),
        libraries=libraries_of(clients),
    )


def duration_in_words(lasted_s: float) -> str:
    """Returns a duration: tenths of seconds below ten minutes, whole minutes beyond."""
    if lasted_s < 600:
        return f"{lasted_s:.1f} s"
    hours, minutes = divmod(round(lasted_s / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def base_in_words(run: Mapping[str, Any]) -> str:
    """Returns what the times of every report count from, after "seconds since"."""
    return "the start of the window" if run.get("kind") == "audit" else "the start of the trial"


def start_ns(folder: RunFolder) -> int:
    """Returns the instant that the times of every report count from: when the first phase began.

    Where no phase was written down it is the earliest first event of any file.
    """
    return _start_ns(own_events(folder), folder)


def _start_ns(events: Iterable[Event], folder: RunFolder) -> int:
    phases = (event.time_ns for event in events if event.kind == "phase")
    if (begun := next(phases, None)) is not None:
        return begun
    first = (line.get("time_ns") for file in folder.history_files() if (line := first_raw_line(file)) is not None)
    return min((time_ns for time_ns in first if isinstance(time_ns, int)), default=0)


def clients_by_library(folder: RunFolder) -> dict[str, set[str]]:
    """Returns each library and version by which members told the brokers who they are (KIP-511), with the client ids.

    "" stands for a library that does not name itself. One connection has one client: of its requests the first is read,
    and the first that names a library.
    """
    lanes, seen = folder.member_lanes(), dict[str, set[str]]()
    for request in _first_requests(folder):
        lane, library = request.details.get("lane"), request.details.get("library")
        if isinstance(lane, int) and lane in lanes:
            client = bounded(request.details.get("client_id") or "no client id", most=60)
            seen.setdefault(bounded(library, most=80) if library else "", set()).add(client)
    silent = seen.pop("", set()).difference(*seen.values())
    return seen | ({"": silent} if silent else {})


def clients_in_words(clients: Mapping[str, Set[str]]) -> Iterator[str]:
    """Yields each library with its client ids, those that do not name themselves last; no more than a page has room."""
    named = sorted((library, ids) for library, ids in clients.items() if library)[:LIBRARIES_MAX]
    silent = [("a library that does not name itself", clients[""])] if "" in clients else []
    for library, ids in [*named, *silent]:
        more = f", and {len(ids) - CLIENTS_MAX} more" if len(ids) > CLIENTS_MAX else ""
        yield f"{library} ({', '.join(sorted(ids)[:CLIENTS_MAX])}{more})"


def commit_in_words(state: object) -> str:
    """Returns a commit of run.json: its first digits, and what its folder held beyond it."""
    if not isinstance(state, Mapping) or not isinstance(state.get("commit"), str):
        return ""
    counts = {
        "changed since": state.get("changed"),
        "that git does not track": state.get("untracked"),
    }
    beyond = [
        f"{count} file{'s' * (count > 1)} {what}" for what, count in counts.items() if isinstance(count, int) and count
    ]
    return f"{bounded(state['commit'][:COMMIT_DIGITS])}, {'with ' + ' and '.join(beyond) if beyond else 'unchanged'}"


def _harness(run: Mapping[str, Any]) -> str:
    version, commit = run.get("kafka_trial"), commit_in_words(run.get("commit"))
    return f"{bounded(version)}{f', commit {commit}' if commit else ''}" if version else ""


def _host(run: Mapping[str, Any]) -> str:
    machine = run.get("machine")
    machine = machine if isinstance(machine, Mapping) else {}
    memory = machine.get("memory_bytes")
    parts = [f"{machine['cores']} cores"] if isinstance(machine.get("cores"), int) else []
    parts += [f"{memory / 1e9:.0f} GB of memory"] if isinstance(memory, int) else []
    parts += [f"{bounded(machine['system'])} {bounded(machine.get('kernel', ''))}"] if machine.get("system") else []
    if run.get("host"):
        return bounded(run["host"], most=80) + (f" ({', '.join(parts)})" if parts else "")
    return f"a machine with {', '.join(parts)}" if parts else ""


def _image(run: Mapping[str, Any]) -> str:
    name, images = run.get("consumer_image"), run.get("images")
    if not name:
        return ""
    digest = images.get(name) if isinstance(images, Mapping) else None
    return f"{bounded(name)}{f', {bounded(digest)}' if digest else ''}"


def _wall_ns(events: list[Event], at_ns: int) -> int | None:
    """Returns what the wall clock showed at an instant, by the nearest pair of both clocks; None: none was written."""
    pairs = [
        (abs(event.time_ns - at_ns), event.details["wall_ns"] + at_ns - event.time_ns)
        for event in events
        if event.kind == "clock" and isinstance(event.details.get("wall_ns"), int)
    ]
    return min(pairs, default=(0, None))[1]


def _date(wall_ns: int | None) -> str:
    if not wall_ns:
        return ""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=wall_ns // 1000)).strftime(
            "%Y-%m-%d %H:%M:%S UTC"
        )
    except OverflowError:
        return ""  # it was edited


def _first_requests(folder: RunFolder) -> Iterator[Event]:
    """Yields the first request of each connection, and the first of each that names a library."""
    for file in sorted(folder.history.glob("requests-b*.jsonl")):
        seen: set[tuple[bytes, bool]] = set()
        with file.open("rb") as lines:
            for line in lines:
                _, _, rest = line.partition(b'"connection":"')
                kind = rest.partition(b'"')[0], b'"library":' in line
                if kind[0] and kind not in seen:
                    seen.add(kind)
                    with suppress(ValueError, TypeError):
                        yield from_line(line)
