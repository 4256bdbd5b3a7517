"""The verbs that answer a question: each asks the engine, and builds the page that shows the answer."""

from . import Failure
from .doctor import Examinations, latest
from .links import Links
from .pages import Lines, Page, Ratios, table
from .questions import label_column, question
from .words import count, counted, one_line, time

FIGURES = ("runs", "launches", "critical", "critical start-up", "cpu")
ORDERS = {"critical": "critical_ns", "saving": "saving_ns", "count": "launches"}


def top(engine, options):
    if options.order == "saving" and options.by != "line":
        raise Failure("--order saving: savings are known by line only; use --by line")
    by, rows = options.by, {"rows": options.rows, "order": ORDERS[options.order]}
    if by == "line":
        found = engine.ask(question("lines", **rows))
        columns = (("line",), ("runs", "launches", "critical", "start-up", "fix saves"))
        cells = [[site(row), *counts(row), time(row["critical_ns"]), time(row["tax_ns"]), time(row["saving_ns"])] for row in found.rows]
    else:
        kind = "command" if by == "command" else "label"
        asked = question("commands", **rows) if kind == "command" else question("labels", label=label_column(by[len("label:") :]), **rows)
        found = engine.ask(asked)
        columns = ((kind,), FIGURES)
        links = Links(options)
        shown = {"label:commit": links.commit, "label:run": links.run}.get(by, str)
        cells = [[shown(row[kind]) if row[kind] else "(none)", *counts(row), *(time(row[name]) for name in ("critical_ns", "critical_tax_ns", "cpu_ns"))] for row in found.rows]
    title = {"line": "Lines", "command": "Commands"}.get(by, "Labels")
    return found, lambda: Page(f"{title} that cost the most", [extent(engine)], [table(*columns, cells)])


def trend(engine, options):
    found = engine.ask(question("trend"))
    # The latest days, in the order of time.
    found.rows = found.rows[-options.rows :]
    times = ("wall_ns_per_run", "wall_p50_ns", "wall_p95_ns", "tax_ns_per_run", "critical_tax_ns_per_run")
    cells = [[row["date"] or "-", count(row["runs"]), mean(row["launches_per_run"]), *(time(row[name]) for name in times)] for row in found.rows]
    columns = (("date",), ("runs", "launches", "wall time", "p50", "p95", "start-up", "critical start-up"))
    chart = Lines([row["date"] for row in found.rows], {name: [row[f"wall_{name}_ns"] for row in found.rows] for name in ("p50", "p95")})
    title = "Cost of a run by day (p50, p95: of the wall time)"
    return found, lambda: Page(title, [extent(engine)], [table(*columns, cells)], charts=[chart] if found.rows else [])


def advice(engine, options):
    found = engine.ask(question("advice", rows=options.rows))
    sentences = ["No run has a finding that is worth fixing."]
    if found.rows:
        first = found.rows[0]
        interval = f"{time(first['saving_ns'])} ({time(first['saving_low_ns'])} to {time(first['saving_high_ns'])})"
        runs = counted(first["runs"], "run", "runs")
        sentences = [f"Fix first: {first['title']}. This saves {interval} over {runs}. Fix: {one_line(first['fix'])}"]
    columns = (("rule", "line"), ("runs", "launches", "saves", "interval"))
    cells = [
        [row["rule"], owned_site(row), *counts(row), time(row["saving_ns"]), f"{time(row['saving_low_ns'])} to {time(row['saving_high_ns'])}"]
        for row in found.rows
    ]
    return found, lambda: Page("Findings over all runs", [extent(engine), *sentences], [table(*columns, cells)])


def machines(engine, options):
    found = engine.ask(question("machines", rows=options.rows))
    examinations = latest(engine)
    for row in found.rows:
        row["doctor"] = examinations.as_json(row["host"])
    found.columns.append("doctor")
    return found, lambda: machines_page(engine, found, examinations)


