"""Why an anomaly is not judged: every reason there is, as the text that users see.

An anomaly is not judged where the evidence that its invariant needs was not seen (`evidence.py`), or where that
invariant crashed. A single case that is undecided has its reasons in `model/undecided.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

_SILENT = "the consumer prints no events"
_UNTOLD = "nothing tells what was handled"
_CURE = 'sink = "http" under [evidence] and SINK_URL = "{sink_url}" under [env] would let it be judged'


class NotJudgedReason(StrEnum):
    """The reasons, by what was missing; a `{…}` is filled in from the fields of `NotJudged`, where it has any."""

    CRASHED = "the invariant crashed: {error}"
    NOT_LOOKED_FOR = "no invariant looks for it"
    # The rule is not about this consumer.
    IN_TRANSACTIONS = "its progress is in its transactions, whose epochs are not looked at"
    NOT_IN_KAFKA = "its progress is not in Kafka (progress: {progress})"
    NOT_IN_TRANSACTIONS = "its progress is not in its transactions (progress: {progress})"
    NO_MEMORY_LIMIT = "no limit of memory is claimed"
    NO_AGE_LIMIT = "no limit to the age of records is claimed"
    NO_COLD_LIMIT = "no limit to the reading of cold data is claimed"
    # The consumer prints nothing, and something else decides what is claimed.
    ORDER_BY_EFFECTS = f"{_SILENT}: order is judged by first effects, repeated work by further effects"
    SKIPS_BY_EFFECTS = f"{_SILENT}: order is judged by first effects, and a record left out as skipped or unseen"
    NO_HANDLER_STARTS = f"{_SILENT}: nothing shows when its handlers began; order is judged by first effects"
    BLOCKING_AS_LATE = f"{_SILENT}: nothing shows whether it held a record; a partition that lags is judged as late"
    LAG_BY_COMMITS = f"{_SILENT}: records left at the end are judged by its commits, as stuck or late"
    CALLBACKS_BY_COMMITS = (
        f"{_SILENT}: it reports no callbacks; work on partitions it had lost is judged by its commits"
    )
    IN_A_TABLE = f"{_SILENT}, and repeated work may leave its table unchanged: only changes of rows are seen"
    # What the consumer and its sink do not tell.
    NO_EVENTS = _SILENT
    NOTHING_TELLS = _UNTOLD
    NO_SINK = f"{_UNTOLD}: {_SILENT} and has no sink ({_CURE})"
    NO_IDS = "the consumer names no record ids, and no effect of it was seen"
    NO_EFFECT = "no effect of the consumer was seen"
    NO_STATES = 'none of its effects is declared to be a state ([evidence] effects = "state")'
    ROWS_UNKNOWN = "no change was seen of a row of its table (it has none, or they were not followed)"
    NO_STATES_COMPARED = "no row of its table, or key at its sink, was written with two records of one key or entity"
    NO_EFFECT_OF_RECORDS = "no effect belongs to a record that the control read found"
    NONE_DELIVERED = "the consumer reported no delivered record"
    PARTITIONS_UNKNOWN = (
        "it is not known which partitions {names} had: no assigned line, and no assignment in the request log"
    )
    WORK_WITHOUT_PARTITION = "{names} handled records of partitions of which nothing says that they had them then"
    BEGINNINGS_UNKNOWN = "it is not known when handlers of {names} began: no delivered line"
    ENDS_UNKNOWN = "it is not known when handlers ended: no processed line"
    COMMIT_TIMES_UNKNOWN = (
        "it is not known when {names} handled what was committed: buffered lines without time_ms or commit_requested"
    )
    IN_HAND_IN_TRANSACTION = (
        "it has records in hand until its transaction ends, whatever it says of them (progress: transaction)"
    )
    READABLE_UNKNOWN = (
        "transactions on the topic were aborted: it is not known when the records before them became readable"
    )
    NO_FETCHES = "no member was seen to fetch on a lane of its own"
    NO_CALLBACKS = "no member reports rebalance callbacks"
    REVOCATIONS_UNTOLD = (
        "{names} told what was assigned and not all that was revoked, although brokers took it away: print "
        "partitions_revoked when its callback returns, or leave out partitions_assigned"
    )
    NO_PARTITIONS_ADDED = "no partition was added to the topic: every key stayed in its own"
    NO_KEY_MOVED = "partitions were added, and yet no key was seen to come to another one"
    # What the harness and the brokers do not tell.
    CONTROL_READ = "the control read of the topic is {state}"
    NO_RECORDS = "there are no records"
    NO_SENDS = "no send of the workload was recorded"
    NO_REQUEST_LOG = "there is no request log"
    NO_SNAPSHOT = "the trial did not reach its snapshot"
    NO_PROCESS = "no member's process was started"
    NO_GROUP = "its members are in no group: they assign their partitions themselves (protocol: none)"
    EXITS_UNKNOWN = "an exit does not say whether the harness had asked for it: by an earlier version"
    NO_SAMPLES = "the members' memory was not sampled"
    APPENDS_UNKNOWN = (
        "an audit does not know when records came: their timestamps are their producers' (message.timestamp.type)"
    )
    WAITS_ELSEWHERE = "records wait in topics that the group hands them on through: for how long is not measured"
    NO_TIME = "faults explain so much of the trial that no record could be seen to wait for longer than is claimed"
    NOTHING_COLD = (
        "no record could become cold: the trial was too short for cold_after_s and a commit interval, or faults "
        "explain too much of it"
    )
    NO_PACE = "the opening burst was not done: it is not known how fast the group works"
    OOM_NOT_COUNTED = "the kernel's out-of-memory killer was not counted"
    NO_EPOCHS = "the offsets log holds no generation or epoch of the group"
    NONE_ABORTED = "no record of the topic belonged to an aborted transaction"
    NO_OUTPUTS = "no transaction was seen to end in a topic that the consumer writes to"
    WITNESS_EMPTY = "the witness {witness} wrote nothing"
    WITNESS_INCOMPLETE = "the witness {witness} is {state}"


class PartlyNotJudged(StrEnum):
    """Why a part of what an invariant looks for is not judged; the other part is."""

    BODIES_UNDECLARED = 'effects: nothing declares that their body is the record\'s value ([evidence] body = "value")'
    BODIES_NOT_COMPARED = "effects: no body of theirs could be compared with what was sent"


@dataclass(frozen=True)
class NotJudged:
    """Why an invariant was not judged; `applies` is False where its rule is not about this consumer.

    `partly`: some of what it looks at was there; what it found of that stands.
    """

    reason: NotJudgedReason
    fields: Mapping[str, str] = field(default_factory=dict)
    applies: bool = True
    partly: bool = False

    @property
    def because(self) -> str:
        """The reason as users see it."""
        return self.reason.format_map(self.fields) if self.fields else self.reason.value
