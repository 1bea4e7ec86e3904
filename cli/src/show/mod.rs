//! Looks into a table that runs, or at a saved image: geometry, load, the longest debts, the words.
//!
//! The table is mapped for reading alone, without its seed. Only `ban`, `exempt` and `reset` write, and need both.

pub mod change;
pub mod clock;
pub mod counts;
pub mod dump;
pub mod info;
pub mod names;
pub mod serve;
pub mod top;

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER_PERMISSIVE;
use tatcell::host::{HostError, Memory, ReadOnlyMemory};
use tatcell::{AttachOptions, ReadOnlyTable, TableError};

use crate::failure::Failure;

/// Which table, and what it takes to read it.
#[derive(Clone, Debug)]
pub struct Place {
    /// As the caller wrote it.
    pub text: String,
    /// As the library takes it: "/name" for shared memory, or an absolute path.
    name: CString,
}

impl Place {
    /// Reads a name: `/limits` is shared memory; everything else is the path of a file, also a relative one.
    pub fn parse(text: &str) -> Result<Place, Failure> {
        let bad = |what: String| Failure::Usage(format!("{text:?}: {what}"));
        let name = match text.strip_prefix('/') {
            Some(_) => PathBuf::from(text),
            None => std::fs::canonicalize(text)
                .map_err(|error| Failure::Input(format!("{text}: cannot be opened: {error}")))?,
        };
        let name = name.into_os_string().into_encoded_bytes();
        let name = CString::new(name).map_err(|_| bad("a name has no byte 0".into()))?;
        Ok(Place { text: text.into(), name })
    }

    /// Whether it is a name in shared memory.
    pub fn is_shared_memory(&self) -> bool {
        self.name.as_bytes().iter().filter(|byte| **byte == b'/').count() == 1
    }

    /// Says why the memory cannot be had.
    fn refused(&self, error: HostError, what: &str) -> Failure {
        let text = &self.text;
        Failure::Input(match error {
            HostError::System(errno) => {
                format!("{text}: cannot be {what}: {}", std::io::Error::from_raw_os_error(errno))
            }
            HostError::Absent => format!(
                "{text}: there is no such {}",
                match self.is_shared_memory() {
                    true => "name in shared memory (a path has more than one slash, or none in front)",
                    false => "file",
                }
            ),
            HostError::Unsupported if !self.is_shared_memory() => format!(
                "{text}: cannot be {what}: what is pinned there is no map of a table; that is an array of values of 64 \
                 bytes with the flag BPF_F_MMAPABLE, as tatcell_bpf.h makes it"
            ),
            error => format!("{text}: cannot be {what}: {error}"),
        })
    }

    /// Says why the memory holds no table that can be used.
    fn unreadable(&self, error: TableError) -> Failure {
        match error {
            TableError::WrongSeed | TableError::MissingSeed => {
                Failure::Usage(format!("{}: {error}", self.text))
            }
            TableError::NotReady => Failure::Input(format!(
                "{}: it holds no initialised table: it is none, or the program has not made it yet",
                self.text
            )),
            TableError::TooSmall => {
                Failure::Input(format!("{}: it is no table: the smallest has 256 bytes", self.text))
            }
            error => Failure::Input(format!("{}: {error}", self.text)),
        }
    }

    /// Maps the memory for reading alone.
    pub fn look(&self) -> Result<ReadOnlyMemory, Failure> {
        ReadOnlyMemory::attach(&self.name, 0).map_err(|error| self.refused(error, "read"))
    }

    /// Attaches to the table in such memory, only to look.
    pub fn table<'m>(
        &self,
        memory: &'m ReadOnlyMemory,
        options: &AttachOptions,
    ) -> Result<ReadOnlyTable<'m>, Failure> {
        memory.table(options).map_err(|error| self.unreadable(error))
    }

    /// Maps the memory for writing.
    fn open(&self) -> Result<Memory, Failure> {
        Memory::attach(&self.name, 0).map_err(|error| self.refused(error, "written"))
    }
}

/// Where the seed of the table comes from: never from the arguments, which every user of the machine can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// A file.
    File(PathBuf),
    /// A descriptor that the caller has opened.
    Descriptor(u32),
}

impl Secret {
    /// Reads the seed: 16 bytes, or 32 hexadecimal digits and the end of the line.
    pub fn read(&self) -> Result<[u8; 16], Failure> {
        let path = match self {
            Secret::File(path) => path.clone(),
            Secret::Descriptor(number) => Path::new("/dev/fd").join(number.to_string()),
        };
        let fail = |what: String| Failure::Input(format!("{}: {what}", path.display()));
        let mut bytes = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(64).read_to_end(&mut bytes))
            .map_err(|error| fail(format!("the seed cannot be read: {error}")))?;
        if let Ok(seed) = bytes.as_slice().try_into() {
            return Ok(seed);
        }
        let seed = HEXLOWER_PERMISSIVE.decode(bytes.trim_ascii()).ok().and_then(|seed| seed.try_into().ok());
        seed.ok_or_else(|| fail("a seed is 16 bytes, or 32 hexadecimal digits".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_bytes_or_digits() {
        let folder = std::env::temp_dir().join(format!("tatcell-seed-{}", std::process::id()));
        let read = |bytes: &[u8]| {
            std::fs::write(&folder, bytes).expect("a file");
            Secret::File(folder.clone()).read()
        };
        let seed: [u8; 16] = *b"16 random bytes!";
        assert_eq!(read(&seed), Ok(seed));
        assert_eq!(read(b"31362072616e646f6d20627974657321\n"), Ok(seed));
        for bad in [
            &b""[..],
            b"short",
            b"31362072616e646f6d2062797465732",
            b"zz362072616e646f6d20627974657321",
            b"+1362072616e646f6d20627974657321",
        ] {
            assert!(matches!(read(bad), Err(Failure::Input(_))), "{bad:?}");
        }
        std::fs::remove_file(&folder).expect("the file");
        assert!(matches!(Secret::File(folder).read(), Err(Failure::Input(_))));
    }

    #[test]
    fn a_name_has_one_slash_and_everything_else_is_a_path() {
        assert!(Place::parse("/limits").expect("a name").is_shared_memory());
        assert!(!Place::parse("/run/app/limits").expect("a path").is_shared_memory());
        assert!(!Place::parse("Cargo.toml").expect("a path").is_shared_memory());
        assert!(matches!(Place::parse("no such file"), Err(Failure::Input(_))));
    }
}
