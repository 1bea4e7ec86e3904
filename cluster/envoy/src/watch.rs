//! Whether the files of the rules have changed since they were read.
//!
//! The files are looked at again and again, and not watched by inotify: a volume of Kubernetes changes by a link that
//! points to another folder, editors rename, and network file systems tell nothing. A look costs one call of the system
//! for each file.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::MetadataExt;

use crate::read;

/// What a look at the files has seen: two are equal if nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look(u64);

impl Look {
    /// Looks at the files that these paths name, through links.
    pub fn at(paths: &[String]) -> Look {
        let mut seen = DefaultHasher::new();
        match read::files(paths, &mut |_| ()) {
            Ok(files) => files.iter().for_each(|file| {
                file.hash(&mut seen);
                if let Ok(of) = std::fs::metadata(file) {
                    let times = (of.mtime(), of.mtime_nsec(), of.ctime(), of.ctime_nsec());
                    (of.dev(), of.ino(), of.len(), times).hash(&mut seen);
                }
            }),
            Err(why) => why.hash(&mut seen),
        }
        Look(seen.finish())
    }
}

/// Follows the files from look to look.
#[derive(Debug)]
pub struct Watch {
    /// Those that were read.
    read: Look,
    last: Look,
}

impl Watch {
    /// Begins with a look from before the files were read.
    pub fn new(before: Look) -> Watch {
        Watch { read: before, last: before }
    }

    /// Returns whether the files must be read again: they are others than those that were read, and the same as at the
    /// last look. So a file that is being written is not read.
    pub fn is_due(&mut self, look: Look) -> bool {
        let settled = std::mem::replace(&mut self.last, look) == look;
        let due = settled && look != self.read;
        if due {
            self.read = look;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_once_they_have_settled_and_only_once() {
        let mut watch = Watch::new(Look(1));
        let due: Vec<bool> = [1, 1, 2, 3, 3, 3, 1, 1, 1].map(|look| watch.is_due(Look(look))).into();
        assert_eq!(due, [false, false, false, false, true, false, false, true, false]);
    }

    #[test]
    fn every_way_to_change_a_file_is_seen() {
        let folder = std::env::temp_dir().join(format!("tatcell-watch-{}", std::process::id()));
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
        let mut before = (Look::at(&paths), Look::at(&single));
        assert_eq!((Look::at(&paths), Look::at(&single)), before);
        let mut changed = |what: &str| {
            let now = (Look::at(&paths), Look::at(&single));
            assert!(now.0 != before.0, "{what}");
            let both = now.1 != before.1;
            before = now;
            both
        };
        link("..2", "..new");
        std::fs::rename(folder.join("..new"), folder.join("..data")).expect("swapped");
        assert!(changed("another folder behind the link"));
        write("..2/a.yaml", "two and more");
        assert!(changed("written in place"));
        write("new", "two and more");
        std::fs::rename(folder.join("new"), folder.join("a.yaml")).expect("renamed");
        assert!(changed("renamed over it"));
        write("b.yaml", "");
        assert!(!changed("another file"));
        std::fs::remove_file(folder.join("b.yaml")).expect("removed");
        assert!(!changed("a file less"));
        std::fs::remove_dir_all(&folder).expect("removed");
        assert!(changed("all gone"));
    }
}
