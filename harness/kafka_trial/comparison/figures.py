"""The figures of one trial that versions and clients are compared by, read from its run folder.

They come from the harness's own events, the request logs, the offsets log and the counts of the verdict. A figure that
a trial cannot tell is missing, never 0: the group did not rebalance, no fault hit a member, or it was not judged.

A rebalance begins with the first JoinGroup of a generation and ends with its last SyncGroup answer; with the consumer
protocol it begins with the new group epoch (KIP-848) and ends when the last member is stable in it. Counted
are those that begin between the first fault and the snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import orjson

from kafka_trial.history.store import RunFolder

NS_PER_S: Final = 1e9
SHORTEST_S: Final = 1.0
JOIN, SYNC = "JOIN_GROUP", "SYNC_GROUP"
Row = Mapping[str, Any]
Span = tuple[float, float]  # from when to when, in seconds of the wall clock


@dataclass(frozen=True)
class Figure:
    """A figure: its name, what it measures and in which unit.

    `plus` is added before two values are divided: what is much smaller than it makes no difference.
    """

    name: str
    unit: str
    means: str
    plus: float = 0.0


FIGURES: Final = (
    Figure("rebalance", "s", "from the begin of a rebalance until its last member had its part; the median", 0.1),
    Figure("detection", "s", "from a fault on a member until the group rebalanced, while it lasted; the median", 0.1),
    Figure("convergence", "s", "how long the group needed for the rest when faults and load had ended", 0.1),
    Figure("redelivered", "records", "how many records were processed again", 1.0),
    Figure("throughput", "records/s", "how fast the group worked off the opening burst"),
    Figure("memory", "bytes", "the most resident memory that a member had"),
)
FIGURE_NAMES: Final = tuple(one.name for one in FIGURES)


def read_figures(folder: RunFolder) -> dict[str, float]:
    """Returns the figures of a judged trial, by name; one that the trial cannot tell is missing.

    Raises:
        InputError: verdict.json is missing or damaged.
    """
    verdict, run = folder.read_json("verdict.json"), list(_events(folder, "run"))
    spans = _rebalances(folder, run)
    found = {
        "rebalance": median(end - begin for begin, end in spans) if spans else None,
        "detection": _detection_s(folder, run, [begin for begin, _ in spans]),
        "convergence": _convergence_s(run),
        "redelivered": verdict["counts"].get("redelivered") if "redelivered" in verdict.get("judged", ()) else None,
        "throughput": next((row["rate"] for row in run if row["kind"] == "calibrated" and _timed(row)), None),
        "memory": max((row["rss_bytes"] for row in run if row["kind"] == "resources"), default=None),
    }
    return {name: round(float(value), 3) for name, value in found.items() if value is not None}


def _timed(calibrated: Row) -> bool:
    """Whether the opening burst took long enough to be timed: all that was below a second is told as one second."""
    return bool(calibrated["seconds"] > SHORTEST_S and calibrated["rate"] > 0)


def _convergence_s(run: Iterable[Row]) -> float | None:
    at_ns = _phases(run)
    if not {"drain", "snapshot"} <= at_ns.keys():
        return None
    return (at_ns["snapshot"] - at_ns["drain"]) / NS_PER_S


def _detection_s(folder: RunFolder, run: Sequence[Row], begins: Sequence[float]) -> float | None:
    """Returns the median time from a fault on a member to the next rebalance that began before the fault was healed."""
    offset_ns = _wall_offset_ns(run)
    if offset_ns is None:
        return None
    waits_s = []
    for injected_ns, healing_ns in _member_faults(_events(folder, "nemesis")):
        since_s, until_s = ((time_ns + offset_ns) / NS_PER_S for time_ns in (injected_ns, healing_ns))
        noticed_s = [begin_s for begin_s in begins if since_s <= begin_s < until_s]
        waits_s += [min(noticed_s) - since_s] if noticed_s else []
    return median(waits_s) if waits_s else None


def _member_faults(nemesis: Iterable[Row]) -> Iterator[tuple[int, int]]:
    """Yields of each fault on a member when it was injected and when its healing began, of one on several only once."""
    injected: dict[int, int] = {}
    for row in nemesis:
        if row["kind"] == "injected" and row.get("member"):
            injected.setdefault(row["fault_no"], row["time_ns"])
        if row["kind"] == "healing" and row["fault_no"] in injected:
            yield injected.pop(row["fault_no"]), row["time_ns"]


def _rebalances(folder: RunFolder, run: Sequence[Row]) -> list[Span]:
    """Returns the rebalances that began between the first fault and the snapshot, in order."""
    at_ns, offset_ns = _phases(run), _wall_offset_ns(run)
    group = next((row["group"] for row in run if row["kind"] == "group_named"), None)
    if offset_ns is None or group is None or not {"faults", "snapshot"} <= at_ns.keys():
        return []
    first_s, last_s = ((at_ns[phase] + offset_ns) / NS_PER_S for phase in ("faults", "snapshot"))
    spans = [*_classic_rebalances(folder, group), *_consumer_rebalances(folder, group)]
    return sorted(span for span in spans if first_s <= span[0] < last_s)


def _classic_rebalances(folder: RunFolder, group: str) -> Iterator[Span]:
    """Yields each generation from its first JoinGroup request to its last SyncGroup answer."""
    joins: dict[int, float] = {}
    syncs: dict[int, float] = {}
    for file in sorted(folder.history.glob("requests-*.jsonl")):
        for row in _events(folder, file.stem, JOIN, SYNC):
            ended_ns, generation = row.get("source_wall_ns"), row.get("epoch")
            if (
                row.get("group") != group
                or row.get("error") != 0
                or ended_ns is None
                or not isinstance(generation, int)
            ):
                continue
            ended_s = ended_ns / NS_PER_S
            if row["api"] == JOIN:
                begun_s = ended_s - row["duration_ms"] / 1000
                joins[generation] = min(joins.get(generation, begun_s), begun_s)
            elif row["api"] == SYNC:
                syncs[generation] = max(syncs.get(generation, ended_s), ended_s)
    yield from ((joins[one], syncs[one]) for one in joins.keys() & syncs.keys())


def _consumer_rebalances(folder: RunFolder, group: str) -> Iterator[Span]:
    """Yields each rebalance from its first group epoch until the last member was stable in its last one.

    An epoch that no member reached before the next one came is the begin of that one.
    """
    epoch, begun_s, ended_s = -1, None, None
    for row in _events(folder, "offsets", "group_epoch", "member_assignment"):
        if row.get("group") != group or not isinstance(row.get("source_wall_ns"), int):
            continue
        at_s = row["source_wall_ns"] / NS_PER_S
        if row["kind"] == "group_epoch":
            if begun_s is not None and ended_s is not None:
                yield begun_s, ended_s
                begun_s = None
            epoch, begun_s, ended_s = row["epoch"], at_s if begun_s is None else begun_s, None
        elif row.get("state") == "stable" and row.get("epoch") == epoch:
            ended_s = at_s
    if begun_s is not None and ended_s is not None:
        yield begun_s, ended_s


def _phases(run: Iterable[Row]) -> dict[str, int]:
    return {row["phase"]: row["time_ns"] for row in run if row["kind"] == "phase"}


def _wall_offset_ns(run: Iterable[Row]) -> int | None:
    """Returns how much the wall clock was ahead of the monotonic one; None where the run does not say."""
    apart = [row["wall_ns"] - row.get("read_ns", row["time_ns"]) for row in run if row["kind"] == "clock"]
    return int(median(apart)) if apart else None


def _events(folder: RunFolder, source: str, *words: str) -> Iterator[Row]:
    """Yields the events of one file that hold one of some words, or all; a damaged line is the judge's to name."""
    path, wanted = folder.history / f"{source}.jsonl", [f'"{word}"'.encode() for word in words]
    if not path.exists():
        return
    with path.open("rb") as lines:
        for line in lines:
            if wanted and not any(word in line for word in wanted):
                continue
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(row, dict) and "kind" in row:
                yield row
