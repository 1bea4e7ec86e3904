//! What the built libraries contain: the exports, nothing undefined, nothing needed, nothing that panics, allocates or
//! locks. A library that panics goes through the same gate, which must see it.

use std::path::Path;

use anyhow::{bail, ensure, Context as _, Result};
use regex_lite::Regex;
use xshell::cmd;

use crate::binary::{bytes_in, dynamic_exports, members, names};
use crate::context::{files, words, Context, STRICT};
use crate::exec::Run;
use crate::ffi::headers;
use crate::library::{self, Library, MAP};
use crate::report::Report;
use crate::tools::{have, Missing};

/// What a library without heap, lock and panic cannot contain, in any symbol, local or global.
/// `rust_eh_personality` and `_Unwind` are covered by "unwind" and "personality".
const FORBIDDEN: &str = "(?i)panic|alloc|fallback4lock|lock5LOCKS|spin_?lock|unwind|personality|rust_begin|\
    begin_unwind|bounds_check|unwrap_failed|expect_failed|slice_index|slice_(start|end)|core3fmt|div_by_zero|pthread|\
    mutex|__tls";

/// The compiler calls these wherever it likes.
const MEMORY: &str = "mem(cpy|set|move|cmp)";

/// What the host part takes of the C library.
const SYSTEM: &str =
    "__errno_location|clock_get(res|time)|close|fallocate|ftruncate|lseek|madvise|mmap|munmap|open|poll|read|\
    strlen|syscall|unlink";

/// How many unsafe blocks src/capi may have.
const UNSAFE_BLOCKS: usize = 23;
/// Where those outside the kit are: memory is unmapped; a handle is what its mark of the shortest way says.
const OUTSIDE: [&str; 2] = ["host.rs", "table.rs"];

/// Every claim about the built libraries.
pub fn run(ctx: &Context, report: &mut Report, library: &Library) -> Result<()> {
    let Library { archive, shared, object, host_object } = library;
    let map = ctx.exports(MAP)?;
    let archive = members(archive)?;
    let mut claim = |name: &str, ask: &dyn Fn() -> Result<()>| report.claim(&format!("gates: {name}"), ask);

    claim("export_list_equals_the_functions_of_the_header", &|| same(&map, &declared(ctx)?));
    claim("archive_defines_exactly_the_export_list", &|| {
        same(&map, &names(&archive, |s| s.global && s.defined))
    });
    claim("shared_library_exports_exactly_the_export_list", &|| same(&map, &dynamic_exports(shared)?));
    claim("every_export_is_versioned_by_the_abi", &|| {
        let version = format!("@@TATCELL_{}", ctx.abi);
        let listed = cmd!(ctx.sh, "nm -D --defined-only {shared}").must()?;
        let versioned = listed.lines().filter(|l| l.ends_with(&version)).count();
        ensure!(versioned == map.len(), "{versioned} of {}", map.len());
        Ok(())
    });
    claim("archive_is_the_library_and_its_host_part", &|| {
        let found: Vec<&str> = archive.iter().map(|m| m.name.as_str()).collect();
        ensure!(found == ["tatcell.o", "tatcell_host.o"], "it has {found:?}");
        Ok(())
    });
    claim("library_leaves_only_memory_functions_undefined", &|| needs_only(object, MEMORY));
    claim("host_part_leaves_only_these_system_functions_undefined", &|| {
        needs_only(host_object, &format!("{MEMORY}|{SYSTEM}"))
    });

    let dynamic = cmd!(ctx.sh, "readelf -d {shared}").must()?;
    let segments = cmd!(ctx.sh, "readelf -lW {shared}").must()?;
    claim("shared_library_has_its_soname", &|| {
        let soname = format!("[{}]", ctx.soname());
        ensure!(dynamic.lines().any(|l| l.contains("SONAME") && l.contains(&soname)), "{dynamic}");
        Ok(())
    });
    claim("shared_library_needs_no_other", &|| without(&dynamic, "NEEDED"));
    claim("shared_library_has_no_text_relocations", &|| without(&dynamic, "TEXTREL"));
    claim("shared_library_has_no_executable_stack", &|| without(&segments, r"GNU_STACK.*RWE"));
    // No .data; .bss is what CPUID said, 4 bytes an object: every other state is the caller's.
    claim("archive_has_no_state_but_the_processor_cache", &|| {
        let (data, bss) = (Regex::new(r"^\.(data|tdata|tbss)(\.|$)")?, Regex::new(r"^\.bss(\.|$)")?);
        let data = bytes_in(&archive, |name| data.is_match(name) && !name.contains("rel.ro"));
        let bss = bytes_in(&archive, |name| bss.is_match(name));
        ensure!(data == 0 && bss <= 8, "{data} bytes of data, {bss} of bss");
        Ok(())
    });

    // The gate looks at local symbols too, so it must see some: stripped or localised objects would pass it blindly.
    claim("symbol_gate_sees_local_symbols", &|| {
        let own = Regex::new("tatcell.*gcra")?;
        let found = !names(&members(object)?, |s| s.code && !s.global && own.is_match(&s.name)).is_empty();
        ensure!(found, "no function of the library has a name");
        Ok(())
    });
    claim("archive_has_no_panic_alloc_or_lock_symbol", &|| unflagged(object));
    claim("host_part_has_no_panic_alloc_or_lock_symbol", &|| unflagged(host_object));
    claim("shared_library_has_no_panic_alloc_or_lock_symbol", &|| unflagged(shared));

    claim("c_pointers_are_dereferenced_in_the_kit_alone", &|| kit_alone(ctx));

    let rustc = words("RUSTC", "rustc");
    let control = "gates: symbol_gate_flags_a_library_that_panics";
    if rustc.first().is_some_and(|r| have(r)) {
        report.claim(control, || sees_panic(ctx, &rustc));
    } else {
        report.skip(control, &Missing::new("rustc is not installed", "https://rustup.rs"));
    }
    fresh_header(ctx, report)?;
    freestanding(ctx, report, library)
}

