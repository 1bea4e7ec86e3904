//! Makes a header from its template. Lines that start with `@` are replaced:
//!
//! ```text
//! @const NAME..        constants; a * at the end of a name stands for anything not placed yet
//! @struct NAME         a structure
//! @init NAME MACRO     its initialiser: the size, if it has one, and zeros
//! @fn NAME..           functions
//! ```
use crate::items::{Items, Kind};

pub fn fill(name: &str, template: &str, items: &mut Items) -> Result<String, String> {
    let mut out = Vec::new();
    for (number, line) in template.lines().enumerate() {
        let Some(order) = line.strip_prefix('@') else {
            out.push(line.to_owned());
            continue;
        };
        let words: Vec<&str> = order.split_whitespace().collect();
        let made = match words.as_slice() {
            ["const", names @ ..] => each(items, Kind::Constant, names),
            ["struct", names @ ..] => each(items, Kind::Structure, names),
            ["fn", names @ ..] => each(items, Kind::Function, names),
            ["init", structure, name] => initialiser(items, structure, name),
            _ => Err(format!("no such line: {line}")),
        };
        out.push(made.map_err(|e| format!("{name}.in:{}: {e}", number + 1))?);
    }
    out.push(String::new());
    let out = out.join("\n");
    match out.lines().enumerate().find(|(_, line)| line.len() >= 120) {
        Some((number, line)) => Err(format!("{name}:{}: longer than 119: {line}", number + 1)),
        None => Ok(out),
    }
}

fn each(items: &mut Items, kind: Kind, names: &[&str]) -> Result<String, String> {
    let mut out = Vec::new();
    for name in names {
        for i in items.place(kind, name)? {
            let item = &items.all[i];
            let text = if kind == Kind::Function { prototype(&item.text) } else { item.text.clone() };
            let gap = if kind == Kind::Constant { "" } else { "\n" };
            out.push(format!("{}\n{text}{gap}", item.comment));
        }
    }
    Ok(out.join("\n").trim_end().to_owned())
}

/// A function as users may decorate it: its qualifiers on a line of their own.
fn prototype(text: &str) -> String {
    match text.strip_prefix("TATCELL_NODISCARD\n") {
        Some(rest) => format!("TATCELL_NODISCARD TATCELL_API\n{rest}"),
        None => format!("TATCELL_API\n{text}"),
    }
}

fn initialiser(items: &Items, structure: &str, name: &str) -> Result<String, String> {
    let values = values(items, structure)?;
    let line = format!("#define {name} {values}");
    Ok(if line.len() < 120 { line } else { format!("#define {name} \\\n    {values}") })
}

fn values(items: &Items, structure: &str) -> Result<String, String> {
    let mut values = Vec::new();
    for (ty, name, count) in items.structure(structure)?.fields() {
        values.push(match count {
            _ if ty.starts_with("tatcell_") && !ty.contains('*') && items.structure(ty.trim()).is_ok() => {
                self::values(items, ty.trim())?
            }
            // The language sets the elements that are not named to 0.
            Some(_) => "{0}".to_owned(),
            None if name == "size" => format!("sizeof({structure})"),
            None => "0".to_owned(),
        });
    }
    Ok(format!("{{{}}}", values.join(", ")))
}
