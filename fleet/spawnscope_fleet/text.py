"""Renders a page as text: title, sentences, and aligned columns that fit the terminal."""

import shutil
import textwrap
import unicodedata

from .pages import Link
from .words import printable

# Without a terminal.
DEFAULT_WIDTH = 100
# A column of names is not narrower, even if the table does not fit.
MIN_NAME_WIDTH = 20
GAP = 2


def render(page, width=None):
    width = width or shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    lines = [printable(page.title)]
    for sentence in page.sentences:
        lines += wrapped("  ", "  ", sentence, width)
    for table in page.tables:
        if table.rows:
            lines += ["", *table_lines(table, width)]
        links = dict.fromkeys((cell, cell.address) for row in table.rows for cell in row if isinstance(cell, Link))
        lines += [f"  {printable(text)}: {printable(address)}" for text, address in links]
    for section in page.sections:
        lines += ["", *section_lines(section, width)]
    for part in page.parts:
        lines += ["", *render(part, width).splitlines()]
    return "".join(f"{line}\n" for line in lines)


def section_lines(section, width):
    """Numbers the items below a heading. Commands are not wrapped, so that they can be copied."""
    lines = wrapped("  ", "  ", section.heading, width)
    for number, item in enumerate(section.items, 1):
        lines += wrapped(f"  {number}. ", "     ", item.title, width)
        for line in item.lines:
            if line.startswith("  "):
                lines.append(f"       {printable(line.strip())}")
            else:
                lines += wrapped("     ", "        " if line.startswith("-> ") else "     ", line, width)
    return lines


def wrapped(first, following, line, width):
    options = {"initial_indent": first, "subsequent_indent": following, "break_on_hyphens": False}
    return textwrap.wrap(printable(line), max(width, 22), **options)


def table_lines(table, width):
    titles = [column.title for column in table.columns]
    rows = [titles] + [[printable(cell) for cell in row] for row in table.rows]
    widths = [max(width_of(row[column]) for row in rows) for column in range(len(titles))]
    shrink_names(widths, table, width)
    lines = []
    for row in rows:
        cells = []
        for cell, room, column in zip(row, widths, table.columns):
            cell = shortened(cell, room)
            pad = " " * (room - width_of(cell))
            cells.append(pad + cell if column.is_figure else cell + pad)
        lines.append(("  " + (" " * GAP).join(cells)).rstrip())
    return lines


def shrink_names(widths, table, width):
    """Makes the widest columns of names narrower until the table fits."""
    while 2 + GAP * (len(widths) - 1) + sum(widths) > width:
        names = [index for index, column in enumerate(table.columns) if not column.is_figure and widths[index] > MIN_NAME_WIDTH]
        if not names:
            return
        widths[max(names, key=widths.__getitem__)] -= 1


def shortened(cell, width):
    """Keeps the beginning of a text that is too wide or, if it is a path, its end, which says more."""
    if width_of(cell) <= width:
        return cell
    is_path = cell.startswith("/")
    while cell and width_of(cell) >= width:
        cell = cell[1:] if is_path else cell[:-1]
    return f"…{cell}" if is_path else f"{cell}…"


def width_of(text):
    """Returns the number of columns that a text takes in a terminal."""
    wide = {"W": 2, "F": 2}
    return sum(0 if unicodedata.combining(each) else wide.get(unicodedata.east_asian_width(each), 1) for each in text)
