//! Why the program ends without what it was asked for, and the exit code that says so.

use std::fmt;

/// A failure, with its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The answer is there, but it breaks a bound that the caller set: exit code 1.
    Bound(String),
    /// The arguments cannot be used: exit code 2.
    Usage(String),
    /// The input cannot be read, or the answer not written: exit code 3.
    Input(String),
}

impl Failure {
    /// Returns the exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Bound(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Input(_) => 3,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Bound(what) | Failure::Usage(what) | Failure::Input(what)) = self;
        f.write_str(what)
    }
}

impl std::error::Error for Failure {}

/// What is wrong with one record of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; for a capture the number of the packet or frame.
    pub line: u64,
    /// The column in bytes, from 1; 0 where the input has no columns.
    pub column: usize,
    /// What is wrong there.
    pub what: String,
}

impl Problem {
    /// Starts a problem at a column; the reader of lines fills the line in.
    pub fn at(column: usize, what: impl Into<String>) -> Problem {
        Problem { line: 0, column, what: what.into() }
    }

    /// Returns `file:line:column: what`, as compilers print it.
    pub fn in_file(&self, file: &str) -> String {
        match self.column {
            0 => format!("{file}:{}: {}", self.line, self.what),
            column => format!("{file}:{}:{column}: {}", self.line, self.what),
        }
    }
}
