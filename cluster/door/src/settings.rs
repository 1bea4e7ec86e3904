//! Settings of a server: from a TOML file, and from flags of the same names, which take precedence.
//!
//! `keys = 1000` in the file is `--keys 1000` on the command line; `-` and `_` are the same in a name. A list is an
//! array in the file, and a repeated flag on the command line. An error names the file's line and column, or the flag.

use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use lexopt::Arg::{Long, Short};
use lexopt::ValueExt;
use toml::de::{DeTable, DeValue};

use crate::Signals;

/// Holds the given settings by name, until they are taken.
#[derive(Debug, Default)]
pub struct Settings {
    given: BTreeMap<String, Vec<Given>>,
    /// Where the file has their names.
    named: BTreeMap<String, String>,
}

/// What may stand before the text of a value.
const QUOTES: [&str; 8] = ["\"\"\"\r\n", "\"\"\"\n", "\"\"\"", "\"", "'''\r\n", "'''\n", "'''", "'"];

#[derive(Debug)]
struct Given {
    text: String,
    /// `throttled.toml:3`, or the flag.
    at: String,
    /// The column of each byte of the text is this one and its number more; 0 if it has none, as in a flag.
    column: usize,
}

impl Given {
    /// Where the text begins.
    fn place(&self) -> String {
        match self.column {
            0 => self.at.clone(),
            column => format!("{}:{column}", self.at),
        }
    }
}

/// What the command line asks for.
#[derive(Debug)]
enum Asked {
    Help,
    Version,
    Run(Settings),
}

