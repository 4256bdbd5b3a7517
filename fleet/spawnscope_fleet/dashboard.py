"""`fleet dashboard`: the answers to the questions of every morning on one page."""

from argparse import Namespace

from .engine import Answer
from .pages import Page
from .regressions import regressions
from .verbs import advice, extent, machines, top, trend

TREND_DAYS = 90


def dashboard(engine, options):
    top_options = Namespace(**vars(options), by="line", order="critical")
    asked = {"trend": trend(engine, Namespace(**{**vars(options), "rows": TREND_DAYS}))}
    if options.since:
        asked["regressions"] = regressions(engine, options)
    asked |= {"machines": machines(engine, options), "top": top(engine, top_options), "advice": advice(engine, options)}

    def page():
        parts = [part() for _, part in asked.values()]
        whole = extent(engine)
        for part in parts:
            part.sentences = [sentence for sentence in part.sentences if sentence != whole]
        return Page("dashboard", [whole], [], parts=parts)

    return Answer(rows={name: found.rows for name, (found, _) in asked.items()}), page
