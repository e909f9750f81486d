"""The plots of case 1: the drain rate over each knob, measured beside predicted, and the lag over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from lab.cases.blocking_turns import CASE, BlockingTurnsRow
from lab.cases.blocking_turns_figures import Knobs
from lab.cases.plots import plot
from lab.cases.timelines import MS_PER_S, TimelineRow

KNOBS: Final[dict[str, Callable[[Knobs], float]]] = {
    "records per fetch": lambda knobs: knobs.records_per_fetch,
    "timeout, s": lambda knobs: knobs.timeout_s,
    "empty partitions": lambda knobs: knobs.empty_partitions,
}
LAG_PLOT: Final = f"{CASE}-lag"
COLOURS: Final = ("tab:red", "tab:orange", "tab:green")


def plot_name(knob: str) -> str:
    """Returns the name of the plot over a knob."""
    return f"{CASE}-{knob.split(',')[0].replace(' ', '-')}"


def draw_knob(knob: str, grid: Sequence[BlockingTurnsRow]) -> None:
    """Draws rates over one knob, a colour for each setting of the other two."""
    of = KNOBS[knob]
    others = [name for name in KNOBS if name != knob]
    with plot(plot_name(knob), figsize=(7.0, 3.6)) as axes:
        for number, place in enumerate(sorted({tuple(KNOBS[name](row.knobs) for name in others) for row in grid})):
            own = [row for row in grid if tuple(KNOBS[name](row.knobs) for name in others) == place]
            label = ", ".join(f"{name.split(',')[0]} {value:g}" for name, value in zip(others, place, strict=True))
            colour = f"C{number}"
            predicted = [(of(row.knobs), row.predicted_per_s) for row in own if row.predicted_per_s]
            axes.plot(*zip(*predicted, strict=True), "-", color=colour, linewidth=1, label=label)
            measured = [(of(row.knobs), row.figures.rate_per_s) for row in own if row.ratio is not None]
            if measured:
                axes.plot(*zip(*measured, strict=True), "o", color=colour, markersize=4)
        axes.set_yscale("log")
        axes.set_xlabel(knob)
        axes.set_ylabel("records a second")
        axes.legend(
            loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small", title="line predicted, point measured"
        )


def draw_lags(curves: Sequence[TimelineRow]) -> None:
    """Draws how many records of the hot partition were not handled, in each of the trials."""
    with plot(LAG_PLOT) as axes:
        for row, colour in zip(curves, COLOURS, strict=False):
            at_s = [at / MS_PER_S for at in row.at_ms]
            axes.step(at_s, row.handled, where="post", linewidth=1, color=colour, label=row.cell.split("/")[1])
        axes.set_xlabel("seconds since the faults phase began, and the burst with it")
        axes.set_ylabel("records not handled")
        axes.legend(loc="upper right")
