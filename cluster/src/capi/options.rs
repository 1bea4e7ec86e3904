//! What a node is opened with.

use std::ffi::c_char;
use std::time::Duration;

use super::codes::{TATCELL_CLUSTER_ERR_LIMIT, TATCELL_CLUSTER_ERR_NULL, TATCELL_CLUSTER_ERR_OPTION};
use super::kit::{self, Grows};
use crate::{Builder, Cluster, Down, SharedLimit};

/// when_down: deny a request that needs the store. The bound stays exact.
pub const TATCELL_CLUSTER_DOWN_RESERVE: u32 = 0;
/// when_down: pass it from the node's share of the rate; docs/CLUSTER.md has the bound.
pub const TATCELL_CLUSTER_DOWN_SHARE: u32 = 1;
/// when_down: pass it. There is no bound.
pub const TATCELL_CLUSTER_DOWN_OPEN: u32 = 2;

/// flags: write no lines about faults to standard error.
pub const TATCELL_CLUSTER_QUIET: u32 = 1;

/// reserve_rate, reserve_burst: the default, 5 % of the rate and 25 % of the burst.
pub const TATCELL_CLUSTER_RESERVE_USUAL: u32 = 4294967295;

/// A limit that nodes share. Start from TATCELL_CLUSTER_LIMIT_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tatcell_cluster_limit_t {
    /// sizeof(tatcell_cluster_limit_t); never written.
    pub size: u32,
    /// Per mille of the rate that the reserves of all nodes together get; 0 = no reserves.
    pub reserve_rate: u32,
    /// Per mille of the burst that the reserves of all nodes together get; 0 = no reserves.
    pub reserve_burst: u32,
    /// Must be 0.
    pub reserved: u32,
    /// 1 to 64 letters, digits, '-', '_' or '.'; not NULL. Limits of one prefix have different names.
    pub name: *const c_char,
    /// Units per period; at least 1.
    pub units: u64,
    /// The period, nanoseconds.
    pub period_ns: u64,
    /// Most units that pass at one instant after idle; at least 1.
    pub burst: u64,
}

/// Options of a node. Start from TATCELL_CLUSTER_OPTIONS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tatcell_cluster_options_t {
    /// sizeof(tatcell_cluster_options_t); never written.
    pub size: u32,
    /// Most nodes that share the limits, 1 to 4096; the same for all nodes.
    pub nodes: u32,
    /// The URL of the store, for example redis://[user:password@]host:port/; not NULL.
    pub url: *const c_char,
    /// The user, in place of the URL's; NULL = the default user, or the URL's if password is NULL, too.
    pub user: *const c_char,
    /// The password of user; NULL = none.
    pub password: *const c_char,
    /// The beginning of every key in the store, 1 to 64 bytes; NULL = "tatcell".
    pub prefix: *const c_char,
    /// An array of limits; not NULL. The size field of the first is the distance between two.
    pub limits: *const tatcell_cluster_limit_t,
    /// Number of limits; at least 1.
    pub limit_count: u64,
    /// Keys of each limit that are in use at one time, about 240 bytes each; 0 = 65536.
    pub keys: u64,
    /// The store counts as away if a call takes longer than this, nanoseconds; 0 = 250 ms.
    pub timeout_ns: u64,
    /// The longest time of a call while all is well, nanoseconds; 0 = 4 ms. A limit whose granted units would lapse
    /// within two of these times needs one call for each decision.
    pub round_trip_ns: u64,
    /// How long a node keeps the right to its reserve without renewing it, nanoseconds; 0 = 10 s.
    pub slot_ttl_ns: u64,
    /// Time from a change until it is in force, nanoseconds; 0 = 30 s. The same for all nodes.
    pub change_delay_ns: u64,
    /// A TATCELL_CLUSTER_DOWN_ constant.
    pub when_down: u32,
    /// 0 or TATCELL_CLUSTER_QUIET.
    pub flags: u32,
}

