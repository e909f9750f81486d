"""What an invariant is: a pure, vectorised function from the tables of some partitions to findings.

Invariants register themselves with `@invariant(...)`. They know neither Spark nor a cluster. A finding names the events
that prove it, so that a stranger can open the history and see it. What needs all partitions at once (a bound that
follows from the whole group's backlog) is judged in a second step from their summaries (`model/group.py`). What only
the harness's own stalls keep from being found is left undecided, not acquitted.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from kafka_trial.anomalies.claim_rule import Explains, Rule
from kafka_trial.model.kernels import NEVER, NONE, Array, Ints, number_in, ordered, picked
from kafka_trial.model.table import Table
from kafka_trial.model.undecided import Undecided, is_certain

if TYPE_CHECKING:
    from kafka_trial.model.partition import Partitions

T = TypeVar("T", bound=Table)
FAMILIES = ("delivery", "ordering", "commits", "ownership", "liveness", "transactions", "resources")
PARAGRAPHS = {"Usual cause": "cause", "Remedy": "remedy"}  # of a docstring → fields of its invariant
EXAMPLES_MAX = 1000  # of one anomaly in one slice with the same deciding attributes; beyond it only the count goes on


@dataclass(frozen=True)
class Findings:
    """What one invariant found in a batch.

    `rows` has `slice` and `order` (what instances of a slice are sorted by) and the attributes as columns; an integer
    column's NONE and NEVER mean that the attribute is absent. `proofs` are (source, seq) columns, source -1 for none.
    `undecided` are pairs of a reason and the slices (one entry a case).
    Slices are numbered as in what was judged: inside the batch, or as in the trial context for a group.
    """

    rows: Table
    proofs: Sequence[tuple[Array, Array]] = ()
    undecided: Sequence[tuple[str, Array]] = ()

    def attributes(self) -> list[str]:
        return [name for name in self.rows.columns if name not in ("slice", "order")]


def proof(rows: Table, of: str = "", *, at: Ints | None = None) -> tuple[Array, Array]:
    """Returns the events that prove some rows: their columns `source` and `seq`, or those of that name, `of` before it.
    `at`: of which rows, -1 for none (None: of all).
    """
    source, seq = rows[f"{of}source"], rows[f"{of}seq"]
    return (source, seq) if at is None else (picked(source, at, -1), picked(seq, at, -1))


def split_undecided(rows: T) -> tuple[T, list[tuple[str, Array]]]:
    """Returns the rows that are certain, and of the others, for each reason (their column `why`), the slices."""
    sure = is_certain(rows["why"])
    undecided = rows.take(~sure)
    reasons = list(dict.fromkeys(undecided["why"].tolist()))
    return rows.take(sure), [(reason, undecided["slice"][undecided["why"] == reason]) for reason in reasons]


@dataclass(frozen=True)
class Invariant:
    """One invariant. `needs` names evidence (see `judge/evidence.py`), `level` the least cooperation it is seen at.

    `progress_in_kafka`: judged only if the consumer's progress is in the offsets log; where `outside_transactions`,
    only if it does not commit it in transactions. `progress_in_transaction`: only if it does.
    `summary`, `definition`, `cause` and `remedy` are its docstring's. `of_the_end`: it says what was still to do at the
    end; nobody is blamed for that while there was time left to do it. `intermediate_too`: it is looked for in the
    intermediate topics too, through which the group hands records on.
    `severity`: what is told first has the smallest. `rule`: which claims it can break. `message`: one instance in a
    sentence; names in braces are attributes, or the phrases of `verdict/messages.py`. `deciding`: attributes on which
    the rule depends: of every combination examples are kept. `follows`: the anomalies it may follow from, the nearest
    first, each with how it explains this one. `share_of`: the counts of a verdict of which its findings are a part, one
    of them each; the first that was counted is the whole.
    """

    name: str
    family: str
    needs: frozenset[str]
    level: str
    judge: Callable[[Any], Findings]
    severity: int
    rule: Rule
    message: str
    deciding: tuple[str, ...] = ()
    follows: Mapping[str, Explains] = field(default_factory=dict)
    of: str = "slice"  # or "group": judged from the summaries of all slices
    progress_in_kafka: bool = False
    outside_transactions: bool = False
    progress_in_transaction: bool = False
    of_the_end: bool = False
    intermediate_too: bool = False
    share_of: tuple[str, ...] = ()
    summary: str = ""
    definition: str = ""
    cause: str = ""
    remedy: str = ""


Judge = Callable[[Any], Findings]
_REGISTERED: dict[str, Invariant] = {}


def invariant(
    name: str,
    *,
    family: str,
    needs: Sequence[str],
    level: str,
    severity: int,
    rule: Rule,
    message: str,
    deciding: Sequence[str] = (),
    follows: Mapping[str, Explains] | None = None,
    of: str = "slice",
    progress_in_kafka: bool = False,
    outside_transactions: bool = False,
    progress_in_transaction: bool = False,
    of_the_end: bool = False,
    intermediate_too: bool = False,
    share_of: Sequence[str] = (),
) -> Callable[[Judge], Judge]:
    """Registers a function as the invariant that finds the anomaly `name`: all that is known of it stands there.

    Its docstring says what it is, with Kafka's own words; when a breach is legal; the smallest history; and in
    paragraphs of their own its `Usual cause:` and the `Remedy:`.
    """

    def register(judge: Judge) -> Judge:
        _REGISTERED[name] = Invariant(
            name=name,
            family=family,
            needs=frozenset(needs),
            level=level,
            judge=judge,
            severity=severity,
            rule=rule,
            message=message,
            deciding=tuple(deciding),
            follows=follows or {},
            of=of,
            progress_in_kafka=progress_in_kafka,
            outside_transactions=outside_transactions,
            progress_in_transaction=progress_in_transaction,
            of_the_end=of_the_end,
            intermediate_too=intermediate_too,
            share_of=tuple(share_of),
            **_told_in(judge.__doc__ or ""),
        )
        return judge

    return register


def _told_in(docstring: str) -> dict[str, str]:
    """Returns what a docstring says: its first sentence, all of the definition, and what stands in named paragraphs."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in docstring.strip().split("\n\n")]
    named = dict.fromkeys(PARAGRAPHS, "")
    for paragraph in paragraphs:
        name, _, text = paragraph.partition(": ")
        if name in named:
            named[name] = text
    definition = [one for one in paragraphs if one.partition(": ")[0] not in named]
    return {
        "summary": definition[0].partition(". ")[0].removesuffix(".") if definition else "",
        "definition": "\n\n".join(definition),
        **{field: named[name] for name, field in PARAGRAPHS.items()},
    }


