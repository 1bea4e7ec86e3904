//! The arguments that say what is read, and by what is counted: the same for all that read logs.

use std::time::Duration;

use clap::Args;
use data_encoding::HEXLOWER_PERMISSIVE;

use crate::failure::Failure;
use crate::input::{Format, How};
use crate::key::KeySpec;
use crate::plan::Plan;
use crate::record::Wants;
use crate::units::duration;

/// What is read, and by what is counted.
#[derive(Args, Debug)]
pub struct InputArguments {
    /// Logs or captures, also compressed by gzip or zstd; - is the standard input. Rotated files may come in any order
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,

    /// The format; without this it is found by itself
    #[arg(short, long, value_enum)]
    pub format: Option<Format>,

    /// The format in the words of nginx's log_format, such as '$remote_addr $msec "$request" $request_time'
    #[arg(long, value_name = "TEXT", conflicts_with = "format")]
    pub log_format: Option<String>,

    /// What a limit counts by: address, address/24,56 (prefix lengths), a field or column, path, path:2 (segments),
    /// path=/user/*/posts, or several with + between
    #[arg(short, long, default_value = "address")]
    pub key: String,

    /// The field that says how many units a record costs, such as bytes; without this each costs 1
    #[arg(short, long, value_name = "FIELD")]
    pub cost: Option<String>,

    /// The field that is the time, if it is not the usual one
    #[arg(long, value_name = "FIELD")]
    pub time: Option<String>,

    /// Slots of each table
    #[arg(long, default_value_t = 1 << 20)]
    pub slots: usize,

    /// Most keys that are counted exactly; beyond that a sample of them is, and the output says so
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    pub max_keys: usize,

    /// How far records may be out of order, such as 10s or 500ms
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub sort: Duration,

    /// The seed of the hash, 32 hexadecimal digits: the same seed gives the same answer; without this it is random
    #[arg(long, value_name = "HEX", value_parser = seed)]
    pub seed: Option<[u8; 16]>,

    /// End at the first record that cannot be read, instead of counting it
    #[arg(long)]
    pub strict: bool,
}

fn seed(text: &str) -> Result<[u8; 16], String> {
    let seed = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok().and_then(|seed| seed.try_into().ok());
    seed.ok_or_else(|| format!("{text:?} is no seed: use 32 hexadecimal digits"))
}

impl InputArguments {
    /// Makes a plan that only reads.
    pub fn plan(&self) -> Result<Plan, Failure> {
        let key = KeySpec::parse(&self.key).map_err(Failure::Usage)?;
        if self.files.iter().filter(|file| *file == "-").count() > 1 {
            return Err(Failure::Usage("- is given twice: the standard input can be read once".into()));
        }
        if self.slots == 0 || self.slots > 1 << 30 {
            return Err(Failure::Usage(format!("--slots {}: use 1 to {} slots", self.slots, 1 << 30)));
        }
        if self.max_keys == 0 {
            return Err(Failure::Usage("--max-keys 0: use at least 1 key".into()));
        }
        let seed = match self.seed {
            Some(seed) => seed,
            None => tatcell::host::random_seed()
                .map_err(|error| Failure::Input(format!("no random seed: {error}")))?,
        };
        let wants = Wants { fields: key.fields().to_vec(), cost: self.cost.clone(), time: self.time.clone() };
        Ok(Plan {
            files: self.files.clone(),
            how: How { format: self.format, log_format: self.log_format.clone(), wants },
            key,
            rates: Vec::new(),
            limits: Vec::new(),
            policies: Vec::new(),
            spare_ppm: 0,
            good: Vec::new(),
            max_keys: self.max_keys,
            slots: self.slots,
            target_ppb: 0,
            sort: self.sort,
            window: Duration::from_secs(60),
            top: 0,
            seed,
            strict: self.strict,
        })
    }
}
