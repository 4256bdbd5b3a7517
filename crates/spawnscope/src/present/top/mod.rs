//! The live view of `top`. Its state is the list or the tree, the order, the filter, the pause, and
//! a selection that stays on its row; only keys and new snapshots change it. It is drawn with
//! ratatui: a title with the rate of launches, the list of commands or the tree of processes,
//! details of the selected row, and the keys. Texts of other programs are escaped. Colours are the
//! 16 that terminals map to their theme.

use std::cmp::Ordering;

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Sparkline, Table, TableState};

use super::text;
use crate::analyze::live::{CommandRow, EndedLaunch, ProcessRow, Snapshot};
use crate::analyze::model::launch::Outcome;
use crate::event::{LaunchId, Nanos};
use crate::units;

/// Width of the title without what is followed: the name, the time, the state and the gaps.
const TITLE_WIDTH: usize = 38;
/// Number of rows of details below the table.
const DETAILS_ROWS: u16 = 11;

/// What the screen shows besides the rows.
#[derive(Debug)]
pub struct ScreenStatus<'a> {
    pub followed: &'a str,
    /// The number of launches in each of the last seconds, the latest second last.
    pub rates: &'a [u64],
    pub now: Nanos,
    /// The number of launches that are not shown because drawing was too slow.
    pub skipped: u64,
    pub has_ended: bool,
    pub has_colour: bool,
}

impl ScreenStatus<'_> {
    fn style(&self, colour: Color) -> Style {
        if self.has_colour { Style::new().fg(colour) } else { Style::new() }
    }
}

/// Draws the screen. Returns how many rows of the table fit.
pub fn draw(frame: &mut Frame<'_>, view: &View, status: &ScreenStatus<'_>) -> usize {
    let details = if view.has_details { DETAILS_ROWS } else { 0 };
    let mut parts = Constraint::from_lengths([2, 1, 3, details, 1]);
    parts[2] = Constraint::Min(3);
    let [title, rates, table, below, keys] = Layout::vertical(parts).areas(frame.area());
    draw_title(frame, title, view, status);
    draw_rates(frame, rates, status);
    match view.mode {
        Mode::Commands => draw_commands(frame, table, view, status),
        Mode::Processes => draw_processes(frame, table, view, status),
    }
    if view.has_details {
        draw_details(frame, below, view, status);
    }
    draw_keys(frame, keys, view, status);
    usize::from(table.height.saturating_sub(1))
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, view: &View, status: &ScreenStatus<'_>) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let state = match (status.has_ended, view.is_paused) {
        (true, _) => Span::styled(" ENDED ", status.style(Color::Magenta).add_modifier(Modifier::REVERSED)),
        (false, true) => Span::styled(" PAUSED ", status.style(Color::Yellow).add_modifier(Modifier::REVERSED)),
        (false, false) => Span::raw(""),
    };
    let followed = text::truncate(status.followed, usize::from(area.width).saturating_sub(TITLE_WIDTH));
    let name = Line::from(vec![
        Span::styled("spawnscope top", bold),
        Span::raw(format!("  {followed}  {}  ", units::time(status.now))),
        state,
    ]);
    let snapshot = view.shown();
    let skipped = match status.skipped {
        0 => String::new(),
        skipped => format!("  {} skipped", units::count(skipped)),
    };
    let counts = Line::from(format!(
        "{}/s  {}  {} running{skipped}",
        units::count(status.rates.last().copied().unwrap_or(0)),
        units::counted(snapshot.started, "program started", "programs started"),
        units::count(snapshot.running),
    ));
    frame.render_widget(Paragraph::new(vec![name, counts]), area);
}

/// Draws the launches per second, the latest second at the right.
fn draw_rates(frame: &mut Frame<'_>, area: Rect, status: &ScreenStatus<'_>) {
    let first = status.rates.len().saturating_sub(area.width.into());
    let line = Sparkline::default().data(&status.rates[first..]);
    frame.render_widget(line.style(status.style(Color::Green)), area);
}

fn draw_commands(frame: &mut Frame<'_>, area: Rect, view: &View, status: &ScreenStatus<'_>) {
    let shown = view.commands();
    let mut widths = Constraint::from_lengths([16, 9, 8, 7, 9, 9, 10]);
    widths[0] = Constraint::Min(16);
    let header = [
        Line::from(if view.sort == Sort::Name { "program▲" } else { "program" }),
        sortable_title("started", view, Sort::Count),
        right_aligned("running"),
        sortable_title("failed", view, Sort::Failures),
        sortable_title("start-up", view, Sort::Tax),
        sortable_title("critical", view, Sort::Critical),
        Line::from("most of it"),
    ];
    let rows = shown.iter().map(|row| command_row(row, status));
    draw_table(frame, area, view, Table::new(rows, widths).header(header_row(header)));
}

