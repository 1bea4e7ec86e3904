//! How far work is: a line on a terminal, written over itself.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Makes the line.
type Text = Box<dyn Fn() -> String + Send>;

/// Work shorter than this shows nothing.
const FIRST: Duration = Duration::from_secs(1);
/// The time between two lines.
const NEXT: Duration = Duration::from_millis(300);

/// Shows how far work is, from its first second on until this is dropped. Shows nothing if standard error is no
/// terminal, and the default shows nothing either.
#[derive(Default)]
pub struct Progress(Option<Shown>);

struct Shown {
    text: Arc<Mutex<Text>>,
    /// Both are taken when it ends.
    end: Option<Sender<()>>,
    drawing: Option<JoinHandle<()>>,
}

/// Draws until the sender is gone, and leaves an empty line.
fn draw(text: &Mutex<Text>, end: &std::sync::mpsc::Receiver<()>) {
    let (start, mut wait) = (Instant::now(), FIRST);
    while end.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        wait = NEXT;
        let line = text.lock().unwrap_or_else(PoisonError::into_inner)();
        let _ = write!(io::stderr(), "\r{line}, {} s\x1b[K", start.elapsed().as_secs());
    }
    if wait == NEXT {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

impl Progress {
    /// Starts, on a terminal. `text` is called for each line.
    pub fn start(text: impl Fn() -> String + Send + 'static) -> Progress {
        if !io::stderr().is_terminal() {
            return Progress::default();
        }
        let text: Arc<Mutex<Text>> = Arc::new(Mutex::new(Box::new(text)));
        let (end, ended) = channel();
        let shared = Arc::clone(&text);
        // Without a thread the work is done all the same.
        let drawing = Builder::new().spawn(move || draw(&shared, &ended)).ok();
        Progress(Some(Shown { text, end: Some(end), drawing }))
    }

    /// Goes on with another text.
    pub fn says(&self, text: impl Fn() -> String + Send + 'static) {
        if let Progress(Some(shown)) = self {
            *shown.text.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(text);
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.end.take();
        if let Some(drawing) = self.drawing.take() {
            let _ = drawing.join();
        }
    }
}

/// Marks of a whole bar.
const BAR: usize = 30;
/// The most of a name that is shown, so that the line fits a terminal.
const NAME: usize = 32;

/// Draws a bar, where it is known how much there is. A file may grow while it is read.
pub fn bar(name: &str, done: u64, all: u64) -> String {
    let part = done.min(all) as f64 / all.max(1) as f64;
    let marks = "#".repeat((part * BAR as f64) as usize);
    format!("{} [{marks:-<BAR$}] {:.0} %", short(name), part * 100.0).trim_start().into()
}

/// The end of a long name.
pub fn short(name: &str) -> String {
    match name.char_indices().rev().nth(NAME - 1) {
        Some((at, _)) if at > 0 => format!("...{}", &name[at..]),
        _ => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_long_as_what_is_done() {
        let empty = "-".repeat(15);
        assert_eq!(bar("log", 0, 10), format!("log [{empty}{empty}] 0 %"));
        assert_eq!(bar("log", 5, 10), format!("log [{}{empty}] 50 %", "#".repeat(15)));
        assert_eq!(bar("log", 12, 10), format!("log [{}] 100 %", "#".repeat(30)));
    }

    #[test]
    fn a_long_name_is_shown_by_its_end() {
        let name = format!("/é{}", "x".repeat(30));
        assert_eq!(short(&name), name);
        assert_eq!(short(&format!("/var{name}")), format!("...{name}"));
    }
}
