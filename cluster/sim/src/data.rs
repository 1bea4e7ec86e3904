//! What a server keeps: texts that may expire, by the server's own clock.

use rustc_hash::FxHashMap;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    value: Vec<u8>,
    /// Milliseconds of the server's clock; it is gone once the clock reads more.
    until_ms: Option<u64>,
}

/// The data of a server.
#[derive(Clone, Debug, Default)]
pub struct Data {
    entries: FxHashMap<Vec<u8>, Entry>,
    /// Whether it has a replica.
    pub has_replica: bool,
    /// What changed since this was last taken, for replicas.
    changed: Vec<(Vec<u8>, Option<Entry>)>,
}

/// The options of SET.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Set {
    ms: Option<u64>,
    only_new: bool,
    keep: bool,
}

impl Set {
    /// Reads them.
    pub fn read(options: &[impl AsRef<[u8]>]) -> Result<Set, &'static str> {
        let (mut set, mut rest) = (Set::default(), options.iter().map(AsRef::as_ref));
        while let Some(option) = rest.next() {
            match &option.to_ascii_uppercase()[..] {
                b"PX" => {
                    let ms = rest.next().and_then(|ms| std::str::from_utf8(ms).ok()?.parse::<u64>().ok());
                    set.ms = Some(ms.filter(|ms| *ms > 0).ok_or("ERR invalid expire time in 'set' command")?);
                }
                b"NX" => set.only_new = true,
                b"KEEPTTL" => set.keep = true,
                _ => return Err("ERR syntax error"),
            }
        }
        Ok(set)
    }
}

impl Data {
    fn live(&mut self, key: &[u8], now_us: u64) -> Option<&mut Entry> {
        let over = |entry: &Entry| entry.until_ms.is_some_and(|until| now_us / 1_000 > until);
        if self.entries.get(key).is_some_and(over) {
            self.remove(key);
        }
        self.entries.get_mut(key)
    }

    /// Forgets everything.
    pub fn empty(&mut self) {
        self.entries.clear();
        self.changed.clear();
    }

    fn remove(&mut self, key: &[u8]) {
        self.entries.remove(key);
        if self.has_replica {
            self.changed.push((key.to_vec(), None));
        }
    }

    /// Returns a value.
    pub fn get(&mut self, key: &[u8], now_us: u64) -> Option<&[u8]> {
        self.live(key, now_us).map(|entry| &entry.value[..])
    }

    /// Removes a value. Returns whether there was one.
    pub fn del(&mut self, key: &[u8], now_us: u64) -> bool {
        let was = self.live(key, now_us).is_some();
        if was {
            self.remove(key);
        }
        was
    }

    /// Sets a value. Returns false if there is one and only a new one was to be set.
    pub fn set(&mut self, key: &[u8], value: &[u8], set: Set, now_us: u64) -> bool {
        let old = self.live(key, now_us).map(|entry| entry.until_ms);
        if set.only_new && old.is_some() {
            return false;
        }
        let until_ms = match set.keep {
            true => old.flatten(),
            false => set.ms.map(|ms| (now_us / 1_000).saturating_add(ms)),
        };
        let entry = Entry { value: value.to_vec(), until_ms };
        if self.has_replica {
            self.changed.push((key.to_vec(), Some(entry.clone())));
        }
        match self.entries.get_mut(key) {
            Some(old) => *old = entry,
            None => {
                self.entries.insert(key.to_vec(), entry);
            }
        }
        true
    }

    /// Takes what changed since the last time, for replicas.
    pub fn changes(&mut self) -> Changes {
        Changes(std::mem::take(&mut self.changed))
    }

    /// Applies what changed at another server.
    pub fn apply(&mut self, changes: &Changes) {
        for (key, entry) in &changes.0 {
            match entry {
                Some(entry) => self.entries.insert(key.clone(), entry.clone()),
                None => self.entries.remove(key),
            };
        }
    }

    /// Moves the keys for which `moves` is true to another server, whose clock is `ahead_ms` ahead.
    pub fn hand_over(&mut self, to: &mut Data, ahead_ms: i64, moves: impl Fn(&[u8]) -> bool) {
        let keys: Vec<Vec<u8>> = self.entries.keys().filter(|key| moves(key)).cloned().collect();
        for key in keys {
            if let Some(mut entry) = self.entries.remove(&key) {
                entry.until_ms = entry.until_ms.map(|until| until.saturating_add_signed(ahead_ms));
                to.entries.insert(key, entry);
            }
        }
    }

    /// Returns the keys that are there, also those that have expired.
    pub fn has(&self, key: &[u8]) -> bool {
        self.entries.contains_key(key)
    }
}

/// Changes on their way to a replica.
#[derive(Clone, Debug)]
pub struct Changes(Vec<(Vec<u8>, Option<Entry>)>);

impl Changes {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
