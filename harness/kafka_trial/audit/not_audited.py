"""Why an audit does not judge an anomaly: its own reasons, and its words for those of a trial's judge."""

from __future__ import annotations

from enum import StrEnum

from kafka_trial.judge.unjudged import Unjudged


class NotAudited(StrEnum):
    """The reasons, as the text that users see."""

    LOGS_APART = "an audit's request logs and offsets log need not end at the same place"
    SENDS_UNKNOWN = "an audit does not know what was sent"
    NO_REQUEST_LOG = "no log of the brokers' requests was given (--request-log)"
    NO_SINK = "nothing tells what was handled (--sink-topic, --sink-db)"
    NO_IDS = "the sink holds no id from then: is it this group's?"
    ONE_ROW = "a table may hold one row an id, however often its record was handled"
    NO_OWN_WORD = "an audit does not hear the consumer's own word"
    NO_PROCESSES = "an audit does not start the members, nor watch their processes"
    NO_MACHINES = "an audit does not watch the members' machines"


# The two logs are not read to the same end, so what the one has and the other has not proves nothing.
NEVER_JUDGED = {
    "commit-lost": NotAudited.LOGS_APART,
    "lost-write": NotAudited.SENDS_UNKNOWN,
    "corrupt": NotAudited.SENDS_UNKNOWN,
    "overtaken": NotAudited.SENDS_UNKNOWN,
}
# What the judge says of a trial's missing evidence, as an audit must say it.
IN_OTHER_WORDS = {
    Unjudged.NO_REQUEST_LOG: NotAudited.NO_REQUEST_LOG,
    Unjudged.NO_SINK: NotAudited.NO_SINK,
    Unjudged.NO_EFFECT: NotAudited.NO_SINK,
    Unjudged.NO_IDS: NotAudited.NO_SINK,
    Unjudged.NO_EVENTS: NotAudited.NO_OWN_WORD,
    Unjudged.NO_PROCESS: NotAudited.NO_PROCESSES,
    Unjudged.OOM_NOT_COUNTED: NotAudited.NO_MACHINES,
    Unjudged.NO_SENDS: NotAudited.SENDS_UNKNOWN,
}
