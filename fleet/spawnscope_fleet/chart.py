"""Draws the charts of a page as SVG within HTML. Colours are classes of page.css, so that they follow the theme; each series has a dash of its
own, too, so that they differ without colours."""

from datetime import date
from html import escape

from .pages import Lines
from .words import printable, time

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 760, 240, 70, 24, 20
ROW_HEIGHT = 18
STEPS = (1, 2, 2.5, 5, 10)


def draw(chart, title):
    return draw_lines(chart, title) if isinstance(chart, Lines) else draw_ratios(chart, title)


def svg(width, height, title, parts):
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{title}">{"".join(parts)}</svg>'


def text(x, y, words, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(printable(words))}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def draw_lines(chart, title):
    days = [date.fromisoformat(day).toordinal() for day in chart.dates]
    first, span = days[0], max(1, days[-1] - days[0])
    step = step_for(max([value for values in chart.series.values() for value in values if value is not None], default=1))
    top = step * 4
    place = lambda day, value: (LEFT + (day - first) / span * (WIDTH - LEFT - 20), TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM))
    parts = []
    for number in range(5):
        x, y = place(first, number * step)
        parts += [line(x, y, WIDTH - 20, y, "grid"), text(x - 6, y + 4, time(number * step), "end")]
    parts += [text(LEFT, HEIGHT - 6, chart.dates[0]), text(WIDTH - 20, HEIGHT - 6, chart.dates[-1], "end")]
    for index, (name, values) in enumerate(chart.series.items()):
        points = [(day, value, place(day, value)) for day, value in zip(days, values) if value is not None]
        path = " ".join(f"{x:.1f},{y:.1f}" for _, _, (x, y) in points)
        parts.append(f'<polyline class="series-{index}" points="{path}"/>')
        for day, value, (x, y) in points:
            words = f"{date.fromordinal(day)}: {name} {time(value)}"
            parts.append(f'<circle class="series-{index}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{escape(words)}</title></circle>')
        x = LEFT + 150 * index
        parts += [f'<polyline class="series-{index}" points="{x},10 {x + 24},10"/>', text(x + 30, 14, name)]
    return svg(WIDTH, HEIGHT, title, parts)


def step_for(largest):
    """Returns the smallest round step of which four reach the largest value."""
    power = 1
    while power * 40 < largest:
        power *= 10
    return next(step * power for step in STEPS if step * power * 4 >= largest)


def draw_ratios(chart, title):
    low = min(1, *(ratio - width for _, ratio, width, _ in chart.rows))
    high = max(1, *(ratio + width for _, ratio, width, _ in chart.rows))
    names = 200
    x_of = lambda ratio: names + (ratio - low) / max(high - low, 1e-9) * (WIDTH - names - 60)
    height = ROW_HEIGHT * (len(chart.rows) + 1) + 6
    parts = [line(x_of(1), 0, x_of(1), height - ROW_HEIGHT, "grid"), text(x_of(1), height - 6, "1.00: as the others", "middle")]
    for index, (name, ratio, width, is_outlier) in enumerate(chart.rows):
        y = ROW_HEIGHT * (index + 0.5)
        kind = "outlier" if is_outlier else "series-0"
        parts += [text(names - 8, y + 4, shortened(name), "end"), line(x_of(ratio - width), y, x_of(ratio + width), y, kind)]
        parts.append(f'<circle class="{kind}" cx="{x_of(ratio):.1f}" cy="{y:.1f}" r="4"><title>{escape(printable(name))}</title></circle>')
        parts.append(text(x_of(ratio + width) + 8, y + 4, f"{ratio:.2f}"))
    return svg(WIDTH, height, title, parts)


def shortened(name):
    return name if len(name) <= 26 else f"…{name[-25:]}"
