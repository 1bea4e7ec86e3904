//! Runs the scripts as they ship, in the Lua that Redis has, and converts what goes in and out as Redis does.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value};

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
    texts: Vec<(Vec<u8>, String, Function)>,
    calls: u64,
}

fn bytes(value: &Value) -> mlua::Result<Vec<u8>> {
    match value {
        Value::String(text) => Ok(text.as_bytes().to_vec()),
        Value::Integer(n) => Ok(n.to_string().into_bytes()),
        // As `%.17g`: integers of doubles have no point.
        Value::Number(n) if n.fract() == 0.0 && n.abs() < 1e17 => Ok(format!("{n:.0}").into_bytes()),
        Value::Number(n) => Ok(n.to_string().into_bytes()),
        _ => Err(mlua::Error::runtime("Lua redis lib command arguments must be strings or integers")),
    }
}

fn call(lua: &Lua, frame: &RefCell<Frame>, args: MultiValue) -> mlua::Result<Value> {
    let args = args.iter().map(bytes).collect::<mlua::Result<Vec<Vec<u8>>>>()?;
    let mut frame = frame.borrow_mut();
    let Frame { data, now_us } = &mut *frame;
    let now_us = *now_us;
    let name = args.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    let text = |value: Option<&[u8]>| -> mlua::Result<Value> {
        value.map_or(Ok(Value::Boolean(false)), |value| Ok(Value::String(lua.create_string(value)?)))
    };
    match (&name[..], &args[1..]) {
        (b"TIME", []) => {
            let parts = [(now_us / 1_000_000).to_string(), (now_us % 1_000_000).to_string()];
            Ok(Value::Table(lua.create_sequence_from(parts)?))
        }
        (b"GET", [key]) => text(data.get(key, now_us)),
        (b"DEL", [key]) => Ok(Value::Number(f64::from(u8::from(data.del(key, now_us))))),
        (b"PTTL", [key]) => Ok(Value::Number(data.pttl(key, now_us) as f64)),
        (b"SET", [key, value, options @ ..]) => {
            let set = Set::read(options).map_err(mlua::Error::runtime)?;
            match data.set(key, value, set, now_us) {
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
        Ok(Scripts { lua, frame, known: HashMap::new(), texts: Vec::new(), calls: 0 })
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
        let digest = redis::Script::new(&String::from_utf8_lossy(text)).get_hash().to_owned();
        self.texts.push((text.to_vec(), digest, function));
        self.known.insert(text.to_vec(), self.texts.len() - 1);
        Ok(self.texts.len() - 1)
    }

    /// Returns the digest by which calls name a script.
    pub fn digest(&self, number: usize) -> &str {
        &self.texts[number].1
    }

    /// Returns the text of a script.
    pub fn text(&self, number: usize) -> &[u8] {
        &self.texts[number].0
    }

    /// Returns how many calls ran.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Runs a script on the data of a server.
    pub fn run(
        &mut self,
        number: usize,
        key: &[u8],
        argv: &[Vec<u8>],
        data: &mut Data,
        now_us: u64,
    ) -> Reply {
        self.calls += 1;
        *self.frame.borrow_mut() = Frame { data: std::mem::take(data), now_us };
        let reply = self.eval(number, key, argv);
        *data = std::mem::take(&mut self.frame.borrow_mut().data);
        reply.unwrap_or_else(|error| {
            let line = error.to_string();
            Reply::Error(format!("ERR {}", line.lines().next().unwrap_or_default()))
        })
    }

    fn eval(&mut self, number: usize, key: &[u8], argv: &[Vec<u8>]) -> mlua::Result<Reply> {
        let strings = |list: &mut dyn Iterator<Item = &[u8]>, length| -> mlua::Result<Table> {
            let table = self.lua.create_table_with_capacity(length, 0)?;
            for (i, item) in list.enumerate() {
                table.raw_set(i + 1, self.lua.create_string(item)?)?;
            }
            Ok(table)
        };
        let globals = self.lua.globals();
        globals.raw_set("KEYS", strings(&mut std::iter::once(key), 1)?)?;
        globals.raw_set("ARGV", strings(&mut argv.iter().map(Vec::as_slice), argv.len())?)?;
        reply(&self.texts[number].2.call(())?)
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
            if let Some(error) = table.raw_get::<Option<mlua::String>>("err")? {
                return Ok(Reply::Error(error.to_string_lossy()));
            }
            if let Some(ok) = table.raw_get::<Option<mlua::String>>("ok")? {
                return Ok(Reply::Status(ok.to_string_lossy()));
            }
            let mut list = Vec::new();
            for i in 1.. {
                match table.raw_get::<Value>(i)? {
                    Value::Nil => break,
                    item => list.push(reply(&item)?),
                }
            }
            Reply::Array(list)
        }
        _ => Reply::Nil,
    })
}
