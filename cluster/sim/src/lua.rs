//! Runs the scripts as they ship, in the Lua that Redis has, and converts what goes in and out as Redis does.
//!
//! A script names only `KEYS[1]`. So its `redis.call` is Lua too (`redis.lua`): it gets the time and the value of the
//! key before the script runs, and what the script wrote is read afterwards. One run crosses into Lua once.

use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, Table, Value};
use rustc_hash::FxHashMap;
use tatcell_cluster::script;

use crate::data::{Data, Set};
use crate::plan::Edition;
use crate::resp::Reply;

/// An interpreter, with every text that it ran; worlds share it, because the scripts have no globals.
pub struct Scripts {
    lua: Lua,
    /// Runs a script; see `redis.lua`.
    run: Function,
    /// Each text that was ever seen: its number, digest and function.
    known: FxHashMap<Vec<u8>, usize>,
    texts: Vec<Text>,
    keys: List,
    argv: List,
    calls: u64,
}

/// A script.
struct Text {
    digest: String,
    is_grant: bool,
    function: Function,
    /// The same as nodes of the version before have it, and of a later one.
    before: Function,
    later: Function,
}

/// Returns a script as nodes of a later version have it: their marks have the next format.
fn later(text: &str) -> String {
    text.replace("local FORMAT = '2'", "local FORMAT = '3'")
}

/// Returns a script as nodes of 0.3.0 have it: their text of the one that grants, and what they do with a mark. They
/// know no ids, so the reply gets that of its call. They give nothing back here: that call has other arguments.
fn before(text: &str) -> String {
    match text {
        script::GRANT => include_str!("before/grant.lua").replace("retry, stamp}", "retry, stamp, ARGV[11]}"),
        script::MARK => include_str!("before/mark.lua").to_owned(),
        script::GIVE_BACK => "return {0, ARGV[3]}".to_owned(),
        other => other.to_owned(),
    }
}

/// A list that scripts read, and what it holds: most arguments of a call are those of the call before.
struct List {
    table: Table,
    items: Vec<Vec<u8>>,
}

impl List {
    fn fill(&mut self, lua: &Lua, items: &[&[u8]]) -> mlua::Result<()> {
        for (i, item) in items.iter().enumerate() {
            if self.items.get(i).is_some_and(|known| known == item) {
                continue;
            }
            self.table.raw_set(i + 1, lua.create_string(item)?)?;
            match self.items.get_mut(i) {
                Some(known) => {
                    known.clear();
                    known.extend_from_slice(item);
                }
                None => self.items.push(item.to_vec()),
            }
        }
        for i in items.len()..self.items.len() {
            self.table.raw_set(i + 1, Value::Nil)?;
        }
        self.items.truncate(items.len());
        Ok(())
    }
}

impl Scripts {
    /// Starts an interpreter.
    pub fn new() -> mlua::Result<Scripts> {
        // What the scripts use; a collection of garbage walks through all that there is.
        let lua = Lua::new_with(StdLib::STRING | StdLib::MATH | StdLib::TABLE, LuaOptions::new())?;
        let run = lua.load(include_str!("redis.lua")).eval()?;
        let list = |name: &str| -> mlua::Result<List> {
            let table = lua.create_table()?;
            lua.globals().set(name, &table)?;
            Ok(List { table, items: Vec::new() })
        };
        let (keys, argv) = (list("KEYS")?, list("ARGV")?);
        Ok(Scripts { keys, argv, lua, run, known: FxHashMap::default(), texts: Vec::new(), calls: 0 })
    }

    /// Returns the number of a script.
    ///
    /// # Errors
    /// It is not Lua.
    pub fn number(&mut self, text: &[u8]) -> Result<usize, String> {
        if let Some(number) = self.known.get(text) {
            return Ok(*number);
        }
        let function = self.lua.load(text).into_function().map_err(|error| error.to_string())?;
        let words = String::from_utf8_lossy(text);
        let digest = redis::Script::new(&words).get_hash().to_owned();
        let is_grant = words == script::GRANT;
        let load = |text: String| self.lua.load(text).into_function().map_err(|error| error.to_string());
        let (before, later) = (load(before(&words))?, load(later(&words))?);
        self.texts.push(Text { digest, is_grant, function, before, later });
        self.known.insert(text.to_vec(), self.texts.len() - 1);
        Ok(self.texts.len() - 1)
    }

    /// Returns the digest by which calls name a script.
    pub fn digest(&self, number: usize) -> &str {
        &self.texts[number].digest
    }

    /// Returns whether a script is the one that grants units.
    pub fn is_grant(&self, number: usize) -> bool {
        self.texts[number].is_grant
    }

    /// Returns how many calls ran.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Runs a script on the data of a server: its number, and the version of the node.
    pub fn run(
        &mut self,
        (number, edition): (usize, Edition),
        key: &[u8],
        argv: &[&[u8]],
        data: &mut Data,
        now_us: u64,
    ) -> Reply {
        self.calls += 1;
        self.eval((number, edition), key, argv, data, now_us).unwrap_or_else(|error| {
            let line = error.to_string();
            Reply::Error(format!("ERR {}", line.lines().next().unwrap_or_default()))
        })
    }

