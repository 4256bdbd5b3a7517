//! Details of the selected row: the latest launches of a command with their phases, or a process
//! with its arguments and its parent.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph};

use super::{Mode, ScreenStatus, View, arguments};
use crate::analyze::live::EndedLaunch;
use crate::analyze::model::launch::Outcome;
use crate::event::LaunchId;
use crate::present::text;
use crate::units;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &View, status: &ScreenStatus<'_>) {
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