fn sortable_title<'a>(title: &str, view: &View, sort: Sort) -> Line<'a> {
    right_aligned(if view.sort == sort { format!("{title}▼") } else { title.to_owned() })
}

fn right_aligned<'a>(text: impl Into<Line<'a>>) -> Line<'a> {
    text.into().right_aligned()
}

fn command_row<'a>(row: &CommandRow, status: &ScreenStatus<'_>) -> Row<'a> {
    let failed = right_aligned(units::count(row.failures));
    Row::new([
        Cell::new(text::escape(&row.command)),
        Cell::new(right_aligned(units::count(row.count))),
        Cell::new(right_aligned(units::count(row.running))),
        Cell::new(if row.failures > 0 { failed.style(status.style(Color::Red)) } else { failed }),
        Cell::new(right_aligned(units::time(row.tax))),
        Cell::new(right_aligned(units::time(row.critical))),
        Cell::new(row.largest.map_or("-", |phase| phase.name())),
    ])
}

fn draw_processes(frame: &mut Frame<'_>, area: Rect, view: &View, status: &ScreenStatus<'_>) {
    let shown = view.processes();
    let widths = [Constraint::Length(8), Constraint::Length(9), Constraint::Length(9), Constraint::Min(20)];
    let header = [right_aligned("pid"), right_aligned("age"), right_aligned("launched"), Line::from("process")];
    // The columns before the last, and the gaps between them.
    let available = usize::from(area.width).saturating_sub(8 + 9 + 9 + 3);
    let rows = shown.iter().map(|row| process_row(row, available, status));
    draw_table(frame, area, view, Table::new(rows, widths).header(header_row(header)));
}

fn process_row<'a>(row: &ProcessRow, available: usize, status: &ScreenStatus<'_>) -> Row<'a> {
    let age = row.birth.map(|birth| status.now.since(birth));
    // In deep trees, half of the line stays free for names.
    let indent = (2 * row.depth).min(available / 2);
    let name = text::escape(&row.command);
    let arguments = arguments(&row.argv).skip(1);
    let rest = text::command_line(arguments, Some(available.saturating_sub(indent + text::width(&name) + 1)));
    Row::new([
        Cell::new(right_aligned(row.pid.map_or_else(|| "-".to_owned(), |pid| pid.0.to_string()))),
        Cell::new(right_aligned(units::time(age))),
        Cell::new(right_aligned(units::count(row.launched))),
        Cell::new(Line::from(vec![
            Span::raw(" ".repeat(indent)),
            Span::styled(name, Style::new().add_modifier(Modifier::BOLD)),
            Span::raw(format!(" {rest}")),
        ])),
    ])
}

fn header_row<'a, const N: usize>(titles: [Line<'a>; N]) -> Row<'a> {
    Row::new(titles.map(Cell::new)).style(Style::new().add_modifier(Modifier::UNDERLINED))
}

/// Draws a table with its selected row in reverse, scrolled so that this row is visible.
fn draw_table(frame: &mut Frame<'_>, area: Rect, view: &View, table: Table<'_>) {
    let table = table.row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::new().with_selected(view.selected());
    frame.render_stateful_widget(table, area, &mut state);
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, view: &View, status: &ScreenStatus<'_>) {
    let line = if view.is_typing {
        Line::from(format!("filter: {}▏  Enter keeps it, Esc clears it", text::escape(view.filter.as_bytes())))
    } else if view.filter.is_empty() {
        Line::from("q quit  Tab tree  Enter details  p parent  / filter  Space pause  t r c f n sort")
    } else {
        let filter = text::escape(view.filter.as_bytes());
        Line::from(format!("filter: {filter}  Esc clears it  q quit  Tab tree  Enter details  Space pause"))
    };
    frame.render_widget(Paragraph::new(line).style(status.style(Color::Cyan)), area);
}

/// Iterates over arguments that are each terminated by NUL.
fn arguments(argv: &[u8]) -> impl Iterator<Item = &[u8]> {
    let arguments = argv.strip_suffix(b"\0").unwrap_or(argv).split(|byte| *byte == 0);
    arguments.filter(move |_| !argv.is_empty())
}

