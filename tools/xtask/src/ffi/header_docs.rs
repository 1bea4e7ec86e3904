//! The doc block of every function in a C header: purpose, each @param in order, @retval or @return, Thread, Cost,
//! Since; and a comment for every constant and field.

use std::collections::BTreeSet;

use anyhow::Result;
use regex_lite::Regex;

/// Words after @retval that are no code of the library.
const NO_CODE: [&str; 4] = ["0", "others", "as", "a"];
/// What every doc block says.
const PARTS: [&str; 3] = ["Thread: ", "Cost: ", "Since "];
/// Macros that need no comment of their own.
const UNSAID: [&str; 3] = ["(n)", "ASSERT_", "ALIGNOF_"];

/// A declared function.
struct Function<'a> {
    name: &'a str,
    returns: &'a str,
    arguments: &'a str,
    /// The inside of the comment above.
    doc: &'a str,
}

/// What is missing in the header, one line each. It may name what stands in it or in `all`.
pub fn problems(text: &str, all: &str) -> Result<Vec<String>> {
    // What stands before a declaration of its own line and is no part of it.
    let bare = |text: &str| {
        text.replace("TATCELL_API\n", "").replace("TATCELL_NODISCARD\n", "").replace("TATCELL_NODISCARD ", "")
    };
    let (text, all) = (&bare(text), &bare(all));
    let mut bad = Vec::new();
    let names = captured(all, r"#define (TATCELL_\w+)")?.into_iter().collect::<BTreeSet<_>>();
    let functions = functions(text)?;
    for function in &functions {
        let said = function.problems(all, &names)?;
        bad.extend(said.into_iter().map(|what| format!("{}: {what}", function.name)));
    }
    let declared = Regex::new(r"(?m)^[\w ]+?\**\b ?\**tatcell_\w+\(")?.find_iter(text).count();
    if functions.len() != declared || functions.is_empty() {
        bad.push(format!("{declared} functions are declared, {} have a doc block", functions.len()));
    }
    bad.extend(bare_lines(text)?);
    Ok(bad)
}

fn functions(text: &str) -> Result<Vec<Function<'_>>> {
    let declaration = Regex::new(r"^([\w ]+?\**) ?\b(tatcell_\w+)\(([^)]*)\);")?;
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("/**") {
        let Some((doc, below)) = after.split_once("*/\n") else { break };
        if let Some(c) = declaration.captures(below) {
            let part = |i| c.get(i).map_or("", |m| m.as_str());
            found.push(Function { name: part(2), returns: part(1).trim(), arguments: part(3), doc });
        }
        rest = below;
    }
    Ok(found)
}

impl Function<'_> {
    fn problems(&self, all: &str, names: &BTreeSet<&str>) -> Result<Vec<String>> {
        let lines = self.doc.trim_matches('\n').lines();
        let body = lines
            .map(|l| l.strip_prefix(" *").map_or(l, |l| l.strip_prefix(' ').unwrap_or(l)))
            .collect::<Vec<_>>();
        let body = body.join("\n");
        let mut bad = Vec::new();
        if !Regex::new(r"^[A-Z][^@]*\.")?.is_match(body.trim()) {
            bad.push("no first sentence".to_owned());
        }
        let arguments = self.arguments.split(',').map(str::trim).filter(|a| *a != "void");
        let wanted: Vec<&str> = arguments.filter_map(last_word).collect();
        let given = captured(&body, r"@param +(\w+)")?;
        if wanted != given {
            bad.push(format!("parameters {wanted:?}, documented {given:?}"));
        }
        let status = self.returns == "int32_t";
        if status && !body.contains("@retval") {
            bad.push("no @retval".to_owned());
        }
        if !status && self.returns != "void" && !body.contains("@return") {
            bad.push("no @return".to_owned());
        }
        for code in captured(&body, r"@retval +(\S+)")?.into_iter().map(|c| c.trim_end_matches(',')) {
            if !NO_CODE.contains(&code) && !names.contains(code) {
                bad.push(format!("@retval {code} is no code"));
            }
        }
        for word in captured(&body, r"\b(TATCELL_[A-Z0-9_]*[A-Z0-9])\b")? {
            let family = format!("{word}_");
            if !names.contains(word) && !names.iter().any(|n| n.starts_with(&family)) {
                bad.push(format!("{word} does not exist"));
            }
        }
        let elsewhere = all.replace(self.doc, "");
        for word in captured(&body, r"\b(tatcell_[a-z0-9_]+)\b")? {
            if !elsewhere.contains(word) {
                bad.push(format!("{word} does not exist"));
            }
        }
        bad.extend(PARTS.iter().filter(|p| !body.contains(**p)).map(|p| format!("no '{}'", p.trim())));
        if self.doc.lines().any(|l| l.chars().count() > 120) {
            bad.push("a line is longer than 120".to_owned());
        }
        Ok(bad)
    }
}

/// Constants and fields without a comment above.
fn bare_lines(text: &str) -> Result<Vec<String>> {
    let constant = Regex::new(r"^#define TATCELL_[A-Z0-9]")?;
    let field = Regex::new(r"^    (const )?\w+ \**\w+(\[\d+\])?;$")?;
    let mut bad = Vec::new();
    let mut previous = "";
    for line in text.lines() {
        let guard = line.starts_with("#define TATCELL_") && line.ends_with("_H");
        let constant = constant.is_match(line) && !guard && !UNSAID.iter().any(|u| line.contains(u));
        if (constant || field.is_match(line)) && !previous.trim().ends_with("*/") {
            bad.push(format!("no comment above: {}", line.trim()));
        }
        previous = line;
    }
    Ok(bad)
}

fn last_word(argument: &str) -> Option<&str> {
    argument.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next()
}

fn captured<'a>(text: &'a str, pattern: &str) -> Result<Vec<&'a str>> {
    let pattern = Regex::new(pattern)?;
    Ok(pattern.captures_iter(text).filter_map(|c| c.get(1)).map(|m| m.as_str()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "/**\n * Does it.\n *\n * @param a  a number\n * @retval 0  done\n *\n * Thread: any. Cost: O(1). \
                        Since 0.1.\n */\nint32_t tatcell_do(int32_t a);\n";

    #[test]
    fn a_complete_block_is_accepted() {
        assert_eq!(problems(GOOD, GOOD).unwrap_or_default(), Vec::<String>::new());
    }

    #[test]
    fn each_missing_part_is_said() {
        for (part, said) in [
            ("Does it.", "no first sentence"),
            ("@param a  a number", "parameters"),
            ("@retval 0  done", "no @retval"),
            ("Cost: O(1).", "no 'Cost:'"),
            ("int32_t a", "parameters"),
        ] {
            let found = problems(&GOOD.replace(part, ""), GOOD).unwrap_or_default();
            assert!(found.iter().any(|f| f.contains(said)), "without {part}: {found:?}");
        }
    }
}