/// Starts a server with the settings of the command line and of the file that `--config` names; or prints its help or
/// its version.
pub fn start(
    program: &str,
    version: &str,
    help: fn() -> String,
    run: impl FnOnce(Settings, Signals) -> Result<(), String>,
) -> ExitCode {
    // First of all: until the handlers stand, a signal kills the process.
    let ended = Signals::listen().and_then(|signals| {
        match Settings::flags(lexopt::Parser::from_env()).map_err(|e| e.to_string())? {
            Asked::Help => print!("{}", help()),
            Asked::Version => println!("{program} {version}"),
            Asked::Run(flags) => return run(flags.with_file()?, signals),
        }
        Ok(())
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Settings {
    /// Adds those of the file that `--config` names.
    fn with_file(mut self) -> Result<Settings, String> {
        let Some(path) = self.one::<String>("config")? else { return Ok(self) };
        let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {path}: {e}"))?;
        let mut settings = Settings::file(&path, &text)?;
        settings.given.extend(self.given);
        Ok(settings)
    }

    fn flags(mut words: lexopt::Parser) -> Result<Asked, lexopt::Error> {
        let mut settings = Settings::default();
        while let Some(word) = words.next()? {
            let name = match word {
                Long("help") | Short('h') => return Ok(Asked::Help),
                Long("version") | Short('V') => return Ok(Asked::Version),
                Long(name) => name.to_owned(),
                _ => {
                    let why = word.unexpected();
                    return Err(format!("{why}: write settings as --listen 127.0.0.1:6380").into());
                }
            };
            let text = words.value()?.string().map_err(|e| format!("--{name}: {e}"))?;
            settings.give(&name, text, format!("--{name}"), 0);
        }
        Ok(Asked::Run(settings))
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// A line for the user who started the program: what is wrong, and where.
    pub fn file(path: &str, text: &str) -> Result<Settings, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        let line = |at: usize| 1 + ends.partition_point(|end| *end < at);
        let line_start = |at: usize| ends[..line(at) - 1].last().map_or(0, |end| end + 1);
        let place = |at: usize| {
            let before = &text[line_start(at)..at.min(text.len())];
            format!("{path}:{}:{}", line(at), 1 + before.chars().count())
        };
        // Where a text was last, and how many characters of its line are before it: the next one of an array goes on.
        let mut last = (0, 0);
        let table = DeTable::parse(text).map_err(|e| {
            let at = e.span().map_or(path.into(), |span| place(span.start));
            format!("{at}: {}", e.message())
        })?;
        let mut settings = Settings::default();
        for (name, value) in table.get_ref() {
            let named = place(name.span().start);
            settings.named.insert(name.get_ref().replace('-', "_"), named);
            let values = match value.get_ref() {
                DeValue::Array(values) => values.iter().collect(),
                _ => vec![value],
            };
            for value in values {
                let given = match value.get_ref() {
                    DeValue::String(text) => text.to_string(),
                    DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
                    DeValue::Boolean(yes) => yes.to_string(),
                    _ => {
                        let what = "must be a text, a whole number, true or false";
                        return Err(format!("{}: {} {what}", place(value.span().start), name.get_ref()));
                    }
                };
                // A text begins after its quotes. With escapes in it, the columns after them are only near.
                let start = value.span().start;
                let quotes = QUOTES.iter().find(|quotes| text[start..].starts_with(**quotes));
                let start = start + quotes.map_or(0, |quotes| quotes.len());
                let first = line_start(start);
                let (from, before) = if (first..=start).contains(&last.0) { last } else { (first, 0) };
                let whole = before + text[from..start].chars().count();
                last = (start, whole);
                settings.give(name.get_ref(), given, format!("{path}:{}", line(start)), whole + 1);
            }
        }
        Ok(settings)
    }

    fn give(&mut self, name: &str, text: String, at: String, column: usize) {
        self.given.entry(name.replace('-', "_")).or_default().push(Given { text, at, column });
    }

    /// Takes a setting that is given at most once.
    ///
    /// # Errors
    /// It is given several times, or its text is not valid.
    pub fn one<T: FromStr<Err: fmt::Display>>(&mut self, name: &str) -> Result<Option<T>, String> {
        let mut all = self.list(name)?;
        match all.len() {
            0 | 1 => Ok(all.pop()),
            _ => Err(format!("{name} is given {} times: give it once", all.len())),
        }
    }

    /// Takes a setting, or its default if it is not given.
    ///
    /// # Errors
    /// Those of [`one`](Settings::one).
    pub fn or<T: FromStr<Err: fmt::Display>>(&mut self, name: &str, usual: T) -> Result<T, String> {
        Ok(self.one(name)?.unwrap_or(usual))
    }

    /// Takes a setting that may be given several times.
    ///
    /// # Errors
    /// One of its texts is not valid.
    pub fn list<T: FromStr<Err: fmt::Display>>(&mut self, name: &str) -> Result<Vec<T>, String> {
        self.list_by(name, |text| text.parse().map_err(|e| (None, format!("{e}"))))
    }

    /// Takes a setting that may be given several times, by a parser that tells the byte that it cannot read.
    ///
    /// # Errors
    /// One of its texts is not valid: with its column, if the parser tells the byte.
    pub fn list_by<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, (Option<usize>, String)>,
    ) -> Result<Vec<T>, String> {
        self.named.remove(name);
        let given = self.given.remove(name).unwrap_or_default();
        let parse = |given: Given| {
            let Given { text, at, column } = &given;
            parse(text).map_err(|(byte, why)| match (byte, column) {
                (None, _) => format!("{}: {name}: {text:?}: {why}", given.place()),
                (Some(byte), 0) => format!("{at}: {name}: {text:?}: column {}: {why}", byte + 1),
                (Some(byte), column) => format!("{at}:{}: {name}: {text:?}: {why}", column + byte),
            })
        };
        given.into_iter().map(parse).collect()
    }

    /// Ends the reading: every setting that is left is unknown.
    ///
    /// # Errors
    /// The name of such a setting.
    pub fn finish(self) -> Result<(), String> {
        let of_file = self.named.first_key_value();
        match of_file.or(self.given.iter().map(|(name, given)| (name, &given[0].at)).next()) {
            Some((name, at)) => Err(format!("{at}: there is no setting {name}; --help lists them")),
            None => Ok(()),
        }
    }
}

/// Holds a time in the form of settings: `250ms`, `10s`, `5m`, `1h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Duration);

impl FromStr for Time {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Time, &'static str> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let ms = match &text[digits..] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err("a time is a whole number and ms, s, m or h: 250ms"),
        };
        let number: u64 = text[..digits].parse().map_err(|_| "a time begins with a whole number: 250ms")?;
        number.checked_mul(ms).map(|ms| Time(Duration::from_millis(ms))).ok_or("the time is too long")
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn flags<T: Into<OsString>>(words: impl IntoIterator<Item = T>) -> Result<Settings, String> {
        match Settings::flags(lexopt::Parser::from_args(words)).map_err(|e| e.to_string())? {
            Asked::Run(flags) => flags.with_file(),
            page => Err(format!("{page:?}")),
        }
    }

    #[test]
    fn flags_and_files_say_the_same_and_flags_win() {
        let file = "# a comment\nkeys = 1_000\nlisten = \"a\"\nlimits = [\"x\", \"y\"]\nquiet = true\n";
        let mut settings = Settings::file("f.toml", file).expect("a file");
        settings.given.extend(flags(["--keys=7", "--store-wait", "20ms"]).expect("flags").given);
        assert_eq!(settings.one::<u32>("keys"), Ok(Some(7)));
        assert_eq!(settings.or("listen", String::new()), Ok("a".into()));
        assert_eq!(settings.list::<String>("limits"), Ok(vec!["x".into(), "y".into()]));
        assert_eq!(settings.one("store_wait"), Ok(Some(Time(Duration::from_millis(20)))));
        assert_eq!(settings.or("quiet", false), Ok(true));
        assert_eq!(settings.one::<u32>("not_given"), Ok(None));
        assert_eq!(settings.finish(), Ok(()));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let error_of = |text: &str| Settings::file("f.toml", text).expect_err("an error");
        assert!(error_of("a = 1\nb = \n").starts_with("f.toml:2:5: "), "{}", error_of("a = 1\nb = \n"));
        let table = error_of("\n\n[table]\nb = 2\n");
        assert!(table.starts_with("f.toml:3:1: table must be a text"), "{table}");
        let mut settings = Settings::file("f.toml", "\nkeys = \"many\"\n").expect("a file");
        let error = settings.one::<u32>("keys").expect_err("an error");
        assert_eq!(error, "f.toml:2:9: keys: \"many\": invalid digit found in string");
        for (text, at) in [
            ("\u{feff}keys = \"many\"", "1:9"),
            ("keys = \"\"\"many\"\"\"", "1:11"),
            ("keys = '''\nmany'''", "2:1"),
            ("keys = [\n \"many\",\n  \"more\"]", "2:3"),
        ] {
            let mut settings = Settings::file("f.toml", text).expect("a file");
            let error = settings.list::<u32>("keys").expect_err("an error");
            assert!(error.starts_with(&format!("f.toml:{at}: keys: \"many\"")), "{error}");
        }
        assert!(error_of("a = [\n \"b\",\n  2.5]").starts_with("f.toml:3:3: a must be a text"));
        for text in ["\nlisen = \"a\"", "\n  lisen = [\n \"a\"]", "\nlisen = []"] {
            let error = Settings::file("f.toml", text).expect("a file").finish().expect_err("an error");
            let column = if text.contains("  lisen") { 3 } else { 1 };
            assert_eq!(error, format!("f.toml:2:{column}: there is no setting lisen; --help lists them"));
        }
        let mut settings = flags(["--keys", "1", "--keys", "2"]).expect("flags");
        assert_eq!(settings.one::<u32>("keys"), Err("keys is given 2 times: give it once".into()));
        let said = |words: &[&str]| flags(words.iter().copied()).expect_err("an error");
        assert_eq!(said(&["--listen"]), "missing argument for option '--listen'");
        for (words, named) in [(["--keys=1", "listen"], "\"listen\""), (["--", "--keys=1"], "\"--keys=1\"")] {
            assert!(said(&words).starts_with(&format!("unexpected argument {named}: write")), "{words:?}");
        }
        assert!(said(&["-k", "1"]).starts_with("invalid option '-k': write"));
        assert_eq!(
            [said(&["--keys", "1", "-h"]), said(&["--help"]), said(&["-V"])],
            ["Help", "Help", "Version"]
        );
        let not_text = OsStringExt::from_vec(b"--keys=\xff".to_vec());
        let error: Result<_, String> = flags::<OsString>([not_text]);
        assert!(error.is_err_and(|e| e.starts_with("--keys: argument is invalid unicode")));
        let unknown = flags(["--lisen", "x"]).expect("flags").finish();
        assert_eq!(unknown, Err("--lisen: there is no setting lisen; --help lists them".into()));
        assert!(said(&["--config", "/does/not/exist"]).contains("/does"));
        for wrong in ["", "10", "ms", "1.5s", "10 s", "99999999999999999999s", "18446744073709551615h"] {
            assert!(wrong.parse::<Time>().is_err(), "{wrong}");
        }
    }
}
