"""Why an audit does not judge an anomaly: its own reasons, and its words for those of a trial's judge."""

from __future__ import annotations

from enum import StrEnum

from kafka_trial.judge.not_judged import NotJudgedReason


class NotJudgedByAudit(StrEnum):
    """The reasons, as the text that users see."""

    LOGS_APART = "an audit's request logs and offsets log need not end at the same place"
    SENDS_UNKNOWN = "an audit does not know what was sent"
    NO_REQUEST_LOG = "no log of the brokers' requests was given (--request-log)"
    NO_SINK = "nothing tells what was handled (--sink-topic, --sink-db)"
    NO_IDS = "the sink holds no id of the audited time: is it this group's sink?"
    ONE_ROW = "a table may hold one row per id, however often its record was handled"
    NO_LINES = "an audit does not read the consumer's lines"
    NO_PROCESSES = "an audit does not start the members, nor watch their processes"
    NO_MACHINES = "an audit does not watch the members' machines"


# The two logs are not read to the same end, so what the one has and the other has not proves nothing.
NEVER_JUDGED = {
    "commit-lost": NotJudgedByAudit.LOGS_APART,
    "lost-write": NotJudgedByAudit.SENDS_UNKNOWN,
    "corrupt": NotJudgedByAudit.SENDS_UNKNOWN,
    "overtaken": NotJudgedByAudit.SENDS_UNKNOWN,
}
# What the judge says of a trial's missing evidence, as an audit must say it.
IN_OTHER_WORDS = {
    NotJudgedReason.NO_REQUEST_LOG: NotJudgedByAudit.NO_REQUEST_LOG,
    NotJudgedReason.NO_SINK: NotJudgedByAudit.NO_SINK,
    NotJudgedReason.NO_EFFECT: NotJudgedByAudit.NO_SINK,
    NotJudgedReason.NO_IDS: NotJudgedByAudit.NO_SINK,
    NotJudgedReason.NO_EVENTS: NotJudgedByAudit.NO_LINES,
    NotJudgedReason.NO_PROCESS: NotJudgedByAudit.NO_PROCESSES,
    NotJudgedReason.OOM_NOT_COUNTED: NotJudgedByAudit.NO_MACHINES,
    NotJudgedReason.NO_SENDS: NotJudgedByAudit.SENDS_UNKNOWN,
}