/// Draws details of the selected row: the latest launches of a command with their phases, or a
/// process with its arguments and its parent.
fn draw_details(frame: &mut Frame<'_>, area: Rect, view: &View, status: &ScreenStatus<'_>) {
    let width = usize::from(area.width);
    let lines = match view.mode {
        Mode::Commands => command_lines(view, width, status),
        Mode::Processes => process_lines(view, width, status),
    };
    let block = Block::new().borders(Borders::TOP).title("details");
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Returns two lines for each of the latest launches of the selected command: its arguments, and
/// its phases.
fn command_lines<'a>(view: &View, width: usize, status: &ScreenStatus<'_>) -> Vec<Line<'a>> {
    let commands = view.commands();
    let Some(command) = commands.get(view.selected()) else {
        return vec![Line::from("no command is selected")];
    };
    if command.recent.is_empty() {
        return vec![Line::from("no launch of this command has ended yet")];
    }
    let launches = command.recent.iter();
    launches.flat_map(|launch| launch_lines(launch, view, width, status)).collect()
}

fn launch_lines<'a>(launch: &EndedLaunch, view: &View, width: usize, status: &ScreenStatus<'_>) -> [Line<'a>; 2] {
    let pid = launch.pid.map_or_else(|| "-".to_owned(), |pid| pid.0.to_string());
    let ended = match launch.outcome {
        Outcome::Code(0) | Outcome::Running | Outcome::Unknown => String::new(),
        Outcome::Code(code) => format!(" exit {code}"),
        Outcome::Signal { number, .. } => format!(" signal {number}"),
    };
    let parent = launch.parent.and_then(|id| running_process(view, id));
    let parent = parent.map_or_else(String::new, |parent| format!(" from {parent}"));
    let head = format!("{pid} {}{ended}{parent}: ", units::time(launch.total));
    let available = width.saturating_sub(text::width(&head));
    let argv = if launch.argv.is_empty() {
        text::truncate(&text::escape(&launch.command), available)
    } else {
        text::command_line(arguments(&launch.argv), Some(available))
    };
    let head = Line::from(format!("{head}{argv}"));
    let head = if launch.has_failed() { head.style(status.style(Color::Red)) } else { head };
    let phases = launch.phases.iter().flat_map(|phases| phases.iter());
    let known = phases.filter_map(|(phase, time)| Some((phase, time.filter(|time| time.0 > 0)?)));
    let phases: Vec<String> = known.map(|(phase, time)| format!("{} {}", phase.name(), units::time(time))).collect();
    let phases = text::truncate(&format!("  {}", phases.join("  ")), width);
    [head, Line::from(phases).style(Style::new().add_modifier(Modifier::DIM))]
}

fn process_lines<'a>(view: &View, width: usize, status: &ScreenStatus<'_>) -> Vec<Line<'a>> {
    let processes = view.processes();
    let Some(process) = processes.get(view.selected()) else {
        return vec![Line::from("no process is selected")];
    };
    let age = process.birth.map(|birth| status.now.since(birth));
    let parent = process.parent.and_then(|id| running_process(view, id));
    let mut lines = vec![
        Line::from(format!(
            "{}  pid {}  age {}  {} launched",
            text::escape(&process.command),
            process.pid.map_or_else(|| "-".to_owned(), |pid| pid.0.to_string()),
            units::time(age),
            units::count(process.launched)
        )),
        Line::from(parent.map_or_else(
            || "parent: ended, or not recorded".to_owned(),
            |parent| format!("parent: {parent} (p selects it)"),
        )),
    ];
    let arguments: Vec<&[u8]> = arguments(&process.argv).collect();
    if !arguments.is_empty() {
        let command_line = text::command_line(arguments, Some(8 * width));
        lines.extend(text::wrap(&command_line, width).into_iter().map(Line::from));
    }
    lines
}

/// Returns the name and pid of a process if it is running.
fn running_process(view: &View, id: LaunchId) -> Option<String> {
    let process = view.shown().processes.iter().find(|process| process.id == id)?;
    let pid = process.pid.map_or_else(String::new, |pid| format!(" {}", pid.0));
    Some(format!("{}{pid}", text::escape(&process.command)))
}

const MAX_FILTER_CHARACTERS: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Commands, with the sums of their launches.
    #[default]
    Commands,
    /// The running processes, as a tree.
    Processes,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Tax,
    Critical,
    Count,
    Failures,
    Name,
}

#[derive(Debug, Default)]
pub struct View {
    mode: Mode,
    sort: Sort,
    filter: String,
    is_typing: bool,
    is_paused: bool,
    has_details: bool,
    pub is_over: bool,
    command: Option<Vec<u8>>,
    process: Option<LaunchId>,
    shown: Snapshot,
}

impl View {
    /// Shows a newer snapshot, unless the view is paused.
    pub fn update(&mut self, snapshot: Snapshot) {
        if !self.is_paused {
            self.shown = snapshot;
        }
    }