fn same(wanted: &[impl AsRef<str>], found: &[impl AsRef<str>]) -> Result<()> {
    let (wanted, found): (Vec<&str>, Vec<&str>) =
        (wanted.iter().map(AsRef::as_ref).collect(), found.iter().map(AsRef::as_ref).collect());
    let lost = wanted.iter().filter(|w| !found.contains(w)).map(|w| format!("-{w}"));
    let extra = found.iter().filter(|f| !wanted.contains(f)).map(|f| format!("+{f}"));
    let difference: Vec<String> = lost.chain(extra).collect();
    ensure!(difference.is_empty() && wanted.len() == found.len(), "{}", difference.join(" "));
    Ok(())
}

/// The functions that the installed headers declare in C.
fn declared(ctx: &Context) -> Result<Vec<String>> {
    let headers = headers::installed(ctx)?;
    let source = ctx.empty_folder("ffi/declared")?.join("declared.c");
    let c_headers = headers.iter().filter(|h| h.matches('.').count() == 1 && h.ends_with(".h"));
    std::fs::write(&source, c_headers.map(|h| format!("#include \"{h}\"\n")).collect::<String>())?;
    let cc = &ctx.cc;
    let text = cmd!(ctx.sh, "env {cc...} -std=c99 -E -P -Iinclude {source}").must()?;
    let call = Regex::new(r"\b(tatcell_[a-z0-9_]+) ?\(")?;
    let mut found: Vec<String> =
        call.captures_iter(&text).filter_map(|c| c.get(1)).map(|m| m.as_str().to_owned()).collect();
    // Those of tatcell_bpf.h and tatcell_inline.h are defined there.
    found.retain(|name| !["tatcell_bpf_", "tatcell_inline_"].iter().any(|own| name.starts_with(own)));
    found.sort();
    found.dedup();
    Ok(found)
}

fn needs_only(object: &Path, allowed: &str) -> Result<()> {
    let allowed = Regex::new(&format!("^({allowed})$"))?;
    let members = members(object)?;
    let extra = names(&members, |s| !s.defined && !allowed.is_match(&s.name));
    ensure!(extra.is_empty(), "{}", extra.join(" "));
    Ok(())
}

fn without(text: &str, pattern: &str) -> Result<()> {
    let pattern = Regex::new(pattern)?;
    text.lines().find(|l| pattern.is_match(l)).map_or(Ok(()), |line| bail!("{}", line.trim()))
}

/// Forbidden symbols, each with one function that uses it.
fn flagged(path: &Path) -> Result<Vec<(String, String)>> {
    let forbidden = Regex::new(FORBIDDEN)?;
    let members = members(path)?;
    let names = names(&members, |s| {
        !s.name.starts_with('.') && !s.name.starts_with("fallocate") && forbidden.is_match(&s.name)
    });
    let uses: Vec<_> = members.iter().flat_map(|m| &m.uses).collect();
    let user = |name: &str| uses.iter().find(|(used, user)| used.contains(name) && user != name);
    Ok(names
        .iter()
        .map(|n| (n.to_string(), user(n).map_or("nobody".to_owned(), |(_, u)| u.clone())))
        .collect())
}

