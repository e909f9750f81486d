"""Cuts: the toxic `kafka-cut` on the proxies of a lane, armed and released, and what it has seen.

Its source stands in `toxiproxy_build/kafkacut`. In a trial with cuts a pair of toxics is put on every proxy of the
members before the first of them connects. It reads Kafka's frames and changes none; armed, it acts once: on the nth
request of an API that comes over the lane from then on, whichever broker it goes to.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Final

from kafka_trial.cluster.cluster import Lane
from kafka_trial.cluster.toxiproxy import CUT, Toxiproxy
from kafka_trial.errors import StartError, UnjudgeableError

REQUESTS, ANSWERS = "cut-requests", "cut-answers"  # the two toxics of a pair, by name
BEFORE, ANSWERED, AFTER = "before", "answered", "after"
WHERE: Final = (BEFORE, ANSWERED, AFTER)
HOLD, CLOSE, DELAY = "hold", "close", "delay"
ACTIONS: Final = (HOLD, CLOSE, DELAY)
PASS, DROP = "pass", "drop"

# Kafka's protocol guide, "Api Keys".
API_KEYS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "Fetch": 1,
        "Metadata": 3,
        "OffsetCommit": 8,
        "OffsetFetch": 9,
        "FindCoordinator": 10,
        "JoinGroup": 11,
        "Heartbeat": 12,
        "LeaveGroup": 13,
        "SyncGroup": 14,
        "InitProducerId": 22,
        "AddPartitionsToTxn": 24,
        "AddOffsetsToTxn": 25,
        "EndTxn": 26,
        "TxnOffsetCommit": 28,
        "ConsumerGroupHeartbeat": 68,
    }
)


@dataclass(frozen=True, slots=True)
class Arming:
    """One cut that is asked for. `id` is used once; `nth` counts from 1; `delay_ms` is for the action delay.

    With `answer_bytes_min` only requests count whose answer has so many bytes: a Fetch that brought records.
    """

    id: str
    api: int
    nth: int
    where: str
    action: str
    delay_ms: int = 0
    answer_bytes_min: int = 0


@dataclass(frozen=True, slots=True)
class CutRequest:
    """The request that was cut. Times are of CLOCK_MONOTONIC, 0 is not yet: when it came, when the cut began to act on
    its connection, when it no longer did. `ended`: `pass` or `drop`. `alike`: how many requests its broker's log cannot
    tell from it, of the same API and correlation id on other connections, since it was armed."""

    broker: int
    connection: str
    api: int
    version: int
    correlation_id: int
    seen_ns: int
    hit_ns: int
    gone_ns: int
    ended: str
    alike: int = 0


@dataclass(frozen=True, slots=True)
class LaneSeen:
    """What a lane's toxics have seen since it was armed: requests of the API (`matched`), and the one that was cut.

    `connections` are followed now; `strange` ones pass unread: they are no frames of Kafka's, or were there before.
    """

    matched: int
    connections: int
    strange: int
    cut: CutRequest | None


class LaneCuts:
    """The toxics of one lane, on all its proxies."""

    def __init__(self, toxiproxy: Toxiproxy, lane: Lane) -> None:
        self._toxiproxy = toxiproxy
        self._lane = lane
        self._first = next(iter(lane.proxies.values()))  # what one of its toxics is told, all of a lane's know

    @contextmanager
    def armed(self, arming: Arming, *, by: str = PASS) -> Iterator[None]:
        """Arms the lane for as long as the `with` lasts; what is held then passes, or is dropped."""
        self._toxiproxy.update_toxic(self._first, REQUESTS, {"arm": asdict(arming)})
        try:
            yield
        finally:
            self._toxiproxy.update_toxic(self._first, REQUESTS, {"release": {"id": arming.id, "by": by}})

    def seen(self, arming_id: str) -> LaneSeen:
        """Returns what the lane's toxics have seen since that arming; nothing, where they were not armed so.

        Raises:
            UnjudgeableError: they are not there, or the server does not answer.
        """
        toxic = self._toxiproxy.toxic(self._first, REQUESTS)
        if toxic is None:
            raise UnjudgeableError(f"{self._first} has lost its toxic {REQUESTS}")
        attributes, evidence = toxic["attributes"], toxic["attributes"]["evidence"]
        asked = [attributes[name]["id"] for name in ("arm", "release") if name in attributes]
        cuts = [self._cut(event) for event in evidence["events"] if event["arming"] == arming_id]
        matched = evidence["matched"] if arming_id in asked else 0
        return LaneSeen(matched, evidence["connections"], evidence["strange"], cuts[0] if cuts else None)

    def _cut(self, event: Mapping[str, object]) -> CutRequest:
        proxy = str(event["connection"]).partition("@")[0]
        broker = next(broker for broker, name in self._lane.proxies.items() if name == proxy)
        fields = {name: value for name, value in event.items() if name != "arming"}
        return CutRequest(broker=broker, **fields)  # type: ignore[arg-type]


@contextmanager
def cuts_on(toxiproxy: Toxiproxy, lanes: Sequence[Lane]) -> Iterator[None]:
    """Puts a passive pair of toxics on every proxy of the lanes for as long as the `with` lasts.

    Enter it before any client connects, and leave it when all have gone: a connection that was there before passes
    unread.

    Raises:
        StartError: the server is a plain Toxiproxy.
    """
    token = secrets.token_hex(4)  # the name of a pair is used once
    with ExitStack() as undo:
        for lane in lanes:
            first = next(iter(lane.proxies.values()))
            for proxy in lane.proxies.values():
                undo.callback(_remove, toxiproxy, proxy)
                _remove(toxiproxy, proxy)  # of a trial that was killed
                for name, stream, side in ((REQUESTS, "upstream", "requests"), (ANSWERS, "downstream", "answers")):
                    about = {"pair": f"{proxy}@{token}", "lane": f"{first}@{token}", "side": side}
                    try:
                        toxiproxy.add_toxic(proxy, name, CUT, stream, about)
                    except UnjudgeableError as error:
                        raise StartError(
                            "cuts need the Toxiproxy that kafka-trial builds, and this is another: unset "
                            f"KAFKA_TRIAL_TOXIPROXY, and start a warm cluster again ({error})"
                        ) from error
        yield


def remove_cuts(toxiproxy: Toxiproxy, lanes: Sequence[Lane]) -> None:
    """Takes the toxics off lanes that a trial had which was killed: armed, they would act on the next one."""
    for proxy in (proxy for lane in lanes for proxy in lane.proxies.values()):
        _remove(toxiproxy, proxy)


def _remove(toxiproxy: Toxiproxy, proxy: str) -> None:
    for name in (ANSWERS, REQUESTS):
        toxiproxy.remove_toxic(proxy, name)
