"""Renders a page as a self-contained HTML file, which loads nothing."""

from html import escape
from pathlib import Path

from . import VERSION, chart
from .pages import Link
from .words import printable

STYLE = Path(__file__).parent / "page.css"
# A date or a short commit is not wrapped.
MAX_SHORT = 14
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def render(page):
    title = shown(page.title)
    body = "\n".join([contents(page), *map(part, page.parts)])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="spawnscope-fleet {VERSION}">
<title>{title} - Spawnscope fleet</title>
<link rel="icon" href="data:,">
<style>{STYLE.read_text()}</style>
</head>
<body>
<header>
<h1><span class="product">Spawnscope</span> fleet: {title}</h1>
{sentences(page)}
</header>
<main>
{body}
</main>
<footer><p>Written by spawnscope-fleet {VERSION}. This file contains all of its data and loads nothing.</p></footer>
</body>
</html>
"""


def sentences(page):
    first, *others = page.sentences or [""]
    return f'<p class="verdict">{shown(first)}</p>' + "".join(f"\n<p>{shown(sentence)}</p>" for sentence in others)


def contents(page):
    title = shown(page.title)
    tables = [table(each, title) for each in page.tables if each.rows]
    drawings = [f"<section>{scrolled(chart.draw(each, title), title)}</section>" for each in page.charts]
    return "\n".join([*drawings, *tables, *map(section, page.sections)])


def part(page):
    return f"<h2>{shown(page.title)}</h2>\n{sentences(page)}\n{contents(page)}"


def table(table, title):
    heads = "".join(f'<th scope="col"{number(column)}>{shown(column.title)}</th>' for column in table.columns)
    rows = "\n".join(f"<tr>{''.join(map(cell, row, table.columns))}</tr>" for row in table.rows)
    whole = f'<table class="figures">\n<thead><tr>{heads}</tr></thead>\n<tbody>{rows}</tbody>\n</table>'
    return f"<section>\n{scrolled(whole, title)}\n</section>"


def scrolled(wide, title):
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">{wide}</div>'


def cell(text, column):
    inner = f'<a href="{escape(text.address)}">{shown(text)}</a>' if isinstance(text, Link) else shown(text)
    label = "label" if len(text) > MAX_SHORT else "label short"
    return f'<td class="{"number" if column.is_figure else label}">{inner}</td>'


def number(column):
    return ' class="number"' if column.is_figure else ""


def section(section):
    items = "\n".join(f"<li><strong>{shown(item.title)}</strong>\n{''.join(map(line, item.lines))}</li>" for item in section.items)
    return f'<section>\n<h2>{shown(section.heading)}</h2>\n<ol class="items">{items}</ol>\n</section>'


def line(text):
    return f"<pre>{shown(text.strip())}</pre>\n" if text.startswith("  ") else f"<p>{shown(text)}</p>\n"


def shown(text):
    return escape(printable(text))
