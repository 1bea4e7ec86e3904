//! Parses rules from YAML, in the form of the reference service; errors name file, line and column.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use marked_yaml::types::{MarkedMappingNode, MarkedScalarNode};
use marked_yaml::{parse_yaml_with_options, LoadError, LoaderOptions, Marker, Node, Span};
use yaml_rust2::parser::{Event, Parser};

use crate::api::Unit;
use crate::rules::{Counters, Level, Pass, Rule, RuleLimit, Rules};

/// Holds a file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name in errors.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Reads files, and the files in folders that end in `.yaml` or `.yml`, in the order of their names. Everything else in
/// a folder is left out: what editors leave, what is no file, is empty or has another encoding, and other names. `note`
/// gets a line for each, but for names that begin with two dots, which are those of mounted volumes.
///
/// A file of `in_force` is never left out while its name is there. It may be in the middle of a rewrite, and without
/// its rules all requests of its domain would pass.
///
/// # Errors
/// The name of the file that cannot be read.
pub fn sources(
    paths: &[String],
    in_force: &[String],
    note: &mut dyn FnMut(String),
) -> Result<Vec<Source>, String> {
    let mut sources = Vec::new();
    for path in paths {
        if !Path::new(path).is_dir() {
            sources.push(source(path)?.map_err(|why| format!("cannot read {path}: {why}"))?);
            continue;
        }
        for name in names(path)? {
            let read = match stray(&name) {
                Some(why) => Err(why),
                None => source(&name)?,
            };
            let read = read.and_then(|s| if is_empty(&s.text) { Err("it is empty") } else { Ok(s) });
            match read {
                Ok(source) => sources.push(source),
                Err(why) if in_force.contains(&name) => {
                    return Err(format!("cannot read {name}: {why}; remove it if its rules must go"));
                }
                Err(why) => note(format!("{name} is left out: {why}")),
            }
        }
    }
    if sources.is_empty() {
        return Err(format!("no rules in {}: it has no .yaml or .yml file", paths.join(", ")));
    }
    Ok(sources)
}

/// Returns the sorted names of what is in a folder, but for those that begin with two dots.
fn names(folder: &str) -> Result<Vec<String>, String> {
    let cannot = |e| format!("cannot read {folder}: {e}");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        if !entry.file_name().as_encoded_bytes().starts_with(b"..") {
            names.push(entry.path().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Returns why something in a folder is not a file of rules, by its name.
fn stray(name: &str) -> Option<&'static str> {
    let path = Path::new(name);
    let own = path.file_name().unwrap_or_default().as_encoded_bytes();
    // A copy, or the file that an editor writes.
    if own.starts_with(b".") || own.starts_with(b"#") || own.ends_with(b"~") {
        return Some("it has the name of an editor's file");
    }
    let rules = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    (!rules).then_some("its name does not end in .yaml or .yml")
}

/// Whether a file says nothing.
fn is_empty(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#'))
}

/// Reads a file; or says why it is none of rules.
///
/// # Errors
/// It cannot be read.
fn source(name: &str) -> Result<Result<Source, &'static str>, String> {
    let cannot = |e| format!("cannot read {name}: {e}");
    // A pipe would wait for a writer, and a device may never end.
    match std::fs::metadata(name) {
        Ok(found) if found.is_dir() => return Ok(Err("it is a folder")),
        Ok(found) if !found.is_file() => return Ok(Err("it is not a file")),
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Err("there is no such file")),
        found => found.map_err(cannot)?,
    };
    let text = std::fs::read(name).map_err(cannot)?;
    // UTF-16 without a mark is valid, but has zeros.
    let text = match std::str::from_utf8(&text) {
        Ok(text) if !text.contains('\0') => text,
        Err(why) if why.error_len().is_none() => return Ok(Err("it ends within a character of UTF-8")),
        _ => return Ok(Err("it is not UTF-8")),
    };
    // Some editors begin a file with a mark of the encoding.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
    Ok(Ok(Source { name: name.to_owned(), text }))
}

/// Makes the parts of rules.
pub trait Make {
    /// Makes a limit of `requests` per unit.
    ///
    /// # Errors
    /// Text that says what is wrong.
    fn pass(&mut self, requests: u32, unit: Unit) -> Result<Pass, String>;

