//! The planted bugs by where they are planted: how many, and how they were noticed.

use std::collections::BTreeMap;

use anyhow::Result;

use super::bug::{self, Bug};
use super::{words, FOLDER, TABLE};
use crate::context::Context;

/// Of an area.
#[derive(Default, PartialEq, Eq, Debug)]
struct Sums {
    bugs: usize,
    /// By every check that they name.
    caught: usize,
    /// By checks of two programs, at least.
    apart: usize,
    /// Those that say why there is but one.
    alike: usize,
}

/// The table, for ASSURANCE.md.
pub fn areas(ctx: &Context) -> Result<String> {
    let bugs = bug::all(&ctx.root.join(FOLDER))?;
    let mut sums = sums(&bugs, &ctx.read(TABLE)?);
    let all = sums.values().fold(Sums::default(), |all, one| Sums {
        bugs: all.bugs + one.bugs,
        caught: all.caught + one.caught,
        apart: all.apart + one.apart,
        alike: all.alike + one.alike,
    });
    let line = |name: &str, Sums { bugs, caught, apart, alike }: &Sums| {
        format!("| {name} | {bugs} | {caught} | {apart} | {alike} |\n")
    };
    let mut table =
        "| Planted in | Bugs | Noticed by each check named | Of these by two programs | `alike` |\n\
                     |---|---|---|---|---|\n"
            .to_owned();
    table.extend(sums.iter_mut().map(|(area, sums)| line(&format!("`{area}`"), sums)));
    Ok(table + &line("all", &all))
}

/// By folder, in order. `rows` is what runs have found.
fn sums(bugs: &[Bug], rows: &str) -> BTreeMap<String, Sums> {
    let mut areas: BTreeMap<String, Sums> = BTreeMap::new();
    for bug in bugs {
        let area = areas.entry(area(&bug.file)).or_default();
        let row = rows.lines().map(|row| row.split('\t').collect::<Vec<_>>());
        let caught =
            row.filter(|row| row.first() == Some(&bug.name.as_str())).find_map(|row| row.get(4).copied());
        let is_caught = !bug.checks.is_empty() && caught == Some(words(&bug.checks).as_str());
        let first = bug.checks.first().map(|check| check.stands_on());
        let apart = bug.checks.iter().any(|check| Some(check.stands_on()) != first);
        area.bugs += 1;
        area.caught += usize::from(is_caught);
        area.apart += usize::from(is_caught && apart);
        area.alike += usize::from(bug.alike.is_some());
    }
    areas
}

/// `src/table/` of src/table/burst.rs and of what lies deeper, `src/` of src/time.rs, `cluster/` of all below it.
fn area(file: &str) -> String {
    let parts: Vec<&str> = file.split('/').collect();
    let deep = if parts.first() == Some(&"src") { 2 } else { 1 };
    let folders = parts.len().saturating_sub(1).min(deep);
    parts.iter().take(folders).map(|part| format!("{part}/")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::ensure;

    #[test]
    fn bugs_are_counted_by_area_and_by_what_a_run_has_found() -> Result<()> {
        let bug = |name: &str, file: &str, checks: &str| {
            format!("\n=== {name}\nfile {file}\nabout b\n{checks}<<<<\nx\n====\ny\n>>>>\n")
        };
        let (two, one) = ("check lib c\ncheck ffi d\n", "check lib c\nalike why\n");
        let texts = [
            bug("a", "src/table/run.rs", two),
            bug("b", "src/table/groups/mod.rs", one),
            bug("c", "src/table/run.rs", two),
            bug("d", "src/time.rs", one),
            bug("e", "cluster/src/lease.rs", "check member tatcell-cluster lib c\n"),
        ];
        let folder = std::env::temp_dir().join(format!("tatcell-areas-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("bugs.txt"), texts.concat())?;
        let rows = "bug\tfile\twhat\tchecks\tcaught by\tseconds\na\tf\tb\t-\tlib c, ffi d\t1\n\
                    b\tf\tb\t-\tlib c\t1\nc\tf\tb\t-\tlib c\t1\nd\tf\tb\t-\tnothing\t1\n";
        let found = sums(&bug::all(&folder)?, rows);
        let of = |bugs, caught, apart, alike| Sums { bugs, caught, apart, alike };
        ensure!(found.get("src/table/") == Some(&of(3, 2, 1, 1)), "{found:?}");
        ensure!(found.get("src/") == Some(&of(1, 0, 0, 1)) && found.get("cluster/") == Some(&of(1, 0, 0, 0)));
        std::fs::remove_dir_all(folder).map_err(Into::into)
    }
}
