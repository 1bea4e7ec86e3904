//! Which file names what of which other file: the module tree, paths followed through `pub use`, and circles.

use std::collections::BTreeMap;

use super::source::{Named, Source};

/// One file that names another.
#[derive(Clone, Debug)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    pub line: usize,
    /// As written.
    pub path: String,
    /// Handed on by `pub use`, and not used by the file itself.
    pub passed_on: bool,
    /// Compiled for tests only.
    pub test: bool,
}

pub struct Graph {
    pub sources: Vec<Source>,
    pub edges: Vec<Edge>,
    modules: BTreeMap<Vec<String>, usize>,
}

impl Graph {
    pub fn of(files: &[(String, String)]) -> Graph {
        let sources: Vec<Source> = files.iter().map(|(file, text)| Source::read(file, text)).collect();
        let modules = sources.iter().enumerate().map(|(i, source)| (source.module(), i)).collect();
        let mut graph = Graph { sources, edges: Vec::new(), modules };
        graph.edges = graph.all_edges();
        graph
    }

    fn all_edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (from, source) in self.sources.iter().enumerate() {
            let mut add = |named: &Named, passed_on| {
                let test = source.is_test() || named.inside.iter().any(|module| module == "tests");
                let Named { line, .. } = *named;
                for to in self.targets(from, named).into_iter().filter(|to| *to != from) {
                    edges.push(Edge { from, to, line, path: named.path.join("::"), passed_on, test });
                }
            };
            source.named.iter().for_each(|named| add(named, false));
            source.passed_on.iter().for_each(|(name, named)| add(named, !source.mentions(name)));
        }
        // Methods that a file adds to a type of another file are called without being named by a path.
        for (to, source) in self.sources.iter().enumerate() {
            for method in source.methods.iter().filter(|method| self.is_only(method)) {
                for (from, caller) in self.sources.iter().enumerate().filter(|(from, _)| *from != to) {
                    if let Some(line) = caller.calls().get(method.as_str()) {
                        let path = format!(".{method}()");
                        let test = caller.is_test();
                        edges.push(Edge { from, to, line: *line, path, passed_on: false, test });
                    }
                }
            }
        }
        edges
    }

    /// Has one function of src this name?
    fn is_only(&self, name: &str) -> bool {
        self.sources.iter().flat_map(|source| &source.functions).filter(|function| *function == name).count()
            == 1
    }

    /// The files in which what a path names may be defined: more than one where `cfg` chooses.
    fn targets(&self, from: usize, named: &Named) -> Vec<usize> {
        let source = &self.sources[from];
        let module = source.module();
        let first = named.path.first().map_or("", String::as_str);
        // `super` of an inline module is the file itself.
        let mut here = [module.clone(), named.inside.clone()].concat();
        let mut rest = &named.path[..];
        match first {
            "crate" => {
                here.clear();
                rest = &rest[1..];
            }
            "self" | "super" => {
                while let Some("self" | "super") = rest.first().map(String::as_str) {
                    if rest[0] == "super" {
                        here.pop();
                    }
                    rest = &rest[1..];
                }
            }
            child if source.children.contains(child) => here = module,
            _ => return Vec::new(),
        }
        self.resolve(&here, rest, 0)
    }

    fn resolve(&self, module: &[String], rest: &[String], depth: usize) -> Vec<usize> {
        let mut here = module.to_vec();
        // An inline module is part of its file.
        while !here.is_empty() && !self.modules.contains_key(&here) {
            here.pop();
        }
        let file = self.modules.get(&here).copied();
        let Some((name, after)) = rest.split_first() else { return file.into_iter().collect() };
        let child = [here.clone(), vec![name.clone()]].concat();
        if self.modules.contains_key(&child) {
            return self.resolve(&child, after, depth);
        }
        let Some(file) = file else { return Vec::new() };
        let mut found = Vec::new();
        for path in self.sources[file].imports.get(name).into_iter().flatten().filter(|_| depth < 8) {
            let named = Named { path: [path.clone(), after.to_vec()].concat(), line: 0, inside: Vec::new() };
            let (head, tail) = (named.path[0].as_str(), &named.path[1..]);
            found.extend(match head {
                "crate" => self.resolve(&[], tail, depth + 1),
                "self" => self.resolve(&here, tail, depth + 1),
                "super" => self.resolve(&here[..here.len().saturating_sub(1)], tail, depth + 1),
                _ if self.sources[file].children.contains(head) => {
                    self.resolve(&here, &named.path, depth + 1)
                }
                // Another crate, or an inline module.
                _ => vec![file],
            });
        }
        if found.is_empty() {
            found.push(file);
        }
        found
    }

    /// Circles of files, each once, as the files on it; files for tests and what is only handed on left out.
    pub fn circles(&self) -> Vec<Vec<usize>> {
        let count = self.sources.len();
        let mut next = vec![Vec::new(); count];
        for edge in &self.edges {
            if !edge.test && !edge.passed_on && !next[edge.from].contains(&edge.to) {
                next[edge.from].push(edge.to);
            }
        }
        let mut circles: Vec<Vec<usize>> = Vec::new();
        for start in 0..count {
            // The shortest way back to where it starts, over files that come later: each circle has one first file.
            let mut before = vec![None; count];
            let mut reached = std::collections::VecDeque::from([start]);
            'search: while let Some(at) = reached.pop_front() {
                for &to in next[at].iter().filter(|to| **to >= start) {
                    if to == start {
                        let mut circle = vec![at];
                        while let Some(&Some(file)) = circle.last().map(|at| &before[*at]) {
                            circle.push(file);
                        }
                        circle.reverse();
                        circles.push(circle);
                        break 'search;
                    }
                    if before[to].is_none() {
                        before[to] = Some(at);
                        reached.push_back(to);
                    }
                }
            }
        }
        circles
    }

    /// "a.rs -> b.rs (line 3: crate::b::B) -> a.rs (line 9: super::a::A)".
    pub fn describe(&self, circle: &[usize]) -> String {
        let mut text = self.sources[circle[0]].file.clone();
        for (i, from) in circle.iter().enumerate() {
            let to = circle[(i + 1) % circle.len()];
            let edge = self.edges.iter().find(|edge| edge.from == *from && edge.to == to && !edge.passed_on);
            let (line, path) = edge.map_or((0, ""), |edge| (edge.line, &edge.path));
            text += &format!(" -> {} (line {line}: {path})", self.sources[to].file);
        }
        text
    }
}