    /// Returns the counters of a rule, by domain and path.
    fn counters(&mut self, domain: &str, path: &str) -> Arc<Counters>;

    /// Reports a setting that is read but has no effect.
    fn note(&mut self, text: String);
}

/// Parses rules.
///
/// # Errors
/// `FILE:LINE:COLUMN:` and what is wrong.
pub fn rules(sources: &[Source], make: &mut dyn Make) -> Result<Rules, String> {
    let mut rules = Rules::default();
    for source in sources {
        let mut reader = Reader { name: &source.name, domain: String::new(), make };
        let level = reader.root(&source.text)?;
        if rules.domains.insert(reader.domain.clone(), level).is_some() {
            return Err(format!(
                "{}: domain '{}' is in another file, too: write it in one",
                source.name, reader.domain
            ));
        }
    }
    Ok(rules)
}

struct Reader<'a> {
    name: &'a str,
    domain: String,
    make: &'a mut dyn Make,
}

/// The deepest nesting of lists and maps. A level of rules takes two.
const DEPTH: usize = 128;
const DEEP: &str = "lists and maps are nested more than 128 deep: use fewer levels";

/// The most bytes of a rule's keys and values, which become a label of the metrics.
const PATH: usize = 4096;

/// The most bytes of the name of a domain or a limit, which requests and answers repeat for each descriptor.
pub const NAME: usize = 256;

const ROOT: &[&str] = &["domain", "descriptors"];
const DESCRIPTOR: &[&str] = &[
    "key",
    "value",
    "rate_limit",
    "descriptors",
    "shadow_mode",
    "quota_mode",
    "share_threshold",
    "detailed_metric",
    "value_to_metric",
    "metadata",
];
const RATE_LIMIT: &[&str] = &["unit", "requests_per_unit", "unlimited", "name", "replaces"];
const REPLACES: &[&str] = &["name"];

/// Keys for Envoy's metrics and metadata, which this service ignores.
const WITHOUT_EFFECT: &[&str] = &["detailed_metric", "value_to_metric", "metadata"];

/// What stands for no value.
const NULLS: &[&str] = &["", "~", "null", "Null", "NULL"];

type Read<T> = Result<T, String>;

