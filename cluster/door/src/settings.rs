//! Settings of a server: from a TOML file, and from flags of the same names, which take precedence.
//!
//! `keys = 1000` in the file is `--keys 1000` on the command line; `-` and `_` are the same in a name. A list is an
//! array in the file, and a repeated flag on the command line. An error names the file's line, or the flag.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

/// Holds the given settings by name, until they are taken.
#[derive(Debug, Default)]
pub struct Settings {
    given: BTreeMap<String, Vec<Given>>,
}

#[derive(Debug)]
struct Given {
    text: String,
    /// `throttled.toml:3`, or the flag.
    at: String,
    /// The column of each byte of the text is this one and its number more; 0 if it has none, as in a flag.
    column: usize,
}

impl Settings {
    /// Reads the command line, without the program's name, and the file that `--config` names.
    ///
    /// # Errors
    /// A line for the user who started the program: what is wrong, and where.
    pub fn read(arguments: impl IntoIterator<Item = String>) -> Result<Settings, String> {
        let mut flags = Settings::flags(arguments)?;
        let Some(path) = flags.one::<String>("config")? else { return Ok(flags) };
        let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {path}: {e}"))?;
        let mut settings = Settings::file(&path, &text)?;
        settings.given.extend(flags.given);
        Ok(settings)
    }

    fn flags(arguments: impl IntoIterator<Item = String>) -> Result<Settings, String> {
        let mut settings = Settings::default();
        let mut arguments = arguments.into_iter();
        while let Some(flag) = arguments.next() {
            let Some(name) = flag.strip_prefix("--").filter(|name| !name.is_empty()) else {
                return Err(format!("{flag} is not a flag: write settings as --listen 127.0.0.1:6380"));
            };
            let (name, text) = match name.split_once('=') {
                Some((name, text)) => (name, text.to_owned()),
                None => (name, arguments.next().ok_or_else(|| format!("{flag} needs a value"))?),
            };
            settings.give(name, text, format!("--{name}"), 0);
        }
        Ok(settings)
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// Those of [`read`](Settings::read).
    pub fn file(path: &str, text: &str) -> Result<Settings, String> {
        let line = |at: usize| 1 + text[..at.min(text.len())].matches('\n').count();
        let table = DeTable::parse(text).map_err(|e| {
            let at = e.span().map_or(String::new(), |span| format!(":{}", line(span.start)));
            format!("{path}{at}: {}", e.message())
        })?;
        let mut settings = Settings::default();
        for (name, value) in table.get_ref() {
            let values = match value.get_ref() {
                DeValue::Array(values) => values.iter().collect(),
                _ => vec![value],
            };
            for value in values {
                let at = format!("{path}:{}", line(value.span().start));
                let given = match value.get_ref() {
                    DeValue::String(text) => text.to_string(),
                    DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
                    DeValue::Boolean(yes) => yes.to_string(),
                    _ => {
                        let (line, name) = (line(name.span().start), name.get_ref());
                        let what = "must be a text, a whole number, true or false";
                        return Err(format!("{path}:{line}: {name} {what}"));
                    }
                };
                // A text begins after its quote. With escapes in it, the columns after them are only near.
                let start = value.span().start;
                let quote = usize::from(text[start..].starts_with(['"', '\'']));
                let whole = text[..start].rsplit('\n').next().unwrap_or_default().chars().count();
                settings.give(name.get_ref(), given, at, whole + quote + 1);
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
        let given = self.given.remove(name).unwrap_or_default();
        let parse = |Given { text, at, column }: Given| {
            parse(&text).map_err(|(byte, why)| match (byte, column) {
                (None, _) => format!("{at}: {name}: {text:?}: {why}"),
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
        match self.given.first_key_value() {
            Some((name, given)) => {
                Err(format!("{}: there is no setting {name}; --help lists them", given[0].at))
            }
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
    use super::*;

    fn flags(words: &[&str]) -> Result<Settings, String> {
        Settings::flags(words.iter().map(|w| w.to_string()))
    }

    #[test]
    fn flags_and_files_say_the_same_and_flags_win() {
        let file = "# a comment\nkeys = 1_000\nlisten = \"a\"\nlimits = [\"x\", \"y\"]\nquiet = true\n";
        let mut settings = Settings::file("f.toml", file).expect("a file");
        settings.given.extend(flags(&["--keys=7", "--store-wait", "20ms"]).expect("flags").given);
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
        let error = |text: &str| Settings::file("f.toml", text).expect_err("an error");
        assert!(error("a = 1\nb = \n").starts_with("f.toml:2: "), "{}", error("a = 1\nb = \n"));
        assert!(error("\n\n[table]\nb = 2\n").starts_with("f.toml:3: table must be a text"));
        let mut settings = Settings::file("f.toml", "\nkeys = \"many\"\n").expect("a file");
        let error = settings.one::<u32>("keys").expect_err("an error");
        assert_eq!(error, "f.toml:2: keys: \"many\": invalid digit found in string");
        let mut settings = flags(&["--keys", "1", "--keys", "2"]).expect("flags");
        assert_eq!(settings.one::<u32>("keys"), Err("keys is given 2 times: give it once".into()));
        assert!(flags(&["--listen"]).is_err_and(|e| e.contains("needs a value")));
        assert!(flags(&["listen"]).is_err());
        let unknown = flags(&["--lisen", "x"]).expect("flags").finish();
        assert_eq!(unknown, Err("--lisen: there is no setting lisen; --help lists them".into()));
        assert!(
            Settings::read(["--config".into(), "/does/not/exist".into()]).is_err_and(|e| e.contains("/does"))
        );
        for wrong in ["", "10", "ms", "1.5s", "10 s", "99999999999999999999s", "18446744073709551615h"] {
            assert!(wrong.parse::<Time>().is_err(), "{wrong}");
        }
    }
}
