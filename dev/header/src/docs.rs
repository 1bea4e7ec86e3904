//! Checks that the comment of every item is complete: a reader of the header needs no other page to call a function.
//!
//! - Function: a first sentence; `@param` for each parameter, in order; `@retval` for each code that it returns, or
//!   `@return`; `Thread:`, `Cost:`, `Since`.
//! - The twin `NAME_hash` of a function `NAME`: one sentence that names `NAME`, and `Since`. Its parameters are those
//!   of `NAME`, with `hash` for the key.
//! - A function that returns a size: one sentence that names the structure and its constant, and `Since`.
//! - Constant, field of a structure: a comment.
//!
//! Codes, constants and functions that a comment names must exist.

use std::collections::BTreeSet;
use std::path::Path;

use crate::items::{is_field, Item, Items, Kind};

/// Words after `@retval` that are no code of the library.
const NO_CODE: [&str; 4] = ["0", "others", "as", "a"];
/// What the comment of every function has.
const PARTS: [&str; 3] = ["Thread: ", "Cost: ", "Since "];
/// Macros of the templates that need no comment of their own.
const UNSAID: [&str; 5] = ["(n)", "ASSERT_", "ALIGNOF_", "TATCELL_API", "TATCELL_NODISCARD"];

/// What is missing in these headers, a line each: file, item, and what. `all` holds every header that they may name,
/// themselves included; `sources` is the folder that declares the functions.
pub fn problems(headers: &[(&str, String)], items: &Items, all: &str, sources: &Path) -> Vec<String> {
    let defined =
        |line: &str| line.strip_prefix("#define ").and_then(|rest| words(rest).next().map(str::to_owned));
    let names: BTreeSet<String> = all.lines().filter_map(defined).collect();
    let mut bad = Vec::new();
    for function in items.in_order(Kind::Function) {
        let found = match sibling(function, items) {
            Some(sibling) => of_twin(function, sibling),
            None if is_size(function) => unknown(function, &names, all),
            None => of_function(function, &names, all),
        };
        if !found.is_empty() {
            let file = source_of(sources, &function.name).unwrap_or_else(|| sources.display().to_string());
            bad.extend(found.into_iter().map(|what| format!("{file}: {}: {what}", function.name)));
        }
    }
    for (header, text) in headers {
        bad.extend(
            without_comment(text).into_iter().map(|line| format!("{header}: {line}: no comment above")),
        );
    }
    bad
}

/// The function that this one is the twin of, by its comment.
fn sibling<'a>(function: &Item, items: &'a Items) -> Option<&'a Item> {
    let name = function.name.strip_suffix("_hash")?;
    let says = format!("As {name}, for a hash made by tatcell_table_hash. Since ");
    let sibling = items.all.iter().find(|item| item.kind == Kind::Function && item.name == name)?;
    text_of(&function.comment).trim().starts_with(&says).then_some(sibling)
}

/// Whether the comment of this function says no more than whose size it returns.
fn is_size(function: &Item) -> bool {
    let says =
        format!(" of the linked library, to compare with {}. Since ", function.name.to_ascii_uppercase());
    let body = text_of(&function.comment).replace('\n', " ");
    body.trim().starts_with("Returns sizeof(tatcell_")
        && body.contains(&says)
        && parameters(function).is_empty()
}

fn of_twin(function: &Item, sibling: &Item) -> Vec<String> {
    let mut wanted: Vec<&str> = parameters(sibling).into_iter().filter(|name| *name != "key_len").collect();
    wanted.iter_mut().filter(|name| **name == "key").for_each(|name| *name = "hash");
    let given = parameters(function);
    match wanted == given {
        true => Vec::new(),
        false => {
            vec![format!("its parameters are {given:?}, and should be {wanted:?} as in {}", sibling.name)]
        }
    }
}

/// A comment without its delimiters and stars.
fn text_of(comment: &str) -> String {
    let bare = |line: &'_ str| -> String {
        let line = line.trim().trim_start_matches("/**").trim_start_matches('*').trim_end_matches("*/");
        line.trim().to_owned()
    };
    comment.lines().map(bare).collect::<Vec<_>>().join("\n")
}

