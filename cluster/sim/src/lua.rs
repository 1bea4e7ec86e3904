//! Runs the scripts as they ship, in the Lua that Redis has, and converts what goes in and out as Redis does.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value};
use tatcell_cluster::script;

use crate::data::{Data, Set};
use crate::resp::Reply;

/// What a script works on while it runs.
#[derive(Default)]
struct Frame {
    data: Data,
    now_us: u64,
}

/// An interpreter, with every text that it ran; worlds share it, because the scripts have no globals.
pub struct Scripts {
    lua: Lua,
    frame: Rc<RefCell<Frame>>,
    /// Each text that was ever seen: its number, digest and function.
    known: HashMap<Vec<u8>, usize>,
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
    /// The same as nodes of the version before have it.
    foreign: Function,
}

/// Returns a script as nodes of 0.3.0 have it: their text of the one that grants, and what they do with a mark. They
/// know no ids, so the reply gets that of its call. They give nothing back here: that call has other arguments.
fn foreign(text: &str) -> String {
    match text {
        script::GRANT => include_str!("before/grant.lua").replace("retry, stamp}", "retry, stamp, ARGV[11]}"),
        script::MARK => include_str!("before/mark.lua").to_owned(),
        script::GIVE_BACK => "return {0, ARGV[3]}".to_owned(),
        other => other.to_owned(),
    }
}

/// The bytes of an argument of `redis.call`.
enum Bytes<'a> {
    Of(mlua::BorrowedBytes<'a>),
    Made(Vec<u8>),
}

impl AsRef<[u8]> for Bytes<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Bytes::Of(text) => text,
            Bytes::Made(text) => text,
        }
    }
}

fn bytes(value: &Value) -> mlua::Result<Bytes<'_>> {
    match value {
        Value::String(text) => Ok(Bytes::Of(text.as_bytes())),
        Value::Integer(n) => Ok(Bytes::Made(n.to_string().into_bytes())),
        // As `%.17g`: integers of doubles have no point.
        Value::Number(n) if n.fract() == 0.0 && n.abs() < 1e17 => {
            Ok(Bytes::Made((*n as i64).to_string().into_bytes()))
        }
        Value::Number(n) => Ok(Bytes::Made(n.to_string().into_bytes())),
        _ => Err(mlua::Error::runtime("Lua redis lib command arguments must be strings or integers")),
    }
}

