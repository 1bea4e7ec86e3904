//! What an object, archive or shared library of any machine contains: its symbols, its sections, and who uses what.

use std::path::Path;

use anyhow::{ensure, Context as _, Result};
use object::read::archive::ArchiveFile;
use object::{
    File, Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolIndex, SymbolKind, SymbolSection,
};

/// One symbol.
pub struct Symbol {
    /// Its name, mangled.
    pub name: String,
    /// Its address; in objects an offset in its section.
    pub address: u64,
    /// Whether other objects see it.
    pub global: bool,
    /// Whether it is defined here.
    pub defined: bool,
    /// Whether it is a function or other code.
    pub code: bool,
}

/// One object: of an archive, or alone.
pub struct Member {
    /// Its name in the archive, or that of the file.
    pub name: String,
    /// Its symbols; those of shared libraries as well that only the loader reads.
    pub symbols: Vec<Symbol>,
    /// Names and sizes of its sections.
    pub sections: Vec<(String, u64)>,
    /// What functions refer to: a symbol, or a section that is named after its function; and the function.
    pub uses: Vec<(String, String)>,
}

/// The objects of an archive, or the one of an object or a shared library.
pub fn members(path: &Path) -> Result<Vec<Member>> {
    let data = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let Ok(archive) = ArchiveFile::parse(data.as_slice()) else {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        return Ok(vec![member(&name, &data)?]);
    };
    let mut found = Vec::new();
    for entry in archive.members() {
        let entry = entry?;
        let name = String::from_utf8_lossy(entry.name()).into_owned();
        // A raw Rust archive holds metadata beside its objects.
        if !name.ends_with(".rmeta") {
            // A copy: in the archive an object may lie at an odd place.
            let data = entry.data(data.as_slice())?.to_vec();
            found.push(member(&name, &data)?);
        }
    }
    ensure!(!found.is_empty(), "{} is empty", path.display());
    Ok(found)
}

/// Names that the dynamic loader finds in a shared library, without those of its versions.
pub fn dynamic_exports(path: &Path) -> Result<Vec<String>> {
    let data = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = File::parse(data.as_slice())?;
    let exports =
        file.dynamic_symbols().filter(|s| !s.is_undefined() && s.section() != SymbolSection::Absolute);
    let mut names: Vec<String> = exports.filter_map(|s| s.name().ok().map(str::to_owned)).collect();
    names.sort();
    Ok(names)
}

/// Names that satisfy a condition, in order, each once.
pub fn names(members: &[Member], wanted: impl Fn(&Symbol) -> bool) -> Vec<&str> {
    let symbols = members.iter().flat_map(|m| &m.symbols).filter(|s| wanted(s));
    let mut names: Vec<&str> = symbols.map(|s| s.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Bytes in sections whose names satisfy a condition.
pub fn bytes_in(members: &[Member], wanted: impl Fn(&str) -> bool) -> u64 {
    members.iter().flat_map(|m| &m.sections).filter(|(name, _)| wanted(name)).map(|(_, size)| size).sum()
}

fn member(name: &str, data: &[u8]) -> Result<Member> {
    let file = File::parse(data).with_context(|| format!("cannot read {name}"))?;
    let symbols = file.symbols().chain(file.dynamic_symbols()).filter_map(|s| {
        let name = s.name().ok().filter(|n| !n.is_empty())?.to_owned();
        Some(Symbol {
            name,
            address: s.address(),
            global: s.is_global(),
            defined: !s.is_undefined(),
            code: s.kind() == SymbolKind::Text,
        })
    });
    let sections = file.sections().filter_map(|s| Some((s.name().ok()?.to_owned(), s.size())));
    Ok(Member {
        name: name.to_owned(),
        symbols: symbols.collect(),
        sections: sections.collect(),
        uses: uses(&file),
    })
}

fn uses(file: &File<'_>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for section in file.sections() {
        let here = |s: &object::Symbol<'_, '_>| s.section_index() == Some(section.index());
        let functions: Vec<_> = file.symbols().filter(|s| s.kind() == SymbolKind::Text && here(s)).collect();
        for (offset, relocation) in section.relocations() {
            let RelocationTarget::Symbol(index) = relocation.target() else { continue };
            let user = functions.iter().find(|f| (f.address()..f.address() + f.size()).contains(&offset));
            if let (Some(Ok(user)), Some(used)) = (user.map(|u| u.name()), target(file, index)) {
                found.push((used, user.to_owned()));
            }
        }
    }
    found
}

fn target(file: &File<'_>, index: SymbolIndex) -> Option<String> {
    let symbol = file.symbol_by_index(index).ok()?;
    if symbol.kind() == SymbolKind::Section {
        let section = file.section_by_index(symbol.section_index()?).ok()?;
        return section.name().ok().map(str::to_owned);
    }
    symbol.name().ok().map(str::to_owned)
}