fn parameters(function: &Item) -> Vec<&str> {
    let (_, rest) = function.text.split_once('(').unwrap_or_default();
    let arguments = rest.split(')').next().unwrap_or("").split(',').map(str::trim);
    arguments.filter(|argument| *argument != "void").filter_map(|argument| words(argument).last()).collect()
}

fn of_function(function: &Item, names: &BTreeSet<String>, all: &str) -> Vec<String> {
    let body = text_of(&function.comment);
    let mut bad = Vec::new();
    let first = body.trim().split('@').next().unwrap_or("");
    if !(first.starts_with(|c: char| c.is_ascii_uppercase()) && first.contains('.')) {
        bad.push("no first sentence".to_owned());
    }
    let before = function.text.split('(').next().unwrap_or("");
    let wanted = parameters(function);
    let given: Vec<&str> = after(&body, "@param").filter_map(|text| words(text).next()).collect();
    if wanted != given {
        bad.push(format!("its parameters are {wanted:?}, @param names {given:?}"));
    }
    let returns = before.replace("TATCELL_NODISCARD", "").replace(&function.name, "");
    match returns.trim() {
        "void" => {}
        // A few of them return a number, such as a descriptor.
        "int32_t" if body.contains("@retval") || body.contains("@return ") => {}
        "int32_t" => bad.push("no @retval".to_owned()),
        _ if body.contains("@return ") => {}
        _ => bad.push("no @return".to_owned()),
    }
    for code in after(&body, "@retval").filter_map(|text| text.split_whitespace().next()) {
        let code = code.trim_end_matches(',');
        if !NO_CODE.contains(&code) && !names.contains(code) {
            bad.push(format!("@retval {code} is no code"));
        }
    }
    bad.extend(unknown(function, names, all));
    bad.extend(
        PARTS.iter().filter(|part| !body.contains(**part)).map(|part| format!("no '{}'", part.trim())),
    );
    bad
}

/// Constants and functions in the comment that do not exist.
fn unknown(function: &Item, names: &BTreeSet<String>, all: &str) -> Vec<String> {
    let (body, mut bad) = (text_of(&function.comment), Vec::new());
    let elsewhere = all.replace(&function.comment, "");
    for word in words(&body).filter(|word| !word.ends_with('_')) {
        let family = format!("{word}_");
        let known = match word {
            _ if word.starts_with("TATCELL_") => {
                names.contains(word) || names.iter().any(|name| name.starts_with(&family))
            }
            _ if word.starts_with("tatcell_") => elsewhere.contains(word),
            _ => true,
        };
        if !known {
            bad.push(format!("{word} does not exist"));
        }
    }
    bad
}

/// Constants and fields without a comment above.
fn without_comment(text: &str) -> Vec<&str> {
    let mut previous = "";
    let mut bad = Vec::new();
    let mut in_structure = false;
    for line in text.lines() {
        let guard = line.ends_with("_H");
        let constant =
            line.starts_with("#define TATCELL_") && !guard && !UNSAID.iter().any(|u| line.contains(u));
        in_structure = line.starts_with("typedef struct") && line.ends_with('{')
            || in_structure && !line.starts_with('}');
        if (constant || in_structure && is_field(line)) && !previous.trim().ends_with("*/") {
            bad.push(line.trim());
        }
        previous = line;
    }
    bad
}

/// The file below `folder` that declares a function of C.
fn source_of(folder: &Path, function: &str) -> Option<String> {
    let mut entries: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries.iter().find_map(|path| match path.is_dir() {
        true => source_of(path, function),
        false => {
            let text = std::fs::read_to_string(path).ok()?;
            text.contains(&format!("fn {function}(")).then(|| path.display().to_string())
        }
    })
}

