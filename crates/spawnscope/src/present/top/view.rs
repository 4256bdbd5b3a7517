//! The state of the live view: list or tree, order, filter, pause, and a selection that stays on
//! its row. Only keys and new snapshots change it.

use std::cmp::Ordering;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::analyze::live::{CommandRow, ProcessRow, Snapshot};
use crate::event::LaunchId;
use crate::present::text;

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
    pub(super) mode: Mode,
    pub(super) sort: Sort,
    pub(super) filter: String,
    pub(super) is_typing: bool,
    pub(super) is_paused: bool,
    pub(super) has_details: bool,
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

    pub(super) fn shown(&self) -> &Snapshot {
        &self.shown
    }

    /// Returns the commands that match the filter, in order.
    pub(super) fn commands(&self) -> Vec<&CommandRow> {
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
    pub(super) fn processes(&self) -> Vec<&ProcessRow> {
        let all = self.shown.processes.iter();
        all.filter(|row| self.matches(&row.command, &row.argv)).collect()
    }

    /// Returns the index of the selected row, or 0 without a selection.
    pub(super) fn selected(&self) -> usize {
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
