"""Cold reads: does a group read more than it claims of what its brokers may have to read from their disks?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from kafka_trial.anomalies.claim_rule import VIOLATION, Attributes, Rule, Weight, cold_reads_claimed
from kafka_trial.anomalies.invariant import Findings, invariant
from kafka_trial.claim import Claim
from kafka_trial.history.consequences import Consequence
from kafka_trial.model.cold_reads import CERTAIN, NOT_EXCUSED, REASONS
from kafka_trial.model.kernels import Ints, first_of, joined
from kafka_trial.model.table import Table, of_group
from kafka_trial.model.undecided import Undecided

if TYPE_CHECKING:
    from kafka_trial.model.group import Group

SECOND_NS = 1_000_000_000
ATTRIBUTES = (
    *("member", "client", "read_bytes", "partitions", "since_s", "until_s"),
    *("all_bytes", "limit_bytes", "excused_by"),
)
LAST_LINES_NS = SECOND_NS  # of a broker that ends: what it did just before may not be in its log


def _excused(_: Claim, attributes: Attributes) -> tuple[Weight, str]:
    by = attributes.get("excused_by")
    return VIOLATION if by is None else ("tolerated", f"it would not have been cold without {by}")


@invariant(
    "cold-read",
    family="resources",
    needs=("records", "fetches of members", "cold limit", "pace", "cold records", "snapshot"),
    level="none",
    of="group",
    severity=345,
    rule=Rule(cold_reads_claimed, _excused),
    message="member {member} (client {client}) was sent {read_bytes} bytes of cold data from {partitions} partitions, "
    "from {since_s} s to {until_s} s after the opening burst; all members {all_bytes}, over the {limit_bytes} claimed",
    deciding=("excused_by",),
)
def cold_read(group: Group) -> Findings:
    """Members read more cold data than their team claims (`reads_cold_bytes_max`): a finding per member and client id.

    "On a Kafka cluster where the consumers are mostly caught up you will see no read activity on the disks whatsoever
    as they will be serving data entirely from cache" (Kafka, Efficiency). A member that reads far behind the end makes
    brokers read from their disks, and everyone else waits for those. A record is cold `cold_after_s` after its append,
    and a commit interval more, for what is not committed yet may have to be read again. By default that is 30 s: "you
    want to be able to buffer for 30 seconds and compute your memory need as write_throughput*30" (Kafka, Hardware).

    Bytes are those of the brokers' answers, as they lie in the log, also of a reader that is in no group. An answer
    counts as a whole where its first record was cold. Not counted is the time before the opening burst was handled, and
    the time that a fault explains: from its injection until W after it is healed (longer where requests stay unanswered
    or partitions were added), and then as long again, while the group works off what has piled up. The fault
    `cold-reads` explains nothing. Exactly the limit is allowed.

    Undecided if the limit lies between what was cold for certain and what may have been: where nothing shows when a
    record was appended; if it was not committed past by then, and more was sent all the while than the group was seen
    to do, the machine stood still, or threads waited for a processor for so long; and if a broker was stopped
    meanwhile, for the last lines of its request log may be missing. Not judged without request logs read to their
    ends, where the trial leaves no time for records to become cold, and in audits, which know of no fault.

    Smallest history: a claim of 100 bytes; record 0; forty seconds later m0's FETCH from 0 is answered 101 bytes.

    Usual cause: A member that starts over from the beginning, on each start or rebalance, or never keeps up.

    Remedy: Commit, and go on from there; keep state instead of reading it again; let many readers share one that reads.
    """
    limit, reads = group.trial_context.settings.reads_cold_bytes_max or 0, group.cold_reads
    counted = reads.take(reads["fault"] == NOT_EXCUSED)
    sure = counted.take(counted["reason"] == CERTAIN)
    excused = reads.take(reads["fault"] != NOT_EXCUSED)
    found = [(one, _bytes(sure)) for one in _readers(sure)] if _bytes(sure) > limit else []
    found += [(one, _bytes(reads)) for one in _readers(excused)] if _bytes(reads) > limit else []
    told = [_attributes(group, one, all_bytes) for one, all_bytes in found]
    rows = of_group(len(told), {name: [one[name] for one in told] for name in ATTRIBUTES})
    readers = [one for one, _ in found]
    undecided = [(reason, np.full(1, -1)) for reason in _why_undecided(group, counted, sure, limit)]
    return Findings(rows, [_events(readers, ""), _events(readers, "last_")], undecided)


def _attributes(group: Group, reads: Table, all_bytes: int) -> dict[str, Any]:
    """Returns what is told of one client's reads, under the names ATTRIBUTES; times from the opening burst on."""
    about, begun_ns = group.trial_context, group.trial_context.calibrated_ns or 0
    faults = {window.number: window.in_words for window in about.windows}
    client, fault = int(reads["client"][0]), int(reads["fault"][0])
    values = (
        about.members[reads["member"][0]],
        about.connections[client].client_id if client >= 0 else None,
        _bytes(reads),
        len(np.unique(reads["slice"])),
        round((int(reads["first_ns"].min()) - begun_ns) / SECOND_NS, 1),
        round((int(reads["last_ns"].max()) - begun_ns) / SECOND_NS, 1),
        all_bytes,
        group.trial_context.settings.reads_cold_bytes_max,
        faults.get(fault),
    )
    return dict(zip(ATTRIBUTES, values, strict=True))


def _bytes(reads: Table) -> int:
    return int(reads["bytes"].sum())


def _readers(reads: Table) -> Iterator[Table]:
    """Yields what is of one client of one member, and explained by the same fault."""
    reads = reads.sorted_by("member", "client", "fault", "slice")
    first = first_of(joined(*(reads[name] for name in ("member", "client", "fault")))).tolist()
    for begin, end in pairwise([*first, len(reads)]):
        yield reads.take(np.arange(begin, end))


def _events(readers: Sequence[Table], of: str) -> tuple[Ints, Ints]:
    """Returns source and seq of the first answer that each reader was sent, or (`of` "last_") of the last."""
    chosen = [int(one["last_ns"].argmax() if of else one["first_ns"].argmin()) for one in readers]
    source, seq = (
        np.array([one[f"{of}{name}"][row] for one, row in zip(readers, chosen, strict=True)], np.int64)
        for name in ("source", "seq")
    )
    return source, seq


def _why_undecided(group: Group, counted: Table, sure: Table, limit: int) -> list[str]:
    """Returns why it is not known whether more than the limit was cold; none where it is."""
    if _bytes(sure) > limit:
        return []
    if _bytes(counted) > limit:
        return [REASONS[place] for place in np.unique(counted["reason"]).tolist() if place != CERTAIN]
    stops = [window.injected_ns for window in group.trial_context.windows if window.does(Consequence.STOPS_BROKER)]
    cut_off = [(counted["first_ns"] <= at) & (counted["last_ns"] >= at - LAST_LINES_NS) for at in stops]
    return [Undecided.READS_CUT_OFF] if np.any(cut_off) else []
