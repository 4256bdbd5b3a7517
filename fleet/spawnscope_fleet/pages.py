"""A page: an answer as it is shown, with a title, sentences (the most important first), charts, tables of cells, and sections of items below
them. Text and HTML are made from it; only HTML has the charts. A line of an item that begins with two spaces is a command to type."""

from dataclasses import dataclass, field
from typing import Dict, List, NamedTuple, Optional, Tuple, Union


class Link(str):
    """A cell that leads to an address."""

    def __new__(cls, text, address):
        link = super().__new__(cls, text)
        link.address = address
        return link


class Column(NamedTuple):
    title: str
    # Figures are aligned to the right.
    is_figure: bool


@dataclass
class Table:
    columns: List[Column]
    rows: List[List[str]]


@dataclass
class Item:
    title: str
    lines: List[str]


@dataclass
class Section:
    heading: str
    items: List[Item]


@dataclass
class Lines:
    """A chart of times over days. `series` maps names to values in nanoseconds, one for each date; None is unknown."""

    dates: List[str]
    series: Dict[str, List[Optional[float]]]


@dataclass
class Ratios:
    """A chart of ratios to 1 with their intervals: `rows` are names, ratios, half widths, and whether the ratio is an outlier."""

    rows: List[Tuple[str, float, float, bool]]


@dataclass
class Page:
    title: str
    sentences: List[str]
    tables: List[Table]
    sections: List[Section] = field(default_factory=list)
    charts: List[Union[Lines, Ratios]] = field(default_factory=list)
    # Pages below this one, as in a dashboard.
    parts: List["Page"] = field(default_factory=list)


def table(names, figures, rows):
    """Makes a table whose first columns are names, and the others figures."""
    return Table([Column(title, False) for title in names] + [Column(title, True) for title in figures], list(rows))