def machines_page(engine, found, examinations):
    outliers = [row for row in found.rows if row["is_outlier"]]
    sentences = [outlier_sentence(row, examinations, engine.dataset.name) for row in outliers]
    if not found.rows:
        sentences.append("Nothing to compare: no command of a job ran on two machines.")
    elif not outliers:
        sentences.append("No machine's launches cost clearly more or less than those of the others.")
    cells = [
        [host(row), *counts(row), time(row["launch_ns"]), ratio(row), time(row["scanner_ns"]), "differs" if row["is_outlier"] else ""]
        for row in found.rows
    ]
    columns = (("machine",), ("runs", "launches", "per launch", "vs others", "scanner waits", "verdict"))
    sections = [examinations.section(row["host"]) for row in outliers]
    known = [(host(row), row["against_others"], row["half_width"] or 0, bool(row["is_outlier"])) for row in found.rows if row["against_others"]]
    charts = [Ratios(known)] if known else []
    return Page("Launches by machine", [*sentences, extent(engine)], [table(*columns, cells)], [each for each in sections if each], charts)


def outlier_sentence(row, examinations, dataset):
    scanner = f" Its launches waited {time(row['scanner_ns'])} for a scanner." if row["scanner_ns"] else ""
    summary = examinations.summary(row["host"])
    doctor = f"`spawnscope doctor` {summary}." if summary else f"`spawnscope doctor` was not run there: run `spawnscope doctor -o {dataset}` on it."
    cost = f"launches cost {ratio(row)} times what the same commands of the same jobs cost on the others ({time(row['launch_ns'])} per launch)"
    return f"{host(row)}: {cost}.{scanner} {doctor}"


def ratio(row):
    """The cost of the same commands in relation to the other machines, with its interval: `1.52 +- 0.04`."""
    if row["against_others"] is None:
        return "-"
    width = "" if row["half_width"] is None else f" +- {row['half_width']:.2f}"
    return f"{row['against_others']:.2f}{width}"


def host(row):
    return row["host"] or "(unknown)"


def doctor(engine, options):
    found = Examinations.ask(engine, options.rows)
    return found, lambda: Examinations(found).page(engine.dataset.name, extent(engine))


def sql(engine, options):
    found = engine.ask(options.query)
    figures = [all(isinstance(row[column], (int, float)) or row[column] is None for row in found.rows) for column in found.columns]
    links = Links(options)
    cells = [["-" if row[column] is None else links.cell(column, row[column]) for column in found.columns] for row in found.rows]

    def page():
        shown = table(found.columns, (), cells)
        shown.columns = [column._replace(is_figure=is_figure) for column, is_figure in zip(shown.columns, figures)]
        return Page(options.query, [counted(len(found.rows), "row", "rows")], [shown])

    return found, page


def extent(engine):
    """Describes the size of the dataset: `2,800 runs of 200 jobs on 20 machines, 2026-11-01 to 2026-11-14, 1,204,000 launches`."""
    row = engine.ask(question("totals")).rows[0]
    runs, jobs, hosts, launches = (
        counted(row[column], one, many)
        for column, one, many in [("runs", "run", "runs"), ("jobs", "job", "jobs"), ("hosts", "machine", "machines"), ("launches", "launch", "launches")]
    )
    first, last = row["first_date"], row["last_date"]
    dates = first if first == last else f"{first} to {last}"
    lost = row["runs_with_losses"]
    losses = f"; {counted(lost, 'run', 'runs')} lost events, so their counts are too low" if lost else ""
    return f"{runs} of {jobs} on {hosts}, {dates or 'dates unknown'}, {launches}{losses}"


def counts(row):
    return count(row["runs"]), count(row["launches"])


def mean(number):
    return "-" if number is None else f"{number:,.1f}"


def owned_site(row):
    if not row["file"]:
        return "-"
    return f"{site(row)} (generated or third-party code)" if row["is_foreign"] else site(row)


def site(row):
    """Returns the name of a call site: `build.sh:41`, or a function and its module, or the program that ran a script without a file."""
    file, line = row.get("file"), row.get("line")
    if file:
        return f"{file}:{line}" if line and line > 0 else file
    function, module, program, text = (row.get(name) for name in ("function", "module", "program", "text"))
    module = module and module.rsplit("/", 1)[-1]
    if function:
        return f"{function} ({module})" if module else function
    if program:
        return f"{program} -c '{text}'" if text else program
    return module or "(unknown)"
