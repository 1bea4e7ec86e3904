//! The list of the commands, and what COMMAND answers.

use crate::resp::{self, Args};

/// Every command: its name, its number of words (as Redis counts: negative means at least), and where its key is.
pub(crate) const COMMANDS: &[(&str, i64, i64)] = &[
    ("auth", -2, 0),
    ("cl.throttle", -5, 1),
    ("client", -2, 0),
    ("command", -1, 0),
    ("del", -2, 1),
    ("discard", 1, 0),
    ("echo", 2, 0),
    ("exec", 1, 0),
    ("hello", -1, 0),
    ("info", -1, 0),
    ("multi", 1, 0),
    ("ping", -1, 0),
    ("quit", -1, 0),
    ("reset", 1, 0),
    ("select", 2, 0),
    ("unlink", -2, 1),
];

/// Finds a command by its name in any case.
///
/// # Errors
/// The error for the client.
pub fn find(name: &[u8]) -> Result<&'static (&'static str, i64, i64), String> {
    COMMANDS.iter().find(|(known, ..)| known.as_bytes().eq_ignore_ascii_case(name)).ok_or_else(|| {
        let text = resp::shown(name);
        format!("ERR unknown command '{text}'; this server knows CL.THROTTLE, see COMMAND")
    })
}

/// Returns the error of a command with too few or too many words.
pub fn wrong_count(name: &str, arity: i64, count: usize) -> Option<String> {
    let count = count as i64;
    let wrong = arity > 0 && count != arity || count < arity.abs();
    wrong.then(|| format!("ERR wrong number of arguments for '{name}' command"))
}

/// Answers enough for clients and proxies that ask where the key of a command is.
pub fn command(args: &Args<'_>, resp3: bool, out: &mut Vec<u8>) {
    let which = args.get(1).map(|word| word.to_ascii_lowercase());
    match which.as_deref() {
        Some(b"count") => resp::number(out, COMMANDS.len() as i64),
        Some(b"info") if args.len() > 2 => {
            resp::array_of(out, args.len() - 2);
            for name in &args[2..] {
                match find(name) {
                    Ok(known) => entry(known, out),
                    Err(_) => resp::null(out, resp3),
                }
            }
        }
        Some(b"getkeys") if args.len() > 2 => keys(&args[2..], out),
        Some(b"getkeys") => resp::error(out, "ERR wrong number of arguments for 'command|getkeys' command"),
        None | Some(b"info") => {
            resp::array_of(out, COMMANDS.len());
            COMMANDS.iter().for_each(|known| entry(known, out));
        }
        Some(_) => resp::array_of(out, 0),
    }
}

fn entry((name, arity, key): &(&str, i64, i64), out: &mut Vec<u8>) {
    resp::array_of(out, 7);
    resp::bulk(out, name.as_bytes());
    resp::number(out, *arity);
    resp::array_of(out, 1);
    resp::simple(out, "fast");
    for value in [*key, if takes_keys(name) { -1 } else { *key }, *key] {
        resp::number(out, value);
    }
    resp::array_of(out, 1);
    resp::simple(out, "@fast");
}

fn takes_keys(name: &str) -> bool {
    matches!(name, "del" | "unlink")
}

fn keys(call: &[&[u8]], out: &mut Vec<u8>) {
    match find(call[0]) {
        Err(_) => resp::error(out, "ERR Invalid command specified"),
        Ok((_, _, 0)) => resp::error(out, "ERR The command has no key arguments"),
        Ok((name, arity, _)) if wrong_count(name, *arity, call.len()).is_some() => {
            resp::error(out, "ERR Invalid number of arguments specified for command");
        }
        Ok((name, ..)) => {
            let keys = if takes_keys(name) { &call[1..] } else { &call[1..2] };
            resp::array_of(out, keys.len());
            keys.iter().for_each(|key| resp::bulk(out, key));
        }
    }
}
