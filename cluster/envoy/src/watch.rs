//! Whether the files of the rules have changed since they were read.
//!
//! The files are read again and again, and not watched by inotify: a volume of Kubernetes changes by a link that points
//! to another folder, editors rename, and network file systems tell nothing. A look is what was read, and what a look
//! has read is what comes into force. So it does not matter which times and sizes a file system tells, and no change
//! between a look and a reading goes by unseen.

use crate::read::{self, Source};

/// What a look at the files has read, or why it could not.
pub type Look = Result<Vec<Source>, String>;

/// Reads the files that these paths name, through links. `in_force` names those whose rules are in force.
pub fn look(paths: &[String], in_force: &[String]) -> Look {
    read::sources(paths, in_force, &mut |_| ())
}

/// Follows the files from look to look.
#[derive(Debug)]
pub struct Watch {
    /// Those in force.
    read: Vec<Source>,
    last: Look,
    /// Why the rules of the last look could not come into force.
    failed: Option<String>,
}

impl Watch {
    /// Begins with what is in force.
    pub fn new(read: Vec<Source>) -> Watch {
        Watch { last: Ok(read.clone()), read, failed: None }
    }

    /// Returns the names of the files in force.
    pub fn in_force(&self) -> Vec<String> {
        self.read.iter().map(|source| source.name.clone()).collect()
    }

    /// Returns the files that must come into force: they are others than those in force, and the same as at the last
    /// look. So a file that is being written is not read, unless its writer rests for longer than a look takes to come.
    /// Until [`done`](Self::done) says that they are in force, each look returns them again.
    pub fn is_due(&mut self, look: Look) -> Option<Look> {
        let changed = self.last != look;
        if changed {
            self.last = look;
            self.failed = None;
            return None;
        }
        (self.last.as_ref() != Ok(&self.read)).then(|| self.last.clone())
    }

    /// Takes whether files came into force. Returns why not, if that is not known yet.
    pub fn done(&mut self, how: Result<Vec<Source>, String>) -> Option<String> {
        match how {
            Ok(read) => {
                (self.read, self.failed) = (read, None);
                None
            }
            Err(why) if self.failed.as_ref() == Some(&why) => None,
            Err(why) => {
                self.failed = Some(why.clone());
                Some(why)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<Source> {
        vec![Source { name: "a.yaml".into(), text: text.into() }]
    }

    #[test]
    fn files_are_read_once_they_have_settled_and_until_they_are_in_force() {
        let mut watch = Watch::new(text("1"));
        let mut look = |now: &str| watch.is_due(Ok(text(now))).is_some();
        assert_eq!(["1", "1", "2", "3"].map(&mut look), [false; 4]);
        assert_eq!(["3", "3"].map(&mut look), [true; 2], "not in force yet");
        assert_eq!(watch.done(Ok(text("3"))), None);
        let mut look = |now: &str| watch.is_due(Ok(text(now))).is_some();
        assert_eq!(["3", "1", "3", "1", "1"].map(&mut look), [false, false, false, false, true]);
    }

    #[test]
    fn what_fails_is_tried_again_at_each_look_and_said_once() {
        let mut watch = Watch::new(text("1"));
        let new = Ok(text("2"));
        assert!(watch.is_due(new.clone()).is_none());
        for said in [Some("the store is away"), None, None] {
            assert_eq!(watch.is_due(new.clone()), Some(new.clone()));
            assert_eq!(watch.done(Err("the store is away".into())).as_deref(), said);
        }
        assert_eq!(watch.is_due(new.clone()), Some(new.clone()));
        assert_eq!(watch.done(Err("another reason".into())).as_deref(), Some("another reason"));
        assert_eq!(watch.done(Ok(text("2"))), None);
        assert!(watch.is_due(new).is_none());
        // Files that cannot be read are no rules, and the old ones stay.
        let gone = Err("cannot read a.yaml".to_owned());
        assert!(watch.is_due(gone.clone()).is_none());
        assert_eq!(watch.is_due(gone.clone()), Some(gone));
    }

    #[test]
    fn every_way_to_change_a_file_is_seen() {
        let held = tempfile::tempdir().expect("a folder");
        let folder = held.path();
        let write = |name: &str, text: &str| {
            let file = folder.join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, text).expect("a file");
        };
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, folder.join(name)).expect("a link");
        // As Kubernetes mounts a ConfigMap.
        write("..1/a.yaml", "one");
        write("..2/a.yaml", "two");
        link("..1", "..data");
        link("..data/a.yaml", "a.yaml");
        let paths = [folder.to_string_lossy().into_owned()];
        let single = [folder.join("a.yaml").to_string_lossy().into_owned()];
        let looks = || (look(&paths, &[]), look(&single, &[]));
        let mut before = looks();
        assert_eq!(looks(), before);
        let mut changed = |what: &str| {
            let now = looks();
            assert!(now.0 != before.0, "{what}");
            let both = now.1 != before.1;
            before = now;
            both
        };
        link("..2", "..new");
        std::fs::rename(folder.join("..new"), folder.join("..data")).expect("swapped");
        assert!(changed("another folder behind the link"));
        // The same length, and the times of before, as within one tick of a file system's clock.
        let file = std::fs::File::options().write(true).open(folder.join("..2/a.yaml")).expect("a file");
        let times = file.metadata().expect("times").modified().expect("a time");
        write("..2/a.yaml", "owt");
        file.set_modified(times).expect("a time that is set");
        assert!(changed("written in place"));
        write("new", "two and more");
        std::fs::rename(folder.join("new"), folder.join("a.yaml")).expect("renamed");
        assert!(changed("renamed over it"));
        write("b.yaml", "more");
        assert!(!changed("another file"));
        std::fs::remove_file(folder.join("b.yaml")).expect("removed");
        assert!(!changed("a file less"));
        std::fs::remove_dir_all(folder).expect("removed");
        assert!(changed("all gone"));
    }
}
