//! Reads the C ABI from `include/tatcell.ffi.h`: structures with their fields, functions with parameters. So the target
//! `arguments` calls every new function without a change.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A field or a parameter.
struct Part {
    name: String,
    /// Without const and stars; a name of a structure where it points to one.
    base: String,
    /// How many stars.
    stars: usize,
    /// What the first star points to is const.
    is_const: bool,
    /// Elements of an array.
    count: usize,
}

impl Part {
    fn parse(text: &str) -> Part {
        let is_const = text.trim_start().starts_with("const ");
        let stars = text.matches('*').count();
        let text = text.replace("const", " ").replace('*', " ");
        let (text, count) = match text.split_once('[') {
            Some((text, rest)) => {
                (text.to_owned(), rest.trim_end_matches([']', ' ']).parse().expect("a length"))
            }
            None => (text, 1),
        };
        let mut words = text.split_whitespace();
        let (base, name) = (words.next().expect("a type"), words.next().unwrap_or_default());
        assert!(words.next().is_none(), "{text}");
        Part { name: name.to_owned(), base: base.to_owned(), stars, is_const, count }
    }
}

fn main() {
    const HEADER: &str = "../../include/tatcell.ffi.h";
    println!("cargo::rerun-if-changed={HEADER}");
    let header = std::fs::read_to_string(HEADER).expect("the header");
    let code = without_comments(&header);
    let mut sizes: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (name, size) in [("void", 1), ("char", 1), ("uint8_t", 1), ("uint32_t", 4), ("int32_t", 4)] {
        sizes.insert(name.into(), (size, size));
    }
    for name in ["uint64_t", "int64_t", "size_t"] {
        sizes.insert(name.into(), (8, 8));
    }
    let (mut records, mut functions, mut rust) = (String::new(), String::new(), String::new());
    for chunk in code.split("typedef struct ").skip(1) {
        let (name, rest) = chunk.split_once('{').expect("a body");
        let (body, _) = rest.split_once('}').expect("an end");
        let (mut at, mut widest, mut fields) = (0usize, 1, String::new());
        for field in body.split(';').map(str::trim).filter(|f| !f.is_empty()) {
            let part = Part::parse(field);
            let (size, align) = if part.stars > 0 { (8, 8) } else { sizes[&part.base] };
            at = at.next_multiple_of(align);
            write_part(&mut fields, &part, size, at);
            (at, widest) = (at + size * part.count, widest.max(align));
        }
        let name = name.trim();
        let size = at.next_multiple_of(widest);
        sizes.insert(name.into(), (size, widest));
        writeln!(records, "Record {{ name: {name:?}, size: {size}, align: {widest}, fields: &[{fields}] }},")
            .unwrap();
    }
    // Prototypes: what is outside of braces and has a parenthesis.
    let prototypes = code.rsplit_once("} ").map_or("", |(_, rest)| rest);
    for text in prototypes.split(';').map(str::trim).filter(|t| t.contains('(')) {
        let (start, rest) = text.split_once('(').expect("parameters");
        let (result, name) = start.rsplit_once([' ', '*']).expect("a name");
        let parameters = rest.trim_end_matches(')');
        let mut parts = String::new();
        for parameter in parameters.split(',').map(str::trim).filter(|p| *p != "void") {
            let part = Part::parse(parameter);
            let size = if part.stars > 0 { 8 } else { sizes[&part.base].0 };
            write_part(&mut parts, &part, size, 0);
        }
        let is_code = result.trim() == "int32_t";
        writeln!(
            functions,
            "Function {{ name: {name:?}, is_code: {is_code}, at: || {name} as *const (), parts: &[{parts}] }},"
        )
        .unwrap();
        writeln!(rust, "    fn {name}();").unwrap();
    }
    let text = format!(
        "/// The structures of the C ABI.\npub const RECORDS: &[Record] = &[\n{records}];\n\
         extern \"C\" {{\n{rust}}}\n\
         /// The functions of the C ABI.\npub const FUNCTIONS: &[Function] = &[\n{functions}];\n"
    );
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("a folder")).join("abi.rs");
    std::fs::write(out, text).expect("a place to write to");
}

fn write_part(to: &mut String, part: &Part, size: usize, at: usize) {
    let Part { name, base, stars, is_const, count } = part;
    write!(
        to,
        "Part {{ name: {name:?}, base: {base:?}, stars: {stars}, is_const: {is_const}, count: {count}, \
         size: {size}, at: {at} }}, "
    )
    .unwrap();
}

fn without_comments(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        code.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    code.push_str(rest);
    code.lines().filter(|l| !l.starts_with('#')).collect::<Vec<_>>().join("\n")
}
