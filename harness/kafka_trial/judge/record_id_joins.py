"""Id joins: the rows that follow from record ids: sends the log does not hold, moved keys, altered records, effects.

Stands beside `history_reader.py`, which reads the files in the order that makes this possible: the control read, the
workload, then everybody else. It joins by id and judges nothing.

A consumer of several topics may forward what it reads from one of them to another: then a record of an id lies in both.
Its home is the topic to which it was sent; in another it is one that the consumer wrote itself, as it liked.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_trial.judge.arrow_rows import made_rows
from kafka_trial.judge.columns import Columns
from kafka_trial.judge.history_names import ELSEWHERE, slices_of
from kafka_trial.judge.record_id_index import IdIndex, id_hashes
from kafka_trial.judge.trial_context_builder import TrialContextBuilder
from kafka_trial.model.families import (
    ALTERED_RECORDS,
    ARRIVALS,
    CLAIMS,
    EARLY_LINES,
    MISSING_SENDS,
    MOVED_KEYS,
    REFUTED_ENDS,
)
from kafka_trial.model.kernels import NEVER, NONE, Array, per_group
from kafka_trial.model.rows import Known
from kafka_trial.model.trial_context import TrialContext
from kafka_trial.model.wall_clock import monotonic


def effected_ns(builder: TrialContextBuilder, columns: Columns, rows: Array) -> Array:
    """Returns the times of effects: where its broker says when one was appended to an output topic, or its database
    when it was committed, that is its time, not that of its reading."""
    clocks = TrialContext(clocks=tuple(sorted(builder.clock_samples.clocks)))
    appended_ns, read_ns = columns["source_wall_ns"][rows], columns["time_ns"][rows]
    return np.minimum(monotonic(clocks, appended_ns, read_ns), read_ns)


class IdJoins:
    """Makes the named rows of one file; `placeless` are the acknowledgements that lack a place."""

    def __init__(self, builder: TrialContextBuilder, source: int, known: IdIndex) -> None:
        self.builder = builder
        self.source = source
        self.known = known
        self.placeless: list[int] = []
        self._keyed: list[dict[str, Array]] = []  # acknowledged sends that have a key, where partitions were added

    def rows(self, columns: Columns) -> list[pa.Table]:
        """Returns the named rows of a block."""
        return [*self._sends(columns), *self._arrivals(columns)]

    def moved(self) -> pa.Table:
        """Returns the acknowledged sends of those keys that came to several partitions, once the file is read."""
        names = ("slice", "offset", "key_hash", "sent_ns", "send_seq", "time_ns", "seq")
        whole = {name: np.concatenate([np.empty(0, np.int64), *(part[name] for part in self._keyed)]) for name in names}
        places = np.unique(np.stack([whole["key_hash"], whole["slice"]]), axis=1)[0]
        keys, counts = np.unique(places, return_counts=True)
        moved = np.isin(whole["key_hash"], keys[counts > 1])
        self.builder.moved_sends += int(moved.sum())
        return made_rows(MOVED_KEYS, self.source, **{name: column[moved] for name, column in whole.items()})

    def known_of(self, id_hash: Array) -> Array:
        """Returns what is known of ids that are there; nothing is UNSENT where no send was recorded."""
        unsent = ~self.known.sends.has(id_hash) if self.builder.sends else np.zeros(len(id_hash), np.bool_)
        return np.where(unsent, int(Known.UNSENT), 0) + np.where(self.known.records.has(id_hash), int(Known.READ), 0)

    def _sends(self, columns: Columns) -> list[pa.Table]:
        """Notes the sends of the block; returns the records that are not as they were sent, and the acknowledged sends
        that the control read does not hold."""
        outcome = columns.codes("outcome", {"invoke": 1, "ok": 2})
        sends = columns.is_kind("send")
        invoked, acked = (np.flatnonzero(sends & (outcome == code)) for code in (1, 2))
        self.builder.sends += len(invoked)
        return [
            *([self._altered(columns, invoked)] if len(invoked) else []),
            *(self._acknowledged(columns, acked) if len(acked) else ()),
        ]

    def _altered(self, columns: Columns, rows: Array) -> pa.Table:
        id_hash = id_hashes(columns.text("id", rows))
        sent, records = columns["checksum"][rows], self.known.records
        about = {name: columns[name][rows] for name in ("seq", "time_ns")}
        whose = {f"{name}_hash": id_hashes(columns.text(name, rows)) for name in ("key", "entity")}
        topic = columns.codes("topic", {name: number + 1 for number, name in enumerate(self.builder.topics)})[rows] - 1
        self.known.sends.take(id_hash=id_hash, checksum=sent, topic=topic, **about, **whose)
        send, found = records.all_of(id_hash)
        read = records.get("checksum", found)
        altered = (
            self._in_topics(records.get("slice", found), topic[send])
            & (sent[send] != NONE)
            & (read != NONE)
            & (sent[send] != read)
        )
        rows, found = rows[send[altered]], found[altered]
        return made_rows(
            ALTERED_RECORDS,
            records.get("source", found),
            slice=records.get("slice", found),
            seq=records.get("seq", found),
            time_ns=columns["time_ns"][rows],
            offset=records.get("offset", found),
            send_source=np.full(len(found), self.source),
            send_seq=columns["seq"][rows],
        )

    def _acknowledged(self, columns: Columns, rows: Array) -> list[pa.Table]:
        id_hash = id_hashes(columns.text("id", rows))
        slices = slices_of(self.builder, columns.text("topic", rows), columns["partition"][rows])
        offsets = np.where(columns["offset"][rows] < 0, NONE, columns["offset"][rows])
        placed = (slices >= 0) & (id_hash != NONE)
        self.placeless += columns["seq"][rows[~placed & (slices != ELSEWHERE)]].tolist()
        self.known.acked.take(id_hash=id_hash[placed], slice=slices[placed], offset=offsets[placed])
        if self.builder.partitions_added:
            self._take_keyed(columns, rows, id_hash, slices, offsets)
        gone = placed & ~self._read_in_same_topic(slices, id_hash) & ~self.known.aborted.has(id_hash)
        refuted = self._refuted_ends(slices, offsets, columns["time_ns"][rows], id_hash, placed)
        rows = rows[gone]
        missing = made_rows(
            MISSING_SENDS,
            self.source,
            slice=slices[gone],
            seq=columns["seq"][rows],
            time_ns=columns["time_ns"][rows],
            offset=offsets[gone],
            id_hash=id_hash[gone],
            key=columns.text("key", rows),
        )
        return [missing, refuted]

    def _refuted_ends(self, slices: Array, offsets: Array, time_ns: Array, id_hash: Array, placed: Array) -> pa.Table:
        """Returns the log ends beyond which records lie that had been acknowledged before, where they lie."""
        answered, beyond = self.builder.answered_ends, placed
        refuted = answered.refuted(slices=slices[beyond], time_ns=time_ns[beyond], offset=offsets[beyond])
        if len(refuted["slice"]):  # hardly ever: whether they lie there still is looked up only then
            beyond = placed & self._read_in_place(slices, offsets, id_hash)
            refuted = answered.refuted(slices=slices[beyond], time_ns=time_ns[beyond], offset=offsets[beyond])
        return made_rows(REFUTED_ENDS, self.source, **refuted)

    def _take_keyed(self, columns: Columns, rows: Array, id_hash: Array, slices: Array, offsets: Array) -> None:
        """Notes where and when the records of keys were sent; without an offset, or its send, nobody knows that."""
        key_hash, send = id_hashes(columns.text("key", rows)), self.known.sends.find(id_hash)
        told = (key_hash != NONE) & (send >= 0) & (slices >= 0) & (offsets != NONE)
        if self.builder.topic is not None:  # only this one gains partitions; another may have the same keys
            told &= columns.codes("topic", {self.builder.topic: 1})[rows] == 1
        found = {"slice": slices, "offset": offsets, "key_hash": key_hash}
        found |= {"sent_ns": self.known.sends.get("time_ns", send), "send_seq": self.known.sends.get("seq", send)}
        found |= {"time_ns": columns["time_ns"][rows], "seq": columns["seq"][rows]}
        self._keyed.append({name: column[told] for name, column in found.items()})

    def _arrivals(self, columns: Columns) -> list[pa.Table]:
        """Returns a row for each effect where its record lies, and one where it claims to come from."""
        done = columns.codes("outcome", {"ok": 1}) == 1
        rows = np.flatnonzero(columns.is_kind("effect") & done & ~columns.absent("id"))
        if not len(rows):
            return []
        text = columns.text("id", rows)
        id_hash = id_hashes(text)
        known = self.known_of(id_hash)
        return [
            self._arrived(columns, rows, id_hash, known, text),
            self._claimed(columns, rows, id_hash, known),
            self._too_early(columns, rows, id_hash),
        ]

    def _arrived(self, columns: Columns, rows: Array, id_hash: Array, known: Array, text: pa.Array) -> pa.Table:
        self.builder.forwarded_effects += self._count_forwarded(id_hash)
        slices, offsets = self._homes(id_hash)
        nowhere = slices == NONE
        if nowhere.any():
            slices = np.where(nowhere, self.builder.slice_of_nowhere(), slices)
        compared = self._compared(columns, rows, id_hash)
        topics = [topic for topic, _ in self.builder.slices]
        self.builder.bodies_compared.update(topics[number] for number in np.unique(slices[compared > 0]).tolist())
        unsent = pa.array(known & Known.UNSENT > 0)
        members = {name: number + 1 for name, number in self.builder.members.items()}
        return made_rows(
            ARRIVALS,
            self.source,
            slice=slices,
            seq=columns["seq"][rows],
            time_ns=effected_ns(self.builder, columns, rows),
            offset=offsets,
            id_hash=id_hash,
            known=known + compared,
            member=columns.codes("member", members)[rows] - 1,
            unsent_id=pc.if_else(unsent, text, pa.scalar(None, pa.string())),
        )

    def _too_early(self, columns: Columns, rows: Array, id_hash: Array) -> pa.Table:
        """Returns a row for each effect of a record that was sent only later."""
        time_ns = effected_ns(self.builder, columns, rows)
        sent_ns = self.known.sends.get("time_ns", self.known.sends.find(id_hash))
        slices, offsets = self._homes(id_hash)
        early = (sent_ns > time_ns) & (slices != NONE) & (offsets != NONE)
        about = {
            "slice": slices,
            "offset": offsets,
            "seq": columns["seq"][rows],
            "time_ns": time_ns,
            "sent_ns": sent_ns,
        }
        return made_rows(EARLY_LINES, self.source, **{name: column[early] for name, column in about.items()})

    def _compared(self, columns: Columns, rows: Array, id_hash: Array) -> Array:
        """Returns SAME or OTHER for each body, by what was sent; 0 where nobody can tell.

        JSON may have been written anew: what it says is compared with what the control read holds.
        """
        sent = self.known.sends.get("checksum", self.known.sends.find(id_hash))
        read = self.known.records.get("json_checksum", self.known.records.find(id_hash))
        body, said = columns["checksum"][rows], columns["json_checksum"][rows]
        same = (sent == body) | ((said != NONE) & (said == read))
        untold = (said != NONE) & (read == NONE) & ~same
        compared = np.where(same, int(Known.SAME), int(Known.OTHER))
        return np.where((sent != NONE) & (body != NONE) & ~untold, compared, 0)

    def _homes(self, id_hash: Array) -> tuple[Array, Array]:
        """Returns slice and offset of ids: by the control read, else where a transaction took them back, else by the
        acknowledgement; NONE where nobody knows."""
        known = self.known.records, self.known.aborted, self.known.acked
        rows = [self._home_row(id_hash), *(register.find(id_hash) for register in known[1:])]
        slices, offsets = (
            np.select(
                [found >= 0 for found in rows], [r.get(name, found) for r, found in zip(known, rows, strict=True)], NONE
            )
            for name in ("slice", "offset")
        )
        return slices, offsets

    def _home_row(self, id_hash: Array) -> Array:
        """Returns the row of the control read that is each id's own record: the first in the topic to which it was
        sent, or else the first at all; -1 where there is none."""
        records, sends = self.known.records, self.known.sends
        anywhere = records.find(id_hash)
        if len(self.builder.topics) < 2:
            return anywhere
        which, row = records.all_of(id_hash)
        home = self._in_topics(records.get("slice", row), sends.get("topic", sends.find(id_hash))[which])
        home_rows = per_group(which[home], row[home], len(id_hash), how="min", start=NEVER)
        return np.where(home_rows == NEVER, anywhere, home_rows)

    def _count_forwarded(self, id_hash: Array) -> int:
        """Returns how many of some ids are of records that lie in several of the trial's topics."""
        if len(self.builder.topics) < 2:
            return 0
        which, row = self.known.records.all_of(id_hash)
        topics = self._topic_of(self.known.records.get("slice", row))
        first = per_group(which, topics, len(id_hash), how="min", start=NEVER)
        last = per_group(which, topics, len(id_hash), how="max", start=NONE)
        return int((first < last).sum())

    def _read_in_same_topic(self, slices: Array, id_hash: Array) -> Array:
        """Returns whether the control read holds a record of each id in the topic of each slice."""
        records = self.known.records
        if len(self.builder.topics) < 2:
            return records.has(id_hash)
        which, row = records.all_of(id_hash)
        there = self._in_topics(records.get("slice", row), self._topic_of(slices)[which])
        return np.isin(np.arange(len(id_hash)), which[there])

    def _read_in_place(self, slices: Array, offsets: Array, id_hash: Array) -> Array:
        """Returns whether the control read holds a record of each id at each place."""
        records = self.known.records
        which, row = records.all_of(id_hash)
        there = (records.get("slice", row) == slices[which]) & (records.get("offset", row) == offsets[which])
        return np.isin(np.arange(len(id_hash)), which[there])

    def _in_topics(self, slices: Array, topics: Array) -> Array:
        """Returns where slices are of some topics, by their indices; of an unknown topic (-1) any is taken to be."""
        if len(self.builder.topics) < 2:
            return np.ones(len(slices), np.bool_)
        return (topics < 0) | (self._topic_of(slices) == topics)

    def _topic_of(self, slices: Array) -> Array:
        """Returns the index of the topic of each slice among the trial's, -1 where it is none of these."""
        topics = self.builder.topics
        index_of = [topics.index(topic) if topic in topics else -1 for topic, _ in self.builder.slices]
        return np.array([*index_of, -1], np.int64)[np.where(slices >= 0, slices, -1)]

    def _claimed(self, columns: Columns, rows: Array, id_hash: Array, known: Array) -> pa.Table:
        partitions, offsets = columns["partition"][rows], columns["offset"][rows]
        topics = self._topics_claimed(id_hash)
        pairs, inverse = np.unique(np.stack([topics, partitions]), axis=1, return_inverse=True)
        names = self.builder.topics
        places = [(names[topic], partition) if topic >= 0 else None for topic, partition in pairs.T.tolist()]
        slices = np.array([self.builder.slices.get(place, -1) if place else -1 for place in places], np.int64)
        slices = slices[inverse.reshape(-1)] if len(slices) else np.empty(0, np.int64)
        claims = (partitions >= 0) & (slices >= 0) & (offsets >= 0) & columns.absent("topic")[rows]
        return made_rows(
            CLAIMS,
            self.source,
            slice=slices[claims],
            seq=columns["seq"][rows[claims]],
            time_ns=columns["time_ns"][rows[claims]],
            offset=offsets[claims],
            id_hash=id_hash[claims],
            known=known[claims],
        )

    def _topics_claimed(self, id_hash: Array) -> Array:
        """Returns the index of the topic that each claim is about, -1 where nobody knows: it names none (KT-Partition,
        KT-Offset). Of several it is that in which the record with the id lies. An output's topic is its own."""
        topics = self.builder.topics
        if len(topics) < 2:
            return np.full(len(id_hash), len(topics) - 1)
        homes, _ = self._homes(id_hash)
        return self._topic_of(homes)
