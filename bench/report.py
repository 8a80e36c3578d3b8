"""One table with all brokers and the ratios, the same as JSON, and a plot of the ratios."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, field
from pathlib import Path

from bench.figures import FIGURES, Bound, Figure, Values

RESULTS = Path(__file__).parent / "results"

HEADINGS = ("figure", "unit", "Apache Kafka", "kfake", "ours", "ours/Apache", "floor", "", "aim", "")


@dataclass
class Report:
    machine: dict[str, str]
    load: str
    options: dict[str, object]
    began: str = field(default_factory=lambda: dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    values: Values = field(default_factory=dict)
    #: The reasons of rows that did not run, by broker and row.
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def figures(self) -> list[Figure]:
        measured = {key for values in self.values.values() for key in values}
        return [figure for figure in FIGURES if figure.key in measured]

    @property
    def missed(self) -> dict[str, str]:
        """The floors that are missed, by their figures."""
        return {
            figure.key: bound_text(figure, figure.floor)
            for figure in self.figures
            if figure.meets(figure.floor, self.values) is False
        }

    def save(self, file: Path | None = None) -> Path:
        file = file or RESULTS / f"{self.began[:16].replace(':', '')}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({**self.__dict__, "missed": self.missed}, indent=2) + "\n")
        return file

    def rows(self) -> list[tuple[str, ...]]:
        return [
            (
                figure.title,
                figure.unit,
                *(
                    number(self.values.get(system, {}).get(figure.key))
                    for system in ("apache", "kfake", "ours")
                ),
                times(figure.ratio(self.values)),
                bound_text(figure, figure.floor),
                verdict(figure.meets(figure.floor, self.values)),
                bound_text(figure, figure.aim),
                verdict(figure.meets(figure.aim, self.values)),
            )
            for figure in self.figures
        ]

    def title(self) -> str:
        return f"{self.began}  {self.machine['cpu']}  load: {self.load}  {self.options}"

    def print(self) -> None:
        try:
            print_rich(self.title(), self.rows())
        except ImportError:
            print_plain(self.title(), self.rows())
        if bare := self.machine.get("bare round trip"):
            print(f"a bare round trip without a broker: {bare}")
        if tls := self.machine.get("TLS by itself"):
            print(f"TLS by itself: {tls}")
        for what, why in self.failures.items():
            print(f"not measured: {what}: {why}")


def number(value: float | None) -> str:
    if value is None:
        return "-"
    if value >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3g}x"


def bound_text(figure: Figure, bound: Bound | None) -> str:
    return "" if bound is None else f"{'<=' if figure.better == 'lower' else '>='} {bound}"


def verdict(met: bool | None) -> str:
    return "" if met is None else "met" if met else "missed"


def print_rich(title: str, rows: list[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    colours = {"met": "green", "missed": "red"}
    table = Table(title=title, title_justify="left")
    for place, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if 2 <= place <= 5 else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell, style=colours.get(cell, "")) for cell in row))
    Console(width=180).print(table)


def print_plain(title: str, rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[place]) for row in [HEADINGS, *rows]) for place in range(len(HEADINGS))]
    print(title)
    for row in [HEADINGS, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def plot(report: Report, file: Path) -> None:
    """Our figure as a multiple of Apache Kafka's, so turned that longer is better; kfake as dots."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    def advantage(figure: Figure, system: str) -> float | None:
        mine = report.values.get(system, {}).get(figure.key)
        apache = report.values.get("apache", {}).get(figure.key)
        if not mine or not apache:
            return None
        return mine / apache if figure.better == "higher" else apache / mine

    shown = [figure for figure in report.figures if advantage(figure, "ours") is not None]
    if not shown:
        return
    names: list[str] = []
    for figure in shown:
        own = figure.title.strip()
        names.append(f"{names[-1].split(':')[0]}: {own}" if figure.title.startswith(" ") and names else own)
    places = range(len(shown))
    picture, axes = plt.subplots(figsize=(11, 0.36 * len(shown) + 1.6))
    lengths = [(advantage(figure, "ours") or 1) - 1 for figure in shown]
    axes.barh(places, lengths, left=1, color="#3572A5", label="ours")
    dots = [(place, value) for place, f in enumerate(shown) if (value := advantage(f, "kfake"))]
    if dots:
        axes.plot([v for _, v in dots], [p for p, _ in dots], "o", color="#00ADD8", label="kfake")
    axes.axvline(1, color="black", linewidth=1, label="Apache Kafka 4.3.1")
    axes.set_xscale("log")
    axes.set_yticks(list(places), names)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlabel("times as good as Apache Kafka (to the right is better)")
    axes.legend(loc="lower right")
    picture.tight_layout()
    picture.savefig(file, dpi=120)
    plt.close(picture)
