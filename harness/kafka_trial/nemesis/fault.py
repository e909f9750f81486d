"""The fault: what the nemesis can do, one generator each, found by name.

A fault is a generator over an `Injection` (`injection.py`): inject, `yield Evidence`, heal. Everything before the yield
injects and holds; the evidence is judged from samples only (`evidence.py`); everything after it heals, and must be
reached whatever happens, so faults keep what they injected in a `with`. A fault that nobody has shown to have bitten
makes the trial unknown. It declares its `consequences` once, when it is registered: from these words alone the judge
decides what to excuse, what to expect, and how long bounds are.

```python
@fault("latency", targets=NETWORK, scope="members", heals=True, consequences=[Consequence.DELAYS_ANSWERS])
def latency(injection: Injection, *, latency_ms: int = 400) -> Iterator[Evidence]:
    before = injection.links("before")
    with toxics(injection, "latency", streams=("downstream",), attributes={"latency": latency_ms}):
        inside = injection.hold(lambda: injection.links("inside"))
        yield evidence.latency(before, inside, ...)
```
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kafka_trial import nemesis
from kafka_trial.errors import InputError, shown, unknown_name
from kafka_trial.history.consequences import Consequence
from kafka_trial.nemesis.evidence import Evidence
from kafka_trial.nemesis.injection import Injection


class Fault(Protocol):
    """Inject, yield evidence, heal. Options are keyword-only and have defaults."""

    def __call__(self, injection: Injection, /, **options: Any) -> Iterator[Evidence]: ...


RECOVERS_WITHIN_S = 15.0  # traffic again after healing: five seconds, and time for a machine that has much else to do

Complete = Callable[[Injection, Evidence], Evidence]
Consequences = Collection[Consequence] | Callable[[Mapping[str, Any]], Collection[Consequence]]


@dataclass(frozen=True)
class FaultSpec:
    """A registered fault: its generator, the roles it can hit, what it breaks, and whether traffic must come back.

    `choices`: the values of options that are words; `broker_choices`: those with which a fault of members breaks a
    broker. One that `waits` is armed when its step begins, and injects itself when what it waits for comes. `check`
    returns what is wrong with options that are each allowed, in sentences. One with `sinks` is played at our
    HTTP server: consumers whose sink is none of them cannot be hit. `consequences`: what it does, or how that follows
    from its options.
    `complete` adds, after healing, the evidence that brokers write late (a session that expired, an ISR that came
    back); it may take `took_effect` away, never give it without samples.
    """

    name: str
    play: Fault
    targets: tuple[str, ...]
    scope: str
    heals: bool
    summary: str
    options: Mapping[str, Any]
    consequences: Consequences
    complete: Complete | None = None
    recovers_within_s: float = RECOVERS_WITHIN_S
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    broker_choices: Mapping[str, str] = field(default_factory=dict)
    waits: bool = False
    check: Callable[[Mapping[str, Any]], list[str]] | None = None
    sinks: tuple[str, ...] = ()

    def consequences_of(self, options: Mapping[str, Any]) -> frozenset[Consequence]:
        """Returns what it does when it is played with these options."""
        said = self.consequences
        return _checked(self.name, said({**self.options, **options}) if callable(said) else said)

    def scope_of(self, options: Mapping[str, Any]) -> str:
        """Returns what it breaks when it is played with these options."""
        breaks_brokers = any(options.get(name) == value for name, value in self.broker_choices.items())
        return "brokers" if breaks_brokers else self.scope


SCOPES = ("members", "brokers")
HINDERING = frozenset({*Consequence} - {Consequence.HARMLESS, Consequence.CHANGES_TOPIC, Consequence.LOADS_BROKERS})
EACH_MEMBER = "each-member"  # a target wherever `member` is one: all members, one after the other (`schedule.py`)
SUCCESSOR, PREDECESSOR = "successor", "predecessor"  # what `move-client` moves a member to
_REGISTRY: dict[str, FaultSpec] = {}


def fault(
    name: str,
    *,
    targets: tuple[str, ...],
    scope: str,
    heals: bool,
    consequences: Consequences | None = None,
    complete: Complete | None = None,
    recovers_within_s: float = RECOVERS_WITHIN_S,
    choices: Mapping[str, tuple[str, ...]] | None = None,
    broker_choices: Mapping[str, str] | None = None,
    waits: bool = False,
    check: Callable[[Mapping[str, Any]], list[str]] | None = None,
    sinks: tuple[str, ...] = (),
) -> Callable[[Any], Any]:
    """Registers the decorated generator as the fault called `name`.

    Raises:
        ValueError: its scope is not in SCOPES, or its consequences are missing, unknown or contradict each other.
    """
    if scope not in SCOPES:
        raise ValueError(f"scope {scope!r} is none of {SCOPES}")
    does = _said_by(name, consequences)

    def register(play: Any) -> Any:
        summary = (inspect.getdoc(play) or "").partition("\n")[0]
        options = {
            parameter.name: parameter.default
            for parameter in inspect.signature(play).parameters.values()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }
        _REGISTRY[name] = FaultSpec(
            *(name, play, targets, scope, heals, summary, options, does, complete, recovers_within_s),
            choices=choices or {},
            broker_choices=broker_choices or {},
            waits=waits,
            check=check,
            sinks=sinks,
        )
        return play

    return register


def _said_by(name: str, consequences: Consequences | None) -> Consequences:
    words = ", ".join(Consequence)
    if consequences is None:
        raise ValueError(f"fault {name} does not say its consequences: some of {words}; () where none of them holds")
    return consequences if callable(consequences) else _checked(name, consequences)


def _checked(name: str, consequences: Collection[str]) -> frozenset[Consequence]:
    if strange := [one for one in consequences if one not in {*Consequence}]:
        raise ValueError(f"fault {name} has the consequence {strange[0]!r}, which is none of {', '.join(Consequence)}")
    told = frozenset(map(Consequence, consequences))
    if Consequence.HARMLESS in told and told & HINDERING:
        raise ValueError(
            f"fault {name} is harmless, and yet {', '.join(sorted(told & HINDERING))}: say one or the other"
        )
    return told


def list_faults() -> dict[str, FaultSpec]:
    """Returns every registered fault by name, sorted; modules of this package are matrix_run once."""
    for module in pkgutil.iter_modules(nemesis.__path__):
        importlib.import_module(f"{nemesis.__name__}.{module.name}")
    return dict(sorted(_REGISTRY.items()))


def find_fault(name: str) -> FaultSpec:
    """Returns the fault called `name`.

    Raises:
        InputError: there is none; the message lists those there are.
    """
    faults = list_faults()
    if name not in faults:
        raise InputError("schedule", unknown_name("fault", name, faults))
    return faults[name]


def step_problems(fault_name: str, target: str, options: Mapping[str, Any]) -> list[str]:
    """Returns what is wrong with one step, as sentences listing the valid choices; empty when it is sound."""
    faults = list_faults()
    if fault_name not in faults:
        return [unknown_name("fault", fault_name, faults)]
    spec = faults[fault_name]
    role, _, index = target.partition(":")
    problems = []
    targets = (*spec.targets, EACH_MEMBER) if "member" in spec.targets else spec.targets
    if role not in targets:
        problems.append(unknown_name(f"target of {fault_name}", role, targets))
    elif index and not (index.isdecimal() and role in ("member", "leader")):
        problems.append(f"target {target!r}: only member:<index> and leader:<partition> take a number")
    problems += [
        unknown_name(f"option of {fault_name}", name, spec.options) for name in options if name not in spec.options
    ]
    problems += [
        f"option {name} of {fault_name} must be {_kinds(default)}, not {shown(options[name])}"
        for name, default in spec.options.items()
        if name in options and not _like(options[name], default)
    ]
    problems += [
        unknown_name(f"{name} of {fault_name}", options[name], choices)
        for name, choices in spec.choices.items()
        if isinstance(options.get(name), str) and options[name] not in choices
    ]
    if spec.check is not None and not problems:
        problems += [f"{fault_name}: {problem}" for problem in spec.check(options)]
    return problems


def _like(value: Any, default: Any) -> bool:
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, int | float):
        return isinstance(value, int | float) and value >= 0
    return isinstance(value, type(default))


def _kinds(default: Any) -> str:
    words = {bool: "true or false", str: "a text"}
    return words.get(type(default), "a number, 0 or more" if isinstance(default, int | float) else "a list")
