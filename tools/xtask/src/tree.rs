//! Which tree a log is of: a digest of the names and contents of its files, as git knows them, so that a log that was
//! written before a change is not taken for one of after it.
//!
//! It is of what git tracks and of what it neither tracks nor ignores, as they lie there, and not of the commit: one
//! that changes no file leaves logs what they are. The page that `make assurance` writes is left out, for it is made of
//! the logs. Where there is no git, or where the tree is none of its own (a tarball), nobody can tell, and nothing is
//! asked.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What is made of logs.
pub const PAGE: &str = "docs/ASSURANCE.md";
/// As many digits are enough.
const DIGITS: usize = 16;
/// The same of a commit.
const COMMIT: usize = 8;

/// The digest of the tree at this root; None where git does not know it.
pub fn of(root: &Path) -> Option<String> {
    without(root, &[])
}

/// The same of all but these files.
pub fn without(root: &Path, names: &[&str]) -> Option<String> {
    let git = |arguments: &[&str], input: &str| git(root, arguments, input);
    let listed = git(&["ls-files", "--cached", "--others", "--exclude-standard"], "")?;
    let is_there = |name: &&str| *name != PAGE && !names.contains(name) && root.join(name).is_file();
    let mut names: Vec<&str> = listed.lines().filter(is_there).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return None;
    }
    let hashes = git(&["hash-object", "--no-filters", "--stdin-paths"], &(names.join("\n") + "\n"))?;
    if hashes.lines().count() != names.len() {
        return None;
    }
    let all = names.iter().zip(hashes.lines()).fold(String::new(), |mut all, (name, hash)| {
        let _ = writeln!(all, "{hash} {name}");
        all
    });
    git(&["hash-object", "--stdin"], &all)?.get(..DIGITS).map(str::to_owned)
}

/// The commit that the tree is of, for readers; `changed since` it where any file but the page has changed, come or
/// gone. None where there is no digest, or no commit.
pub fn commit(root: &Path) -> Option<String> {
    of(root)?;
    let commit = git(root, &["rev-parse", &format!("--short={COMMIT}"), "HEAD"], "")?;
    let status = git(root, &["status", "--porcelain", "--untracked-files=all"], "")?;
    let is_of = status.lines().all(|line| line.get("M  ".len()..) == Some(PAGE));
    Some(format!("{}{}", if is_of { "" } else { "changed since " }, commit.trim()))
}

/// What git prints, asked with this input; None where it fails.
fn git(root: &Path, arguments: &[&str], input: &str) -> Option<String> {
    let mut git = Command::new("git");
    git.arg("-C").arg(root).args(["--no-optional-locks", "-c", "core.quotePath=false"]).args(arguments);
    let git = git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = git.spawn().ok()?;
    let mut pipe = child.stdin.take()?;
    // A thread of its own, since git answers before it has read everything.
    let done = std::thread::scope(|scope| {
        scope.spawn(move || std::io::Write::write_all(&mut pipe, input.as_bytes()));
        child.wait_with_output()
    });
    let done = done.ok().filter(|done| done.status.success())?;
    String::from_utf8(done.stdout).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{ensure, Result};

    #[test]
    fn a_change_of_any_file_is_another_tree_and_no_git_is_none() -> Result<()> {
        let root = std::env::temp_dir().join(format!("tatcell-tree-{}", std::process::id()));
        std::fs::create_dir_all(root.join("docs"))?;
        let put = |name: &str, text: &str| std::fs::write(root.join(name), text);
        put("one", "1\n")?;
        ensure!(of(&root).is_none(), "no git");
        let git = |arguments: &[&str]| -> Result<()> {
            let who = ["-c", "user.name=a", "-c", "user.email=a", "-c", "commit.gpgsign=false"];
            let mut git = Command::new("git");
            let git = git.arg("-C").arg(&root).args(who).args(arguments);
            ensure!(git.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success(), "{arguments:?}");
            Ok(())
        };
        git(&["init"])?;
        ensure!(of(&root).is_some() && commit(&root).is_none(), "what is not tracked counts");
        put(".gitignore", "target\n")?;
        let first = of(&root);
        git(&["add", "."])?;
        git(&["commit", "-m", "a"])?;
        ensure!(of(&root) == first, "a commit changes no file");
        let head = commit(&root).filter(|commit| commit.len() == COMMIT);
        ensure!(head.is_some() && head == commit(&root), "{head:?}");
        let since = head.as_ref().map(|head| format!("changed since {head}"));
        put(PAGE, "a page\n")?;
        put("target", "built\n")?;
        ensure!(of(&root) == first && commit(&root) == head, "the page, and what is built");
        put("one", "2\n")?;
        let second = of(&root);
        ensure!(second.is_some() && second != first && commit(&root) == since, "a change");
        put("one", "1\n")?;
        ensure!(of(&root) == first && commit(&root) == head, "and back");
        put("two", "")?;
        ensure!(of(&root) != first && commit(&root) == since, "a new file");
        ensure!(without(&root, &["two"]) == first && without(&root, &["one"]) != first);
        std::fs::remove_file(root.join("two"))?;
        std::fs::remove_file(root.join("one"))?;
        ensure!(of(&root) != first && of(&root).is_some() && commit(&root) == since, "one less");
        std::fs::remove_dir_all(root).map_err(Into::into)
    }
}