fn call(lua: &Lua, frame: &RefCell<Frame>, args: MultiValue) -> mlua::Result<Value> {
    let args = args.iter().map(bytes).collect::<mlua::Result<Vec<Bytes<'_>>>>()?;
    let mut frame = frame.borrow_mut();
    let Frame { data, now_us } = &mut *frame;
    let now_us = *now_us;
    let text = |value: Option<&[u8]>| -> mlua::Result<Value> {
        value.map_or(Ok(Value::Boolean(false)), |value| Ok(Value::String(lua.create_string(value)?)))
    };
    let Some((name, args)) = args.split_first() else {
        return Err(mlua::Error::runtime("Please specify at least one argument for redis.call()"));
    };
    let is = |known: &[u8]| name.as_ref().eq_ignore_ascii_case(known);
    match args {
        [] if is(b"TIME") => {
            let parts = [(now_us / 1_000_000).to_string(), (now_us % 1_000_000).to_string()];
            Ok(Value::Table(lua.create_sequence_from(parts)?))
        }
        [key] if is(b"GET") => text(data.get(key.as_ref(), now_us)),
        [key] if is(b"DEL") => Ok(Value::Number(f64::from(u8::from(data.del(key.as_ref(), now_us))))),
        [key] if is(b"PTTL") => Ok(Value::Number(data.pttl(key.as_ref(), now_us) as f64)),
        [key, value, options @ ..] if is(b"SET") => {
            let set = Set::read(options).map_err(mlua::Error::runtime)?;
            match data.set(key.as_ref(), value.as_ref(), set, now_us) {
                true => {
                    let table = lua.create_table()?;
                    table.set("ok", "OK")?;
                    Ok(Value::Table(table))
                }
                false => Ok(Value::Boolean(false)),
            }
        }
        _ => Err(mlua::Error::runtime("Unknown Redis command called from script")),
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
        let (lua, frame) = (Lua::new(), Rc::new(RefCell::new(Frame::default())));
        let redis = lua.create_table()?;
        let shared = frame.clone();
        redis.set("call", lua.create_function(move |lua, args: MultiValue| call(lua, &shared, args))?)?;
        let error_reply = lua.create_function(|lua, text: mlua::String| {
            let table = lua.create_table()?;
            table.set("err", text)?;
            Ok(table)
        })?;
        redis.set("error_reply", error_reply)?;
        lua.globals().set("redis", redis)?;
        let list = |name: &str| -> mlua::Result<List> {
            let table = lua.create_table()?;
            lua.globals().set(name, &table)?;
            Ok(List { table, items: Vec::new() })
        };
        let (keys, argv) = (list("KEYS")?, list("ARGV")?);
        // What lives is small, so collecting garbage less often costs little memory.
        lua.gc_set_pause(1_000);
        Ok(Scripts { keys, argv, lua, frame, known: HashMap::new(), texts: Vec::new(), calls: 0 })
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
        let foreign = self.lua.load(foreign(&words)).into_function().map_err(|error| error.to_string())?;
        self.texts.push(Text { digest, is_grant, function, foreign });
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

    /// Runs a script on the data of a server: its number, and whether it is that of the version before.
    pub fn run(
        &mut self,
        (number, foreign): (usize, bool),
        key: &[u8],
        argv: &[&[u8]],
        data: &mut Data,
        now_us: u64,
    ) -> Reply {
        self.calls += 1;
        *self.frame.borrow_mut() = Frame { data: std::mem::take(data), now_us };
        let reply = self.eval((number, foreign), key, argv);
        *data = std::mem::take(&mut self.frame.borrow_mut().data);
        reply.unwrap_or_else(|error| {
            let line = error.to_string();
            Reply::Error(format!("ERR {}", line.lines().next().unwrap_or_default()))
        })
    }

    fn eval(&mut self, (number, foreign): (usize, bool), key: &[u8], argv: &[&[u8]]) -> mlua::Result<Reply> {
        self.keys.fill(&self.lua, &[key])?;
        self.argv.fill(&self.lua, argv)?;
        let text = &self.texts[number];
        reply(&if foreign { &text.foreign } else { &text.function }.call(())?)
    }
}

/// As Redis: numbers lose their fraction, false is nothing, a list ends before its first nil.
fn reply(value: &Value) -> mlua::Result<Reply> {
    Ok(match value {
        Value::Integer(n) => Reply::Int(*n),
        Value::Number(n) => Reply::Int(*n as i64),
        Value::String(text) => Reply::Bulk(text.as_bytes().to_vec()),
        Value::Boolean(true) => Reply::Int(1),
        Value::Table(table) => {
            let mut list = Vec::with_capacity(5);
            for i in 1.. {
                match table.raw_get::<Value>(i)? {
                    Value::Nil => break,
                    item => list.push(reply(&item)?),
                }
            }
            // The scripts return no list that is an error or a status as well.
            if list.is_empty() {
                if let Some(error) = table.raw_get::<Option<mlua::String>>("err")? {
                    return Ok(Reply::Error(error.to_string_lossy()));
                }
                if let Some(ok) = table.raw_get::<Option<mlua::String>>("ok")? {
                    return Ok(Reply::Status(ok.to_string_lossy()));
                }
            }
            Reply::Array(list)
        }
        _ => Reply::Nil,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tatcell_cluster::script::{By, Mark};

    /// The text is that which 0.3.0 wrote, also as tests/marks.rs has it.
    #[test]
    fn a_mark_of_the_version_before_is_its_text_and_each_refuses_that_of_the_other() {
        let mut lua = Scripts::new().expect("Lua");
        let number = lua.number(script::MARK.as_bytes()).expect("Lua");
        let next = "8 per 1000000000 ns, burst 5, reserve 50/250, 2 nodes, changes take 30000 ms".to_owned();
        let mine = Mark { version: 1, ahead_us: 0, next: next.clone(), before: next };
        let call = script::mark(By::Text, b"m", 60_000, &mine, None);
        let words = call.args_iter().filter_map(|word| match word {
            redis::Arg::Simple(bytes) => Some(bytes),
            _ => None,
        });
        let words: Vec<&[u8]> = words.skip(4).chain([&b"7"[..]]).collect();
        for foreign in [true, false] {
            let mut data = Data::default();
            let reply = lua.run((number, foreign), b"m", &words, &mut data, 5);
            assert!(matches!(&reply, Reply::Array(list) if list[0] == Reply::Int(1)), "{reply:?}");
            let text = String::from_utf8_lossy(data.get(b"m", 5).expect("a mark")).into_owned();
            let old = "8 per 1000000000 ns, burst 5, 2 nodes, reserve 50/250";
            assert_eq!(text == old, foreign, "{text}");
            let reply = lua.run((number, !foreign), b"m", &words, &mut data, 5);
            assert!(matches!(&reply, Reply::Error(text) if text.contains("not a mark of")), "{reply:?}");
        }
    }
}