impl Reader<'_> {
    fn root(&mut self, text: &str) -> Read<Level> {
        self.bounds(text)?;
        let options = LoaderOptions::default().error_on_duplicate_keys(true).prevent_coercion(true);
        let root = parse_yaml_with_options(0, text, options).map_err(|e| self.load_error(&e))?;
        let map = self.map(&root, ROOT)?;
        match self.text(map, "domain")? {
            Some(domain) if domain.len() > NAME => {
                return Err(self.at(&begin(&root), "the domain has more than 256 bytes"))
            }
            Some(domain) => domain.clone_into(&mut self.domain),
            None => return Err(self.at(&begin(&root), "a domain is missing: domain: NAME")),
        }
        self.level(map, "")
    }

    /// Refuses what the loader would recurse into too deeply, and what it would not read.
    fn bounds(&self, text: &str) -> Read<()> {
        let mut parser = Parser::new_from_str(text);
        let (mut depth, mut documents) = (0, 0);
        loop {
            let (event, mark) = parser.next_token().map_err(|e| {
                let (mark, info) = (e.marker(), e.info());
                let what = if info.contains("recursion limit") { DEEP } else { info };
                format!("{}:{}:{}: {what}", self.name, mark.line(), mark.col() + 1)
            })?;
            let at = |what: &str| format!("{}:{}:{}: {what}", self.name, mark.line(), mark.col() + 1);
            match event {
                Event::SequenceStart(..) | Event::MappingStart(..) if depth == DEPTH => return Err(at(DEEP)),
                Event::SequenceStart(..) | Event::MappingStart(..) => depth += 1,
                Event::SequenceEnd | Event::MappingEnd => depth -= 1,
                Event::DocumentStart if documents == 1 => {
                    return Err(at("a second document: put each domain into a file of its own"))
                }
                Event::DocumentStart => documents += 1,
                Event::StreamEnd => return Ok(()),
                _ => {}
            }
        }
    }

    fn level(&mut self, parent: &MarkedMappingNode, path: &str) -> Read<Level> {
        let mut level = Level::default();
        let Some(list) = present(parent, "descriptors") else { return Ok(level) };
        let Some(list) = list.as_sequence() else {
            return Err(self.at(list.span(), "descriptors must be a list"));
        };
        for node in list.iter() {
            let map = self.map(node, DESCRIPTOR)?;
            let Some(key) = self.text(map, "key")? else {
                return Err(self.at(&begin(node), "a key is missing"));
            };
            if key.contains('*') {
                return Err(self.at(&begin(node), "a * may stand in a value, not in a key"));
            }
            let value = self.text(map, "value")?;
            let own = value.map_or(key.to_owned(), |value| format!("{key}_{value}"));
            let path = if path.is_empty() { own } else { format!("{path}.{own}") };
            if path.len() > PATH {
                return Err(
                    self.at(&begin(node), "the keys and values down to here have more than 4096 bytes")
                );
            }
            let rule = self.rule(map, value, &path)?;
            if !level.add(key, value, rule) {
                return Err(self.at(&begin(node), &format!("a second rule for '{path}': remove one")));
            }
        }
        Ok(level)
    }

    fn rule(&mut self, map: &MarkedMappingNode, value: Option<&str>, path: &str) -> Read<Rule> {
        for name in WITHOUT_EFFECT {
            if let Some(node) = present(map, name) {
                let note = self.at(node.span(), &format!("{name} has no effect in this service"));
                self.make.note(note);
            }
        }
        let shared = match (self.yes(map, "share_threshold")?, value) {
            (false, _) => None,
            (true, Some(value)) if value.contains('*') => Some(value.to_owned()),
            (true, _) => {
                return Err(self.at(&span(map, "share_threshold"), "share_threshold needs a value with a *"))
            }
        };
        let limit = match present(map, "rate_limit") {
            None => None,
            Some(node) => {
                let map = self.map(node, RATE_LIMIT)?;
                Some(self.limit(&begin(node), map, path)?)
            }
        };
        let below = self.level(map, path)?;
        Ok(Rule {
            limit,
            shadow: self.yes(map, "shadow_mode")?,
            quota: self.yes(map, "quota_mode")?,
            shared,
            below,
        })
    }

    fn limit(&mut self, at: &Span, map: &MarkedMappingNode, path: &str) -> Read<RuleLimit> {
        let unlimited = self.yes(map, "unlimited")?;
        let pass = match (unlimited, self.text(map, "unit")?) {
            (true, Some(_)) => {
                return Err(self.at(&span(map, "unit"), "an unlimited limit has no unit: remove it"))
            }
            (true, None) => Pass::All,
            (false, None) => {
                return Err(self.at(at, "a unit is missing: second, minute, hour, day, week, month or year"))
            }
            (false, Some(name)) => {
                let unit = Unit::named(name).ok_or_else(|| {
                    let known = "second, minute, hour, day, week, month or year";
                    self.at(&span(map, "unit"), &format!("'{name}' is not a unit: {known}"))
                })?;
                let requests = match self.scalar(map, "requests_per_unit")? {
                    None => return Err(self.at(at, "requests_per_unit is missing")),
                    Some(number) => self.number(number)?,
                };
                self.make.pass(requests, unit).map_err(|why| self.at(at, &why))?
            }
        };
        let name = self.text(map, "name")?.unwrap_or_default().to_owned();
        if name.len() > NAME {
            return Err(self.at(&span(map, "name"), "the name of the limit has more than 256 bytes"));
        }
        let replaces = self.replaces(map, &name)?;
        let counters = self.make.counters(&self.domain, path);
        let place = self.at(at, "");
        let place = place.trim_end_matches([':', ' ']).to_owned();
        Ok(RuleLimit { pass, name, replaces, counters, epoch: 0, place })
    }

    fn number(&self, node: &MarkedScalarNode) -> Read<u32> {
        let text = node.as_str();
        let known = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        let number = known.ok_or_else(|| {
            self.at(node.span(), &format!("'{text}' is not a number from 0 to {}", u32::MAX))
        })?;
        if text.len() > 1 && text.starts_with('0') {
            let why = format!("'{text}' is decimal for some and octal for others: write no 0 before it");
            return Err(self.at(node.span(), &why));
        }
        Ok(number)
    }

    fn replaces(&mut self, map: &MarkedMappingNode, own: &str) -> Read<Vec<String>> {
        let Some(node) = present(map, "replaces") else { return Ok(Vec::new()) };
        let list = node.as_sequence().ok_or_else(|| self.at(node.span(), "replaces must be a list"))?;
        let mut names = Vec::new();
        for node in list.iter() {
            let map = self.map(node, REPLACES)?;
            match self.text(map, "name")? {
                None => return Err(self.at(&begin(node), "the name of the limit to replace is missing")),
                Some(name) if name == own => {
                    return Err(self.at(&begin(node), "a limit cannot replace itself"))
                }
                Some(name) => names.push(name.to_owned()),
            }
        }
        Ok(names)
    }

    /// Returns a map that has only these keys.
    fn map<'n>(&self, node: &'n Node, keys: &[&str]) -> Read<&'n MarkedMappingNode> {
        let Some(map) = node.as_mapping() else {
            return Err(self.at(node.span(), &format!("expected keys and values: {}", keys.join(", "))));
        };
        match map.keys().find(|key| !keys.contains(&key.as_str())) {
            Some(key) => {
                let what = format!("unknown key '{}'; known here: {}", key.as_str(), keys.join(", "));
                Err(self.at(key.span(), &what))
            }
            None => Ok(map),
        }
    }

    fn scalar<'n>(&self, map: &'n MarkedMappingNode, key: &str) -> Read<Option<&'n MarkedScalarNode>> {
        match present(map, key) {
            None => Ok(None),
            Some(node) => match node.as_scalar() {
                Some(scalar) => Ok(Some(scalar)),
                None => Err(self.at(node.span(), &format!("{key} must be one word or number"))),
            },
        }
    }

    /// Returns a text that is not empty.
    fn text<'n>(&self, map: &'n MarkedMappingNode, key: &str) -> Read<Option<&'n str>> {
        Ok(self.scalar(map, key)?.map(MarkedScalarNode::as_str))
    }

    fn yes(&self, map: &MarkedMappingNode, key: &str) -> Read<bool> {
        let Some(scalar) = self.scalar(map, key)? else { return Ok(false) };
        // Templates may write quotes.
        match scalar.as_str() {
            "true" | "True" | "TRUE" => Ok(true),
            "false" | "False" | "FALSE" => Ok(false),
            _ => Err(self.at(scalar.span(), &format!("{key} must be true or false"))),
        }
    }

    fn at(&self, span: &Span, what: &str) -> String {
        self.mark(span.start(), what)
    }

    fn mark(&self, mark: Option<&Marker>, what: &str) -> String {
        match mark {
            Some(mark) => format!("{}:{}:{}: {what}", self.name, mark.line(), mark.column()),
            None => format!("{}: {what}", self.name),
        }
    }

    fn load_error(&self, error: &LoadError) -> String {
        match error {
            LoadError::TopLevelMustBeMapping(mark) => {
                self.mark(Some(mark), "expected keys and values: domain, descriptors")
            }
            LoadError::UnexpectedAnchor(mark) => {
                self.mark(Some(mark), "anchors are not supported: repeat it")
            }
            LoadError::UnexpectedTag(mark) => self.mark(Some(mark), "tags are not supported: remove it"),
            LoadError::MappingKeyMustBeScalar(mark) => self.mark(Some(mark), "a key must be one word"),
            LoadError::ScanError(mark, error) => self.mark(Some(mark), error.info()),
            LoadError::DuplicateKey(twice) => {
                self.at(twice.key.span(), &format!("'{}' is given twice: remove one", twice.key.as_str()))
            }
            other => format!("{}: {other:?}", self.name),
        }
    }
}

/// Returns the value of a key, unless it is empty or a null of YAML, which has no quotes.
fn present<'n>(map: &'n MarkedMappingNode, key: &str) -> Option<&'n Node> {
    map.get_node(key).filter(|node| match node.as_scalar() {
        Some(scalar) if scalar.may_coerce() => !NULLS.contains(&scalar.as_str()),
        Some(scalar) => !scalar.as_str().is_empty(),
        None => true,
    })
}

/// Returns the position of a node. A map begins at its first key, not at the colon after it.
fn begin(node: &Node) -> Span {
    let first = node.as_mapping().and_then(|map| map.keys().next());
    first.map_or(*node.span(), |key| *key.span())
}

fn span(map: &MarkedMappingNode, key: &str) -> Span {
    map.get_node(key).map_or(*map.span(), |node| *node.span())
}