fn unflagged(path: &Path) -> Result<()> {
    let found: Vec<String> =
        flagged(path)?.iter().map(|(symbol, user)| format!("{symbol}, used by {user}")).collect();
    ensure!(found.is_empty(), "{}", found.join("; "));
    Ok(())
}

/// Negative control: the same gate, a library that divides by what may be 0.
fn sees_panic(ctx: &Context, rustc: &[String]) -> Result<()> {
    const EXPORT: &str = "panics_divide";
    let out = ctx.folder("ffi")?;
    let (archive, object) = (out.join("libpanics.a"), out.join("panics.o"));
    let kind = ["--edition", "2021", "--crate-type", "staticlib", "--crate-name", "panics", "-O"];
    let options = ["-C", "panic=abort", "-C", "embed-bitcode=yes", "-C", "lto=fat"];
    cmd!(ctx.sh, "env {rustc...} {kind...} {options...} ffi-tests/panics/lib.rs -o {archive}").must()?;
    library::partial_link(ctx, &["ld"], &[archive], &[EXPORT.to_owned()], &object)?;
    let list = object.with_extension("exports");
    cmd!(ctx.sh, "objcopy --keep-global-symbols={list} --strip-debug {object}").must()?;
    // The name of the function itself is no proof.
    let found = flagged(&object)?;
    ensure!(
        found.iter().any(|(symbol, user)| symbol != EXPORT && user == EXPORT),
        "a panicking library passes: {found:?}"
    );
    Ok(())
}

/// What is unsafe in src/capi is in its kit, where C pointers become references, but for what is named.
fn kit_alone(ctx: &Context) -> Result<()> {
    let folder = ctx.root.join("src/capi");
    let (mut blocks, mut outside) = (0, Vec::new());
    for path in files(&folder, ".rs")? {
        let name = path.strip_prefix(&folder)?.to_string_lossy();
        if name.ends_with("tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let here = text.matches("unsafe {").count();
        blocks += here;
        if !name.starts_with("kit") {
            outside.extend(std::iter::repeat_n(name.into_owned(), here));
        }
    }
    ensure!(outside == OUTSIDE, "unsafe outside of the kit: {}", outside.join(", "));
    ensure!(blocks <= UNSAFE_BLOCKS, "{blocks} unsafe blocks");
    Ok(())
}

fn fresh_header(ctx: &Context, report: &mut Report) -> Result<()> {
    let name = "gates: headers_can_be_generated";
    let (sh, cargo) = (&ctx.sh, &ctx.cargo);
    let built = cmd!(sh, "env {cargo...} build --quiet -p tatcell-header").done()?;
    if !built.ok() {
        let why = built.all.lines().last().unwrap_or_default().to_owned();
        report.skip(name, &Missing::new("tatcell-header cannot be built", why));
        return Ok(());
    }
    let fresh = ctx.empty_folder("ffi/fresh")?;
    report.claim(name, || {
        cmd!(sh, "env {cargo...} run --quiet -p tatcell-header -- {fresh} {fresh}").must().map(drop)
    });
    for file in library::GENERATED {
        let made = fresh.join(file);
        report.claim(&format!("gates: committed_{file}_is_fresh"), || {
            cmd!(sh, "diff -u include/{file} {made}").must().context("make header").map(drop)
        });
    }
    for file in ["tatcell_cluster.h", "tatcell_cluster.map"] {
        let made = fresh.join(file);
        report.claim(&format!("gates: committed_{file}_is_fresh"), || {
            cmd!(sh, "diff -u cluster/include/{file} {made}").must().context("make header").map(drop)
        });
    }
    Ok(())
}

/// A program without libc and start files: it decides and exits with what it found.
fn freestanding(ctx: &Context, report: &mut Report, library: &Library) -> Result<()> {
    let name = "gates: archive_works_without_libc";
    let (cc, archive) = (&ctx.cc, &library.archive);
    let machine = cmd!(ctx.sh, "env {cc...} -dumpmachine").must()?;
    if !machine.contains("linux") || !["x86_64", "aarch64"].iter().any(|m| machine.starts_with(m)) {
        report.skip(name, &Missing::new("its exit call on this machine", "x86-64 or aarch64 Linux"));
        return Ok(());
    }
    let binary = ctx.folder("ffi")?.join("freestanding");
    report.claim(name, || {
        let alone = ["-ffreestanding", "-nostdlib", "-static", "-fno-stack-protector"];
        let options = ["-std=c11", "-Iinclude", "-O2", "-g"];
        let source = "ffi-tests/freestanding.c";
        cmd!(ctx.sh, "env {cc...} {options...} {STRICT...} {alone...} {source} {archive} -o {binary}")
            .must()?;
        cmd!(ctx.sh, "{binary}").must().map(drop)
    });
    Ok(())
}