    fn eval(
        &mut self,
        (number, edition): (usize, Edition),
        key: &[u8],
        argv: &[&[u8]],
        data: &mut Data,
        now_us: u64,
    ) -> mlua::Result<Reply> {
        self.keys.fill(&self.lua, &[key])?;
        self.argv.fill(&self.lua, argv)?;
        let text = &self.texts[number];
        let function = match edition {
            Edition::Before => &text.before,
            Edition::This => &text.function,
            Edition::Later => &text.later,
        };
        let was = match data.get(key, now_us) {
            Some(value) => Value::String(self.lua.create_string(value)?),
            None => Value::Boolean(false),
        };
        let (seconds, micros) = ((now_us / 1_000_000).to_string(), (now_us % 1_000_000).to_string());
        let key_text = self.lua.create_string(key)?;
        let found: MultiValue = self.run.call((function, seconds, micros, key_text, was))?;
        let found: Vec<Value> = found.into_iter().collect();
        let [written, value, option, ms, kind, items @ ..] = &found[..] else {
            return Err(mlua::Error::runtime("redis.lua returns less than it should"));
        };
        match written {
            Value::Nil => {}
            Value::Boolean(true) => {
                let options = [option, ms].into_iter().filter(|option| !option.is_nil());
                let options = options.map(bytes).collect::<mlua::Result<Vec<Vec<u8>>>>()?;
                let set = Set::read(&options).map_err(mlua::Error::runtime)?;
                data.set(key, &bytes(value)?, set, now_us);
            }
            _ => {
                data.del(key, now_us);
            }
        }
        // As Redis: an error is its text, a list ends before its first nil.
        Ok(match (&bytes(kind)?[..], items) {
            (b"error", [text]) => Reply::Error(String::from_utf8_lossy(&bytes(text)?).into_owned()),
            (b"list", items) => Reply::Array(items.iter().map(item).collect()),
            (_, items) => items.first().map_or(Reply::Null, item),
        })
    }
}

/// The bytes of an argument of `redis.call`.
fn bytes(value: &Value) -> mlua::Result<Vec<u8>> {
    match value {
        Value::String(text) => Ok(text.as_bytes().to_vec()),
        Value::Integer(n) => Ok(n.to_string().into_bytes()),
        // As `%.17g`: integers of doubles have no point.
        Value::Number(n) if n.fract() == 0.0 && n.abs() < 1e17 => Ok((*n as i64).to_string().into_bytes()),
        Value::Number(n) => Ok(n.to_string().into_bytes()),
        _ => Err(mlua::Error::runtime("Lua redis lib command arguments must be strings or integers")),
    }
}

/// As Redis: numbers lose their fraction, false is nothing.
fn item(value: &Value) -> Reply {
    match value {
        Value::Integer(n) => Reply::Integer(*n),
        Value::Number(n) => Reply::Integer(*n as i64),
        Value::String(text) => Reply::BulkString(text.as_bytes().to_vec()),
        Value::Boolean(true) => Reply::Integer(1),
        _ => Reply::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tatcell_cluster::script::{By, Mark};

    /// The first text is that which 0.3.0 wrote, also as tests/marks.rs has it.
    #[test]
    fn a_mark_of_each_version_is_its_text_and_is_refused_by_name_by_the_others() {
        let mut lua = Scripts::new().expect("Lua");
        let number = lua.number(script::MARK.as_bytes()).expect("Lua");
        let next = "8 per 1000000000 ns, burst 5, reserve 50/250, 2 nodes, changes take 30000 ms".to_owned();
        let mine = Mark { version: 1, ahead_us: 0, next: next.clone(), before: next.clone() };
        let call = script::mark(By::Text, b"m", 60_000, &mine, None);
        let words = call.args_iter().filter_map(|word| match word {
            redis::Arg::Simple(bytes) => Some(bytes),
            _ => None,
        });
        let words: Vec<&[u8]> = words.skip(4).chain([&b"7"[..]]).collect();
        let all = [
            (
                Edition::Before,
                "8 per 1000000000 ns, burst 5, 2 nodes, reserve 50/250".to_owned(),
                "no format",
            ),
            (Edition::This, format!("f{};1;0;{next};{next}", script::FORMAT), "format 2"),
            (Edition::Later, format!("f{};1;0;{next};{next}", script::FORMAT + 1), "format 3"),
        ];
        for (edition, text, has) in &all {
            let mut data = Data::default();
            let reply = lua.run((number, *edition), b"m", &words, &mut data, 5);
            assert!(matches!(&reply, Reply::Array(list) if list[0] == Reply::Integer(1)), "{reply:?}");
            for (other, ..) in all.iter().filter(|(other, ..)| other != edition) {
                let reply = lua.run((number, *other), b"m", &words, &mut data, 5);
                let Reply::Error(said) = &reply else { panic!("{reply:?}") };
                assert!(
                    said.starts_with("TATCELLFORMAT ") && (*other == Edition::Before || said.contains(has))
                );
                assert_eq!(data.get(b"m", 5), Some(text.as_bytes()), "it stays");
            }
        }
    }
}
