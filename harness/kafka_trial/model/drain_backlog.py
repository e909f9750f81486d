"""The backlog of a drain: how many records are left when it begins, and how long they may take.

The opening burst showed both the pace of the whole group and that of each partition, which had its share of the burst
in the same time. At one time a partition has one owner: a backlog that lies on few of them, behind a member that was
frozen or by a hot key, takes longer than an even one of as many records. The bound B follows from whichever takes
longest, the group with all or one partition with its own.

What happens in the drain changes no pace: the rate of whoever is stuck there is no excuse for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

RATE_UNCALIBRATED = 1.0  # records a second, where nothing was measured: the bound grows, and nobody is accused


@dataclass(frozen=True)
class DrainBacklog:
    """Records left, and how many a second are done of them.

    `rate_per_s`: None where nothing was measured. `of_one`: they lie on one partition, which takes longest.
    """

    records: int = 0
    rate_per_s: float | None = None
    of_one: bool = False

    @property
    def counted_rate_per_s(self) -> float:
        """The rate that B goes by: of less than a record a second nothing is known."""
        return max(self.rate_per_s or RATE_UNCALIBRATED, RATE_UNCALIBRATED)

    @property
    def allowed_s(self) -> float:
        """The time that B leaves for it: twice what it takes."""
        return 2 * self.records / self.counted_rate_per_s


Partition = TypeVar("Partition", bound=Hashable)  # by whatever name the caller has for one


def slowest_backlog(
    left: Iterable[tuple[Partition, int]],
    rate_per_s: float | None,
    burst: Mapping[Partition, int],
    *,
    topic_of: Callable[[Partition], object] = lambda _: None,
) -> DrainBacklog:
    """Returns what takes longest of a backlog.

    `left`: partitions and the records left there. `rate_per_s`: of the group with the opening burst; `burst`: how many
    records of it each partition had (empty: not told; some may be missing). `topic_of` tells the topics of partitions
    apart: each may have a handler of its own.
    """
    counts = list(left)
    everything = DrainBacklog(sum(records for _, records in counts), rate_per_s)
    if not rate_per_s or not any(burst.values()):
        return everything
    each = [
        DrainBacklog(records, rate_of(partition, rate_per_s, burst, topic_of=topic_of), of_one=True)
        for partition, records in counts
    ]
    return max((everything, *each), key=lambda one: one.allowed_s)


def rate_of(
    partition: Partition,
    rate_per_s: float,
    burst: Mapping[Partition, int],
    *,
    topic_of: Callable[[Partition], object] = lambda _: None,
) -> float:
    """Returns how many records a second are done of one partition; the arguments as in `slowest_backlog`.

    It is worked at as fast as with its share of the burst, but no more slowly than the mean of its topic: what had
    little was never asked to be quick. The mean of all stands for topics that the burst did not reach; all of the rate,
    if it is not told.
    """
    shown = {number: records for number, records in burst.items() if records > 0}
    if not shown:
        return rate_per_s
    topic = topic_of(partition)
    beside = [records for number, records in shown.items() if topic_of(number) == topic] or list(shown.values())
    return rate_per_s * max(sum(beside) / len(beside), shown.get(partition, 0)) / sum(shown.values())
