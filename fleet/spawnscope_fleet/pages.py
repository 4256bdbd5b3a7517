"""A page: an answer as it is shown, with a title, sentences (the most important first), tables of cells, and sections of items below
them. Text and HTML are made from it. A line of an item that begins with two spaces is a command to type."""

from dataclasses import dataclass, field
from typing import List, NamedTuple


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
class Page:
    title: str
    sentences: List[str]
    tables: List[Table]
    sections: List[Section] = field(default_factory=list)


def table(names, figures, rows):
    """Makes a table whose first columns are names, and the others figures."""
    return Table([Column(title, False) for title in names] + [Column(title, True) for title in figures], list(rows))
