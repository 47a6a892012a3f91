// SPDX-License-Identifier: MIT OR Apache-2.0

//! Effects of keys. Their only list, which the help also shows.

use rhist_core::question::Reading;

use super::input::Key;
use super::line::Column;
use super::state::State;
use super::state::View;

/// Keys and their effects, for the help.
pub const KEYS: &[(&str, &str)] = &[
    (
        "Up, Down, PgUp, PgDn",
        "select a line, which is followed when others overtake it",
    ),
    ("Home", "back to the first line, whichever that is"),
    ("Enter", "values of the selected key over time"),
    ("Esc", "back; in the table, no filter"),
    ("<, >, 1 to 9", "sort by another column"),
    ("r", "reverse the order"),
    ("/", "show only keys that have a text"),
    ("Space", "freeze the screen; measuring goes on"),
    ("b", "baseline: compare with the run up to now"),
    ("s", "trend of rates, or of medians"),
    ("t", "triggers: what was written to the kernel"),
    ("w", "record to a file, or stop recording"),
    ("q", "quit"),
];

/// Limit of the filter, in characters.
const MAX_FILTER: usize = 64;

/// Action for the owner of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// End the program.
    Quit,
    /// Suspend the program, for the job control of the shell.
    Suspend,
    /// Redraw the whole screen.
    Redraw,
    /// Begin or end a recording.
    Record,
}

/// List of keys for the help of the command.
pub fn help() -> String {
    let keys = KEYS.iter();
    keys.fold("Keys:".to_owned(), |text, (keys, what)| {
        text + &format!("\n  {keys:20}  {what}")
    })
}

/// Performs the effect of a key. `total` is the one at the end of the last interval.
pub fn press(state: &mut State, total: &Reading, key: Key) -> Option<Request> {
    state.message = None;
    if let Key::Control(letter) = key {
        return match letter {
            'c' => Some(Request::Quit),
            'z' => Some(Request::Suspend),
            'l' => Some(Request::Redraw),
            _ => None,
        };
    }
    if state.editing {
        edit(state, key);
        return None;
    }
    match key {
        Key::Char('q') => return Some(Request::Quit),
        Key::Char('w') => return Some(Request::Record),
        Key::Char('?' | 'h') => show(state, View::Help),
        Key::Char('t') => show(state, View::Triggers),
        Key::Char(' ') => state.freeze(),
        Key::Char('b') => state.set_baseline(total),
        Key::Char('s') => state.medians = !state.medians,
        Key::Esc => back(state),
        _ => match state.view {
            View::Table | View::HeatMap => table(state, key),
            View::Triggers | View::Help => text(state, key),
        },
    }
    None
}

/// Shows a view, or returns to the table if the view is shown already.
fn show(state: &mut State, view: View) {
    state.scroll = 0;
    state.view = match state.view == view {
        true => View::Table,
        false => view,
    };
}

fn back(state: &mut State) {
    match state.view {
        View::Table => {
            state.filter.clear();
            state.arrange();
        }
        _ => state.view = View::Table,
    }
}

fn edit(state: &mut State, key: Key) {
    match key {
        Key::Char(character) if state.filter.chars().count() < MAX_FILTER => {
            state.filter.push(character);
        }
        Key::Backspace => {
            state.filter.pop();
        }
        Key::Enter => state.editing = false,
        Key::Esc => {
            state.editing = false;
            state.filter.clear();
        }
        Key::Up => state.move_by(-1),
        Key::Down => state.move_by(1),
        _ => return,
    }
    state.arrange();
}

fn table(state: &mut State, key: Key) {
    let page = isize::try_from(state.page()).unwrap_or(isize::MAX);
    match key {
        Key::Up | Key::Char('k') => state.move_by(-1),
        Key::Down | Key::Char('j') => state.move_by(1),
        Key::PageUp => state.move_by(-page),
        Key::PageDown => state.move_by(page),
        Key::End => state.move_by(isize::MAX),
        Key::Home => {
            state.move_by(isize::MIN);
            // A heat map always needs a key.
            if state.view == View::Table {
                state.selected = None;
            }
        }
        Key::Enter if state.view == View::HeatMap => state.view = View::Table,
        Key::Enter => {
            state.selected = state.current();
            if state.selected.is_some() {
                state.view = View::HeatMap;
            }
        }
        Key::Char('/') => {
            state.view = View::Table;
            state.editing = true;
        }
        Key::Char('<') => sort(state, |at, last| at.checked_sub(1).unwrap_or(last)),
        Key::Char('>') => sort(state, |at, last| if at < last { at + 1 } else { 0 }),
        Key::Char(digit @ '1'..='9') => {
            let column = digit as usize - '1' as usize;
            sort(state, |at, last| if column <= last { column } else { at });
        }
        Key::Char('r') => {
            state.reversed = !state.reversed;
            state.arrange();
        }
        _ => {}
    }
}

/// Sorts by another column. `next` gets the indices of the current and the last column, and returns
/// the new one.
fn sort(state: &mut State, next: impl FnOnce(usize, usize) -> usize) {
    let Some(last) = state.columns.len().checked_sub(1) else {
        return;
    };
    let at = state.columns.iter().position(|&column| column == state.sort);
    let next = next(at.unwrap_or(0), last);
    state.sort = state.columns.get(next).copied().unwrap_or(Column::Rate);
    state.reversed = false;
    state.arrange();
}

fn text(state: &mut State, key: Key) {
    let page = u16::try_from(state.page()).unwrap_or(u16::MAX);
    state.scroll = match key {
        Key::Up | Key::Char('k') => state.scroll.saturating_sub(1),
        Key::Down | Key::Char('j') => state.scroll.saturating_add(1),
        Key::PageUp => state.scroll.saturating_sub(page),
        Key::PageDown => state.scroll.saturating_add(page),
        Key::Home => 0,
        _ => state.scroll,
    };
}
