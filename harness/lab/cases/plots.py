"""How the plots of docs/cases look, and how they are saved: as SVG files beside the pages, the same of the same rows.

with plot("1-drain-rate", figsize=(7, 3)) as axes:
    axes.plot(seconds, records)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.repository import reports_folder

FOLDER: Final = "docs/cases/plots"
# Text stays text, so that a page can be searched and its difference read; ids are not drawn anew each time.
STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "kafka-trial",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


@contextmanager
def plot(name: str, *, figsize: tuple[float, float] = (7.0, 3.0)) -> Iterator[Axes]:
    """Yields the axes of one plot, `figsize` in inches, and saves it as docs/cases/plots/`name`.svg."""
    with plots(name, figsize=figsize) as (axes,):
        yield axes


@contextmanager
def plots(name: str, *, rows: int = 1, figsize: tuple[float, float] = (7.0, 3.0)) -> Iterator[tuple[Axes, ...]]:
    """Yields the axes of `rows` plots, one below the other over the same x axis, and saves them as one file."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=figsize)
        yield tuple(figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0])
        path = plot_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def plot_path(name: str) -> Path:
    """Returns the file of the plot of this name."""
    return reports_folder().parent / FOLDER / f"{name}.svg"


def shown(name: str, says: str) -> str:
    """Returns the Markdown that shows a plot on a page of docs/cases, with what it says for who cannot see it."""
    return f"![{says}](plots/{name}.svg)"
