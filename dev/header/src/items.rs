//! The items that cbindgen found: constants, structures, functions, each with its comment.

/// A sort of item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Constant,
    Structure,
    Function,
}

/// One item, as the header shows it.
#[derive(Debug)]
pub struct Item {
    pub kind: Kind,
    pub name: String,
    /// The comment, with its delimiters.
    pub comment: String,
    /// What follows the comment.
    pub text: String,
    /// Its place in the headers; None until a template has put it somewhere.
    pub place: Option<usize>,
}

/// All of them, in the order of the sources.
pub struct Items {
    pub all: Vec<Item>,
    next: usize,
}

impl Items {
    /// Takes cbindgen's output apart.
    pub fn parse(raw: &str) -> Result<Items, String> {
        let mut all = Vec::new();
        let (mut comment, mut lines) = (Vec::new(), raw.lines().map(str::trim_end));
        while let Some(line) = lines.next() {
            if line.starts_with("/**") {
                comment = vec![line];
                while !comment.last().is_some_and(|l| l.ends_with("*/")) {
                    comment.push(lines.next().ok_or("a comment does not end")?);
                }
                continue;
            }
            if line.is_empty() {
                continue;
            }
            let mut text = vec![line];
            let end = if line.starts_with("typedef struct") && line.ends_with('{') { "}" } else { "" };
            while !(line.starts_with('#') || ends(&text, end)) {
                text.push(lines.next().ok_or_else(|| format!("no end: {line}"))?);
            }
            if let Some(item) = Item::new(&std::mem::take(&mut comment), &text)? {
                all.push(item);
            }
        }
        Ok(Items { all, next: 0 })
    }

    /// Marks the items of a kind whose name fits `pattern` (a `*` at its end stands for anything) as placed, and gives
    /// their numbers.
    pub fn place(&mut self, kind: Kind, pattern: &str) -> Result<Vec<usize>, String> {
        let (stem, open) = match pattern.strip_suffix('*') {
            Some(stem) => (stem, true),
            None => (pattern, false),
        };
        let mut found = Vec::new();
        for (i, item) in self.all.iter_mut().enumerate() {
            let fits = if open { item.name.starts_with(stem) } else { item.name == stem };
            if item.kind == kind && fits && (item.place.is_none() || !open) {
                if item.place.replace(self.next).is_some() {
                    return Err(format!("{} is placed twice", item.name));
                }
                self.next += 1;
                found.push(i);
            }
        }
        if found.is_empty() {
            return Err(format!("nothing is named {pattern}"));
        }
        Ok(found)
    }

    pub fn structure(&self, name: &str) -> Result<&Item, String> {
        let fits = |item: &&Item| item.kind == Kind::Structure && item.name == name;
        self.all.iter().find(fits).ok_or_else(|| format!("no structure {name}"))
    }

    /// Fails unless the templates have placed every item.
    pub fn all_used(&self) -> Result<(), String> {
        let left: Vec<_> = self.all.iter().filter(|i| i.place.is_none()).map(|i| i.name.as_str()).collect();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("no template places {}", left.join(", ")))
        }
    }

    /// The items of a kind in the order of the headers.
    pub fn in_order(&self, kind: Kind) -> Vec<&Item> {
        let mut items: Vec<_> = self.all.iter().filter(|item| item.kind == kind).collect();
        items.sort_by_key(|item| item.place);
        items
    }
}

fn ends(text: &[&str], start: &str) -> bool {
    text.last().is_some_and(|line| line.ends_with(';') && line.starts_with(start))
}

impl Item {
    fn new(comment: &[&str], text: &[&str]) -> Result<Option<Item>, String> {
        let first = text.first().copied().unwrap_or("");
        let (kind, name) = if let Some(rest) = first.strip_prefix("#define ") {
            (Kind::Constant, rest.split(' ').next())
        } else if first.starts_with("typedef struct") {
            // Of one that is not shown to C its name is all.
            let last = text.last().map(|l| l.strip_prefix("typedef struct ").unwrap_or(l));
            (Kind::Structure, last.and_then(|l| l.split_once(' ')?.1.strip_suffix(';')))
        } else {
            let call = text.join(" ");
            let before = call.split('(').next().unwrap_or("").to_owned();
            let name = before.rsplit([' ', '*']).next().unwrap_or("").to_owned();
            return Ok(Some(Item::made(Kind::Function, &name, comment, text)));
        };
        let name = name.ok_or_else(|| format!("no name: {first}"))?;
        // Constants of Rust's impl blocks are no part of the interface.
        if kind == Kind::Constant && !name.starts_with("TATCELL_") {
            return Ok(None);
        }
        Ok(Some(Item::made(kind, name, comment, text)))
    }

    fn made(kind: Kind, name: &str, comment: &[&str], text: &[&str]) -> Item {
        let mut lines: Vec<String> = text.iter().map(|l| l.replace("struct tatcell_", "tatcell_")).collect();
        if kind == Kind::Structure {
            lines[0] = text[0].to_owned();
            lines = one_line_comments(&lines);
        }
        let comment = one_line_comments(&without_examples(comment)).join("\n");
        Item { kind, name: name.to_owned(), comment, text: lines.join("\n"), place: None }
    }

    /// Type, name and number of elements of each field of a structure.
    pub fn fields(&self) -> Vec<(String, String, Option<usize>)> {
        let field = |line: &str| {
            let line = line.strip_prefix("    ").filter(|_| is_field(line))?.strip_suffix(';')?;
            let (_, name) = line.rsplit_once([' ', '*'])?;
            let ty = line.strip_suffix(name)?;
            let (name, count) = match name.split_once('[') {
                Some((name, count)) => (name, count.strip_suffix(']')?.parse().ok()),
                None => (name, None),
            };
            Some((ty.to_owned(), name.to_owned(), count))
        };
        self.text.lines().filter_map(field).collect()
    }
}

/// Is this line of a structure a field? Sentences end with a semicolon, too.
pub fn is_field(line: &str) -> bool {
    line.starts_with("    ") && line.ends_with(';') && !line.trim_start().starts_with('*')
}

/// A comment without its programs, which are in Rust, and without the empty lines before them.
fn without_examples(comment: &[&str]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut within = false;
    for line in comment {
        if line.trim().starts_with("* ```") {
            within = !within;
            while within && out.last().is_some_and(|last| last.trim() == "*") {
                out.pop();
            }
        } else if !within {
            out.push((*line).to_owned());
        }
    }
    out
}

/// Comments of one line on one line.
fn one_line_comments(lines: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut rest = lines;
    while let Some((line, more)) = rest.split_first() {
        let indent = &line[..line.len() - line.trim_start().len()];
        match more {
            [text, end, after @ ..]
                if line.trim() == "/**" && end.trim() == "*/" && text.trim().len() + indent.len() < 112 =>
            {
                let text = text.trim().trim_start_matches("* ");
                out.push(format!("{indent}/** {text} */"));
                rest = after;
            }
            _ => {
                out.push(line.clone());
                rest = more;
            }
        }
    }
    out
}
