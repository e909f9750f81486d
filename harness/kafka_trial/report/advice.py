"""What usually causes each anomaly, and what to change: a few plain sentences for whoever reads a report.

Shown beneath violations and generated into `docs/anomalies.md`; the definitions themselves are the docstrings of
`invariants/`. Nothing is judged by these words.
"""

from __future__ import annotations

from dataclasses import dataclass

PAGE = "docs/anomalies.md"


@dataclass(frozen=True)
class Advice:
    """What usually lies behind an anomaly, and the change that cures it, each in a sentence or two."""

    cause: str
    change: str


ADVICE = {
    "skipped": Advice(
        "The position was committed before the work: auto-commit of records that were only handed out, a commit of the "
        "batch before it is done, or a failed record that was logged and passed over.",
        "Commit after the work and only what was done; switch off enable.auto.offset.store or enable.auto.commit; "
        "give a failed record somewhere to go (a retry, a dead-letter topic) before the position passes it.",
    ),
    "overtaken": Advice(
        "The consumer was slower than the topic's retention: records were deleted before it read them.",
        "Raise the topic's retention, or give the group more members; alert on the age of the oldest unread record.",
    ),
    "unseen": Advice(
        "The partition was assigned and not read to its end: it stayed paused, was starved, or its handler hung.",
        "Look at stuck-partition; resume what was paused after every rebalance; bound the handler's time.",
    ),
    "duplicate-effect": Advice(
        "A record was handled again after a rebalance or a crash, and its effect is not idempotent.",
        "Make the effect idempotent (an upsert by the record's id), write it with the position in one transaction, "
        "or use Kafka transactions; at-least-once alone never excludes it.",
    ),
    "lost-write": Advice(
        "The cluster lost a record that it had acknowledged. The consumer has no part in it.",
        "Look at the broker logs of the run folder: unclean leader election, min.insync.replicas, disks.",
    ),
    "torn-transaction": Advice(
        "A transaction was committed in one partition and aborted in another.",
        "Use one transactional.id per process, and stop at ProducerFencedException instead of going on.",
    ),
    "aborted-read": Advice(
        "The consumer reads uncommitted records: isolation.level is read_uncommitted, which most clients default to.",
        "Set isolation.level=read_committed.",
    ),
    "offset-outside-transaction": Advice(
        "The position was committed by the consumer itself and not in the producer's transaction.",
        "Send it with sendOffsetsToTransaction, and switch enable.auto.commit off.",
    ),
    "hanging-transaction": Advice(
        "The brokers left a transaction open beyond its timeout. The consumer has no part in it.",
        "Find it with kafka-transactions.sh and abort it; it blocks everyone who reads committed records.",
    ),
    "corrupt": Advice(
        "What came out is not what was sent: the wrong decoder, a shared buffer that was overwritten, a cut string.",
        "Compare the two records named; hand each record its own buffer; decode by the record's own schema.",
    ),
    "phantom": Advice(
        "The consumer did something for a record that nobody sent: a wrong id, a default value, an old table.",
        "Look where the id named comes from; check that the effect carries the id of the record that caused it.",
    ),
    "misplaced": Advice(
        "The consumer names another partition or offset than the record has.",
        "Take topic, partition and offset from the record itself, never from a counter of your own.",
    ),
    "redelivered": Advice(
        "A record was handed out again after a rebalance or restart: normal for at-least-once.",
        "For at-most-once commit before the work, and wait for the answer; else claim at-least-once.",
    ),
    "retried": Advice(
        "A handler failed and its record was read again, by a seek back or by the client: a sound way to retry.",
        "Nothing; bound how often a record is tried, and set it aside in the end.",
    ),
    "false-report": Advice(
        "A line says what a witness knows to be otherwise: printed for the wrong record, too early, or of a record "
        "that the process never fetched; or of a partition that nobody had given to it.",
        "Print record_delivered where the handler begins and record_processed where it ends, from the record itself; "
        "and partitions_assigned from the callback that the client library calls.",
    ),
    "illegal-redelivery": Advice(
        "A member did not start at the committed position: a seek to the beginning, a stale position kept from before "
        "the rebalance, or auto.offset.reset where there was a commit.",
        "On assignment start from the committed position, and drop what you remember of a partition when it goes.",
    ),
    "nonmonotonic-poll": Advice(
        "The consumer sought back over records that it had already done.",
        "Seek back only to the record that failed, before anything behind it is done.",
    ),
    "poll-skip": Advice(
        "The consumer sought ahead, or dropped what its client had handed it, often on a rebalance or a resume.",
        "Keep every polled record until it is done or its partition is revoked; never seek beyond the next record.",
    ),
    "reordered-key": Advice(
        "Records of one key were worked on in parallel or retried behind later ones.",
        "Send records of a key to the same worker, and hold a key back while one of its records is being retried.",
    ),
    "overlapping-handlers": Advice(
        "Two threads worked on one partition, or a member went on while the next owner had begun.",
        "Give each partition (or key) one worker, and wait for it before the partition is given back.",
    ),
    "commit-regression": Advice(
        "An older position was committed after a newer one: an asynchronous commit that was retried, two threads that "
        "commit, or a member that committed for a partition it had lost.",
        "Commit from one thread and never retry an older position; on revocation wait for commits under way.",
    ),
    "zombie-commit": Advice(
        "A member committed for a partition that another one owned by then; the broker takes it from any live member.",
        "Commit only partitions that are assigned right now; forget the positions of a partition when it is revoked "
        "or lost. Cooperative or KIP-848 rebalancing makes it rarer, a guard before the commit ends it.",
    ),
    "commit-ahead": Advice(
        "A position was committed before the records below it were done: auto-commit, or offsets stored at hand-out.",
        "Commit after the work. With librdkafka: enable.auto.offset.store=false and store_offsets() after the work.",
    ),
    "commit-lost": Advice(
        "The client said that a position was stored, and it is not there: an error per partition that nobody looked "
        "at, a refused commit that was swallowed.",
        "Look at the error of each partition in the commit's answer, not only at the call's; ask again or rewind.",
    ),
    "commit-past-end": Advice(
        "A position beyond the end of the log was committed: an offset counted twice (+1), or of another topic.",
        "Commit the offset of the last record done plus one, and nothing computed from anything else.",
    ),
    "stuck-partition": Advice(
        "A partition stood still with records in it. Its class says where: nobody owned it, it was not fetched "
        "(paused?), not handed out, not worked on, or its commits failed.",
        "Follow the class: resume after a rebalance, bound the handler, look at refused commits.",
    ),
    "orphan-partition": Advice(
        "The group was at rest and a partition belonged to nobody: a custom assignor, or a member that assigned "
        "itself by hand beside the group.",
        "Use one of Kafka's assignors, and do not mix assign() and subscribe() in one group.",
    ),
    "false-lag": Advice(
        "All records were done, but the committed position stands below them: the last offset was committed instead "
        "of the next one, a commit on close was lost, or an old member's commit set it back.",
        "Commit offset + 1; commit on revocation and before close; retry a refused commit while you own the partition.",
    ),
    "late-convergence": Advice(
        "After the faults were healed the group took longer than it may: long sessions, long handlers, slow restarts.",
        "Shorten session.timeout.ms and max.poll.interval.ms, or claim the time it needs with converge_within_s.",
    ),
    "split-ownership": Advice(
        "Two members worked on one partition, and one of them had been told that it was no longer its own.",
        "Stop work on a partition when the group says so: act on refused heartbeats and commits, do not swallow them.",
    ),
    "stale-generation": Advice(
        "The broker took a commit of an older generation.",
        "A broker should refuse it: look at its version; a member should drop its positions when it rejoins.",
    ),
    "work-after-revoke": Advice(
        "Work on a partition went on after the callback that gave it back had returned.",
        "In the callback finish or cancel what is in hand, then return; a queue between poll and work must be emptied.",
    ),
    "zombie-work": Advice(
        "A member worked on after it had lost its partition without knowing: paused, cut off, or too slow.",
        "No plain consumer can prevent it; where it must not happen, fence the effect (an epoch beside the result).",
    ),
    "crash-loop": Advice(
        "A member exited by itself, again and again: a record it cannot read, or an error nobody catches.",
        "Set a record aside after some attempts; keep the process alive where the client can reconnect by itself.",
    ),
    "unbounded-close": Advice(
        "A member did not stop within its time: work without a limit, or a client that froze in close().",
        "On the stop signal finish what is in hand, commit, leave. With librdkafka: unsubscribe() and poll until "
        "nothing is assigned before close().",
    ),
    "memory-over-limit": Advice(
        "The process took more memory than claimed: queues without a bound, large fetches.",
        "Bound what waits between poll and work (pause the partition); lower fetch.max.bytes and queued.max.messages.",
    ),
    "oom-killed": Advice(
        "The kernel killed the process for its memory.",
        "As for memory-over-limit; and give the process the limit that it needs.",
    ),
    "starved-partition": Advice(
        "A member worked on its other partitions while one waited.",
        "Take turns between partitions; do not drain one before looking at the next.",
    ),
    "rebalance-storm": Advice(
        "The group rebalanced over and over with nothing happening: polls too far apart, members that leave and join.",
        "Lower max.poll.records or raise max.poll.interval.ms; use static members or cooperative rebalancing.",
    ),
    "uncommitted-progress": Advice(
        "Work was done long before its position was committed: a crash would repeat all of it.",
        "Commit more often, also while a partition is quiet.",
    ),
    "rogue-reader": Advice(
        "Somebody fetched records and never committed: a partition read outside the group, or thrown away.",
        "Look which member it is; do not fetch what is not assigned.",
    ),
}