def list_invariants() -> list[Invariant]:
    """Returns every invariant, by family and name."""
    _load()
    return sorted(_REGISTERED.values(), key=lambda one: (FAMILIES.index(one.family), one.name))


def find_invariant(name: str) -> Invariant | None:
    """Returns the invariant of an anomaly's name, if there is one: a plain failure of a run has none."""
    _load()
    return _REGISTERED.get(name)


@cache
def _load() -> None:
    """Imports every module of this package: invariants register themselves."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"kafka_trial.anomalies.{module.name}")


def deciding_attributes() -> list[str]:
    """Returns the attributes on which the rule of any anomaly depends."""
    return list(dict.fromkeys(name for one in _REGISTERED.values() for name in one.deciding))


def instances(findings: Findings, sources: Sequence[str]) -> Iterator[tuple[int, dict[str, Any], list[str]]]:
    """Yields (slice, attributes, events) of the examples that are kept, in the order of slice and `order`."""
    kept = _kept(findings)
    rows = findings.rows.take(kept)
    columns = {name: rows[name].tolist() for name in findings.attributes()}
    proofs = [(source[kept].tolist(), seq[kept].tolist()) for source, seq in findings.proofs]
    for place, number in enumerate(rows["slice"].tolist()):
        attributes = {name: value for name, values in columns.items() if (value := _plain(values[place])) is not None}
        events = [f"{sources[source[place]]}#{seq[place]}" for source, seq in proofs if source[place] >= 0]
        yield number, attributes, list(dict.fromkeys(events))


def per_slice(slices: Array) -> dict[int, int]:
    """Returns how often each slice occurs."""
    found, counts = np.unique(slices, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _kept(findings: Findings) -> Array:
    """Returns the rows that are kept as examples: the first ones of each slice and deciding combination."""
    rows = findings.rows
    deciding = [rows[name] for name in deciding_attributes() if name in rows.columns]
    codes = [np.unique(column.astype(str), return_inverse=True)[1] for column in deciding]
    order = ordered(rows["slice"], *codes, rows["order"])
    group = rows["slice"][order].astype(np.int64)
    for code in codes:
        group = group * (int(code.max(initial=0)) + 1) + code[order]
    few = order[number_in(group) < EXAMPLES_MAX]
    return few[ordered(rows["slice"][few], rows["order"][few])]


def _plain(value: Any) -> Any:
    return None if isinstance(value, int) and value in (NONE, NEVER) else value


def judged(invariant: Invariant, batch: Partitions) -> Findings:
    """Returns what an invariant finds.

    While the harness stood still it read nothing (`clocks.earliest`), so that what it read afterwards may have been
    said in time. It judges a second time as if it had never stood still, and once more, where it is not certain that
    an attempt was given up, as if it had not been. Cases that appear only then are undecided; they are
    counted by slice and deciding attributes.
    """
    found = invariant.judge(batch)
    undecided = [*found.undecided]
    if batch.trial_context.harness_stalls:
        undecided.append((Undecided.HARNESS_STALLED, _more(invariant, batch.without_harness_stalls, found)))
    if len(batch.uncertain_aborts):
        undecided.append((Undecided.ABORT_UNKNOWN, _more(invariant, batch.with_certain_aborts, found)))
    return replace(found, undecided=undecided)


def _more(invariant: Invariant, batch: Partitions, found: Findings) -> Ints:
    """Returns the slice of each case that appears in the same partitions under other assumptions, and was not found."""
    more = _cases(invariant.judge(batch)) - _cases(found)
    return np.array(sorted(case[0] for case in more.elements()), np.int64)


def _cases(findings: Findings) -> Counter[tuple[Any, ...]]:
    rows = findings.rows
    columns = [rows[name].tolist() for name in ("slice", *deciding_attributes()) if name in rows.columns]
    return Counter(zip(*columns, strict=True))