/// What follows each occurrence of a command.
fn after<'a>(text: &'a str, command: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(command).skip(1)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "/**\n * Does it.\n *\n * @param a  a number\n * @retval 0  done\n *\n \
                        * Thread: any. Cost: O(1). Since 0.1.\n */\nint32_t tatcell_do(int32_t a);\n";

    fn found(text: &str) -> Vec<String> {
        let items = Items::parse(text).expect("an item");
        problems(&[("tatcell.h", text.to_owned())], &items, text, Path::new("src/capi"))
    }

    #[test]
    fn a_complete_comment_is_accepted() {
        assert_eq!(found(GOOD), Vec::<String>::new());
    }

    #[test]
    fn a_program_in_rust_is_left_out() {
        let shown =
            "/**\n * Does it.\n *\n * ```\n * let a = do_it();\n *\n * ```\n *\n * @param a  a number\n */\n";
        let items = Items::parse(&format!("{shown}int32_t tatcell_do(int32_t a);\n")).expect("an item");
        assert_eq!(items.all[0].comment, "/**\n * Does it.\n *\n * @param a  a number\n */");
    }

    #[test]
    fn each_missing_part_is_named() {
        for (part, said) in [
            ("Does it.", "no first sentence"),
            ("@param a  a number", "its parameters are [\"a\"], @param names []"),
            ("@retval 0  done", "no @retval"),
            ("Thread: any.", "no 'Thread:'"),
            ("Cost: O(1).", "no 'Cost:'"),
            ("Since 0.1.", "no 'Since'"),
        ] {
            let found = found(&GOOD.replace(part, ""));
            assert_eq!(found, [format!("src/capi: tatcell_do: {said}")], "without {part}");
        }
    }

    #[test]
    fn codes_and_functions_that_do_not_exist_are_named() {
        assert!(found(&GOOD.replace("0  done", "TATCELL_DONE  done")).len() == 2, "as a code, and as a word");
        assert_eq!(found(&GOOD.replace("Does it.", "As tatcell_did.")).len(), 1);
    }

    #[test]
    fn a_twin_names_its_sibling_and_has_its_parameters() {
        let key = GOOD.replace("int32_t a", "const void *key, size_t key_len");
        let key = key.replace("@param a ", "@param key  it\n * @param key_len ");
        let hash = "/** A hash. Thread: any. Cost: O(1). Since 0.1.\n * @return it */\n\
                    uint64_t tatcell_table_hash(void);\n";
        let twin = |name: &str, parameter: &str| {
            let says = "for a hash made by tatcell_table_hash. Since 0.1.";
            format!("{key}{hash}/** As {name}, {says} */\nint32_t tatcell_do_hash({parameter});\n")
        };
        assert_eq!(found(&twin("tatcell_do", "uint64_t hash")), Vec::<String>::new());
        assert_eq!(found(&twin("tatcell_do", "uint64_t hashed")).len(), 1);
        assert!(found(&twin("tatcell_done", "uint64_t hash")).len() > 1, "of no function");
    }

    #[test]
    fn a_size_names_its_structure_and_its_constant() {
        let size = |constant: &str| {
            let says =
                format!("Returns sizeof(tatcell_a_t) of the linked library, to compare with {constant}");
            let around = "/** A. */\n#define TATCELL_A_SIZE 8\n/** B. */\n#define TATCELL_B_SIZE 8\n\
                          typedef struct tatcell_a_t tatcell_a_t;\n";
            found(&format!("{around}/** {says}. Since 0.1. */\nsize_t tatcell_a_size(void);\n"))
        };
        assert_eq!(size("TATCELL_A_SIZE"), Vec::<String>::new());
        assert!(size("TATCELL_B_SIZE").len() > 1, "that of another structure");
    }

    #[test]
    fn constants_and_fields_without_a_comment_are_named() {
        let bare =
            "#define TATCELL_ONE 1\n/** Two. */\n#define TATCELL_TWO 2\ntypedef struct tatcell_t {\n    \
                    int32_t size;\n    /** Three. */\n    int32_t three;\n} tatcell_t;\n";
        assert_eq!(without_comment(bare), ["#define TATCELL_ONE 1", "int32_t size;"]);
    }
}