// SAFETY: repr(C), a u32 first, no padding where pointers have 8 bytes; any bytes are one.
unsafe impl Grows for tatcell_cluster_limit_t {
    const FIRST: usize = 48;
    const EMPTY: Self = tatcell_cluster_limit_t {
        size: size_of::<Self>() as u32,
        reserve_rate: 0,
        reserve_burst: 0,
        reserved: 0,
        name: std::ptr::null(),
        units: 0,
        period_ns: 0,
        burst: 0,
    };
}

// SAFETY: as above.
unsafe impl Grows for tatcell_cluster_options_t {
    const FIRST: usize = 104;
    const EMPTY: Self = tatcell_cluster_options_t {
        size: size_of::<Self>() as u32,
        nodes: 0,
        url: std::ptr::null(),
        user: std::ptr::null(),
        password: std::ptr::null(),
        prefix: std::ptr::null(),
        limits: std::ptr::null(),
        limit_count: 0,
        keys: 0,
        timeout_ns: 0,
        round_trip_ns: 0,
        slot_ttl_ns: 0,
        change_delay_ns: 0,
        when_down: 0,
        flags: 0,
    };
}

const _: () =
    assert!(size_of::<tatcell_cluster_limit_t>() == 48 && size_of::<tatcell_cluster_options_t>() == 104);

impl tatcell_cluster_limit_t {
    pub(super) fn limit(&self) -> Result<SharedLimit, i32> {
        let name = kit::text(self.name)?.ok_or(TATCELL_CLUSTER_ERR_NULL)?;
        if self.reserved != 0 {
            return Err(TATCELL_CLUSTER_ERR_OPTION);
        }
        let limit = SharedLimit::new(name, self.units, Duration::from_nanos(self.period_ns), self.burst);
        let usual = |given, usual| if given == TATCELL_CLUSTER_RESERVE_USUAL { usual } else { given };
        Ok(limit.reserve(usual(self.reserve_rate, 50), usual(self.reserve_burst, 250)))
    }
}

impl tatcell_cluster_options_t {
    pub(super) fn builder(&self) -> Result<Builder, i32> {
        let url = kit::text(self.url)?.ok_or(TATCELL_CLUSTER_ERR_NULL)?;
        let count = usize::try_from(self.limit_count).map_err(|_| TATCELL_CLUSTER_ERR_LIMIT)?;
        if count == 0 {
            return Err(TATCELL_CLUSTER_ERR_LIMIT);
        }
        let mut builder = Cluster::builder(url, self.nodes);
        for limit in kit::list(self.limits, count)? {
            builder = builder.limit(limit.limit()?);
        }
        if let Some(prefix) = kit::text(self.prefix)? {
            builder = builder.prefix(prefix);
        }
        match (kit::text(self.user)?, kit::text(self.password)?) {
            (None, None) => {}
            (user, password) => builder = builder.login(user.unwrap_or(""), password.unwrap_or("")),
        }
        let keys = usize::try_from(self.keys).map_err(|_| TATCELL_CLUSTER_ERR_OPTION)?;
        if keys > 0 {
            builder = builder.keys(keys);
        }
        type Set = fn(Builder, Duration) -> Builder;
        let times: [(u64, Set); 4] = [
            (self.timeout_ns, Builder::timeout),
            (self.round_trip_ns, Builder::round_trip),
            (self.slot_ttl_ns, Builder::slot_ttl),
            (self.change_delay_ns, Builder::change_delay),
        ];
        for (ns, set) in times.into_iter().filter(|(ns, _)| *ns > 0) {
            builder = set(builder, Duration::from_nanos(ns));
        }
        builder = builder.when_down(match self.when_down {
            TATCELL_CLUSTER_DOWN_RESERVE => Down::Reserve,
            TATCELL_CLUSTER_DOWN_SHARE => Down::Share,
            TATCELL_CLUSTER_DOWN_OPEN => Down::Open,
            _ => return Err(TATCELL_CLUSTER_ERR_OPTION),
        });
        match self.flags {
            0 => Ok(builder),
            TATCELL_CLUSTER_QUIET => Ok(builder.log(|_| {})),
            _ => Err(TATCELL_CLUSTER_ERR_OPTION),
        }
    }
}
