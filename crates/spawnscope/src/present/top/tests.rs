//! Tests keys and screens with hand-written snapshots, drawn into ratatui's test terminal.

use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use crate::analyze::live::{EndedLaunch, Snapshot};
use crate::analyze::model::launch::Outcome;
use crate::analyze::model::phases::Phase;
use crate::event::{LaunchId, Pid};

fn command(name: &str, count: u64, tax: u64, failures: u64) -> CommandRow {
    let launch = EndedLaunch {
        id: LaunchId(9),
        pid: Some(Pid(4009)),
        parent: Some(LaunchId(2)),
        command: name.into(),
        argv: Arc::from(*b"tool\0--flag\0\x1b[2J\0"),
        outcome: Outcome::Code(1),
        phases: None,
        tax: None,
        total: Some(Nanos(1_500_000)),
    };
    CommandRow {
        command: name.into(),
        count,
        running: 0,
        failures,
        tax: Some(Nanos(tax)),
        critical: Some(Nanos(count * 1_000)),
        largest: Some(Phase::Exec),
        recent: vec![Arc::new(launch)],
    }
}

fn process(id: u64, parent: Option<u64>, depth: usize, name: &str) -> ProcessRow {
    ProcessRow {
        id: LaunchId(id),
        parent: parent.map(LaunchId),
        depth,
        pid: Some(Pid(4000 + id as i32)),
        command: name.into(),
        argv: format!("{name}\0--all\0").into_bytes(),
        birth: Some(Nanos(0)),
        launched: 3,
    }
}

fn snapshot() -> Snapshot {
    Snapshot {
        started: 1234,
        running: 2,
        commands: vec![
            command("cc1", 10, 9_000_000, 0),
            command("sed", 500, 5_000_000, 2),
            command("a\x1b[31mb", 1, 1_000_000, 1),
        ],
        processes: vec![process(1, None, 0, "make"), process(2, Some(1), 1, "sh"), process(3, Some(2), 2, "sed")],
    }
}

fn press(view: &mut View, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\x1b' => KeyCode::Esc,
            'v' => KeyCode::Down,
            other => KeyCode::Char(other),
        };
        view.press(KeyEvent::new(code, KeyModifiers::NONE), 10);
    }
}

fn view_after(keys: &str) -> View {
    let mut view = View::default();
    view.update(snapshot());
    press(&mut view, keys);
    view
}

fn screen(view: &View, width: u16, height: u16, has_colour: bool) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let status = ScreenStatus {
        followed: "make -j8",
        rates: &[0, 10, 512],
        now: Nanos(12_000_000_000),
        skipped: 0,
        has_ended: false,
        has_colour,
    };
    terminal
        .draw(|frame| {
            draw(frame, view, &status);
        })
        .unwrap();
    terminal.backend().buffer().clone()
}

fn lines(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let rows = buffer.content.chunks(width);
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()).collect()
}

#[track_caller]
fn expect(keys: &str, wanted: &[&str]) {
    let lines = lines(&screen(&view_after(keys), 80, 24, true));
    for wanted in wanted {
        assert!(lines.iter().any(|line| line.contains(wanted)), "{wanted} in {lines:#?}");
    }
}

fn order(keys: &str) -> Vec<String> {
    view_after(keys).commands().iter().map(|line| text::escape(&line.command)).collect()
}

#[test]
fn the_screen_shows_the_rate_and_the_commands() {
    expect(
        "",
        &["make -j8", "512/s  1,234 programs started  2 running", "critical", "500 us", "cc1 ", "9.00 ms", "q quit"],
    );
}

#[test]
fn keys_sort_and_filter() {
    let hostile = "a\\x1b[31mb";
    assert_eq!(order(""), ["cc1", "sed", hostile]);
    assert_eq!(order("c"), ["sed", "cc1", hostile]);
    assert_eq!(order("nr"), ["sed", "cc1", hostile]);
    assert_eq!(order("f"), ["sed", hostile, "cc1"]);
    assert_eq!(order("n"), [hostile, "cc1", "sed"]);
    assert_eq!(order("/cc\n"), ["cc1"]);
    assert_eq!(order("/cc\n\x1b").len(), 3, "cleared");
    expect("/q", &["filter: q"]);
}

#[test]
fn the_selection_stays_on_its_row_when_the_order_changes() {
    let mut view = view_after("v");
    assert_eq!(view.selected(), 1);
    press(&mut view, "c");
    assert_eq!(view.selected(), 0, "sed is the first by count");
    press(&mut view, "vvvvv");
    assert_eq!(view.selected(), 2, "the last row");
}

#[test]
fn a_paused_view_keeps_what_it_shows() {
    let mut view = view_after(" ");
    view.update(Snapshot::default());
    assert_eq!(view.commands().len(), 3);
    press(&mut view, " ");
    view.update(Snapshot::default());
    assert!(view.commands().is_empty());
}

#[test]
fn details_have_arguments_and_the_parent_can_be_reached() {
    expect("\n", &["details", "4009 1.50 ms exit 1 from sh 4002: tool --flag $'\\x1b[2J'"]);
    // `p` selects the parent of the command's latest launch, and then the parent of that process.
    let mut view = view_after("p");
    assert_eq!((view.mode, view.selected()), (Mode::Processes, 1));
    press(&mut view, "p");
    assert_eq!(view.selected(), 0);
    press(&mut view, "p");
    assert_eq!(view.selected(), 0, "its parent is not recorded");
    expect("p\n", &["sh  pid 4002", "parent: make 4001 (p selects it)", "sh --all"]);
    expect("\t", &["launched", "    sed --all"]);
}

#[test]
fn control_characters_of_programs_never_reach_a_terminal_of_any_size() {
    for (width, height) in [(80, 24), (200, 50), (20, 5), (1, 1)] {
        for keys in ["", "\n", "\t", "\t\n", "/x"] {
            let buffer = screen(&view_after(keys), width, height, true);
            let symbols = buffer.content.iter().flat_map(|cell| cell.symbol().chars());
            assert_eq!(symbols.filter(|symbol| symbol.is_control()).count(), 0);
        }
    }
}

#[test]
fn without_colour_no_cell_has_a_colour() {
    for keys in ["", "\n", "\t", " "] {
        let buffer = screen(&view_after(keys), 80, 24, false);
        assert!(buffer.content.iter().all(|cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset)));
    }
}