    fn shown(&self) -> &Snapshot {
        &self.shown
    }

    /// Returns the commands that match the filter, in order.
    fn commands(&self) -> Vec<&CommandRow> {
        let all = self.shown.commands.iter();
        let mut rows: Vec<&CommandRow> = all.filter(|row| self.matches(&row.command, &[])).collect();
        rows.sort_by(|a, b| {
            let order = match self.sort {
                Sort::Tax => b.tax.cmp(&a.tax),
                Sort::Critical => b.critical.cmp(&a.critical),
                Sort::Count => b.count.cmp(&a.count),
                Sort::Failures => b.failures.cmp(&a.failures),
                Sort::Name => Ordering::Equal,
            };
            order.then_with(|| a.command.cmp(&b.command))
        });
        rows
    }

    /// Returns the processes that match the filter, parents before their children.
    fn processes(&self) -> Vec<&ProcessRow> {
        let all = self.shown.processes.iter();
        all.filter(|row| self.matches(&row.command, &row.argv)).collect()
    }

    /// Returns the index of the selected row, or 0 without a selection.
    fn selected(&self) -> usize {
        let index = match self.mode {
            Mode::Commands => self.commands().iter().position(|row| Some(&row.command) == self.command.as_ref()),
            Mode::Processes => self.processes().iter().position(|row| Some(row.id) == self.process),
        };
        index.unwrap_or(0)
    }

    fn matches(&self, command: &[u8], argv: &[u8]) -> bool {
        self.filter.is_empty() || [command, argv].iter().any(|bytes| text::escape(bytes).contains(&self.filter))
    }

    /// Changes the view for a key. `page` is the number of rows on the screen.
    pub fn press(&mut self, key: KeyEvent, page: usize) {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            self.is_over |= key.code == KeyCode::Char('c');
            return;
        }
        if self.is_typing {
            self.type_filter(key.code);
            return;
        }
        let page = page.max(1);
        match key.code {
            KeyCode::Char('q') => self.is_over = true,
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('t') => self.sort = Sort::Tax,
            KeyCode::Char('r') => self.sort = Sort::Critical,
            KeyCode::Char('c') => self.sort = Sort::Count,
            KeyCode::Char('f') => self.sort = Sort::Failures,
            KeyCode::Char('n') => self.sort = Sort::Name,
            KeyCode::Char('p') => self.jump_to_parent(),
            KeyCode::Tab => self.change_mode(),
            KeyCode::Enter => self.has_details = !self.has_details,
            KeyCode::Esc if self.has_details => self.has_details = false,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Up | KeyCode::Char('k') => self.select(self.selected().saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.select(self.selected() + 1),
            KeyCode::PageUp => self.select(self.selected().saturating_sub(page)),
            KeyCode::PageDown => self.select(self.selected() + page),
            KeyCode::Home => self.select(0),
            KeyCode::End => self.select(usize::MAX),
            _ => {}
        }
    }

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(character) if self.filter.chars().count() < MAX_FILTER_CHARACTERS => {
                self.filter.push(character);
            }
            _ => {}
        }
    }

    fn change_mode(&mut self) {
        self.mode = match self.mode {
            Mode::Commands => Mode::Processes,
            Mode::Processes => Mode::Commands,
        };
    }

    fn select(&mut self, index: usize) {
        match self.mode {
            Mode::Commands => {
                let rows = self.commands();
                let row = rows.get(index).or(rows.last());
                self.command = row.map(|row| row.command.clone());
            }
            Mode::Processes => {
                let rows = self.processes();
                let row = rows.get(index).or(rows.last());
                self.process = row.map(|row| row.id);
            }
        }
    }

    /// Selects the parent of the selected process, or of the latest launch of the selected command,
    /// in the tree. Does nothing if the parent has ended.
    fn jump_to_parent(&mut self) {
        let index = self.selected();
        let parent = match self.mode {
            Mode::Processes => self.processes().get(index).and_then(|row| row.parent),
            Mode::Commands => {
                let mut processes = self.shown.processes.iter();
                self.commands().get(index).and_then(|row| {
                    let latest_parent = row.recent.first().and_then(|launch| launch.parent);
                    latest_parent.or_else(|| processes.find(|process| process.command == row.command)?.parent)
                })
            }
        };
        if let Some(parent) = parent.filter(|id| self.shown.processes.iter().any(|row| row.id == *id)) {
            self.filter.clear();
            (self.mode, self.process) = (Mode::Processes, Some(parent));
        }
    }
}

#[cfg(test)]
mod tests;
