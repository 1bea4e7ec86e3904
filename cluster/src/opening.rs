//! Opening a node at the store: the checks of its servers, and the agreement with the nodes that run.

use std::sync::Arc;
use std::time::Duration;

use redis::ConnectionAddr;

use crate::endpoint::{Endpoint, Shape};
use crate::error::OpenError;
use crate::log::Log;
use crate::mark::agree;
use crate::node::Node;
use crate::random::Random;
use crate::script::{self, Ask, By, Grant};
use crate::slot::Slot;
use crate::store::Store;
use crate::store_thread::StoreThread;
use crate::wire::Wire;

/// The oldest store version that has what the scripts use.
const OLDEST: (u32, u32) = (6, 2);

/// What a node is opened with.
pub(crate) struct Opening {
    pub endpoint: Endpoint,
    pub prefix: String,
    /// The name by which the store knows this node's slot; no other node has it.
    pub holder: String,
    pub slot_ttl: Duration,
    pub random: Random,
    pub log: Log,
}

impl Opening {
    /// Connects to all servers, and checks them.
    ///
    /// # Errors
    /// [`OpenError`] says what is wrong and what to do.
    pub(crate) async fn open(self, node: Arc<Node>, wire: Wire) -> Result<StoreThread, OpenError> {
        let Opening { endpoint, prefix, holder, slot_ttl, mut random, log } = self;
        let first = random.below(u64::from(node.nodes)) as u32;
        let of_batch = random.split();
        let mut store = Store::open(wire, endpoint, random).await?;
        for (key, at) in store.servers(&format!("{prefix}:probe:{holder}:")) {
            probe(&mut store, &node, &at, key.as_bytes(), &holder).await?;
        }
        agree(&node, &mut store).await?;
        let slot = Slot::new(&prefix, node.nodes, holder, slot_ttl, first);
        Ok(StoreThread::new(node, store, slot, log, of_batch))
    }
}

/// Checks that a server is a store, and that it allows everything that is used later.
async fn probe(
    store: &mut Store,
    node: &Node,
    at: &ConnectionAddr,
    key: &[u8],
    holder: &str,
) -> Result<(), OpenError> {
    let said = |error| OpenError::at(at, error);
    let info: String = store.query(at, &redis::cmd("INFO")).await.map_err(said)?;
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let version = field("redis_version").unwrap_or("unknown");
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    if (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) < OLDEST {
        return Err(OpenError::TooOld(version.to_owned()));
    }
    // The second name is that of Valkey.
    if field("redis_mode").or(field("server_mode")) == Some("sentinel") {
        return Err(OpenError::Sentinel);
    }
    if field("cluster_enabled") == Some("1") && !matches!(store.shape(), Shape::Cluster) {
        return Err(OpenError::ClusterMode);
    }
    // So that a missing right shows now.
    for (by, ms) in [(By::Text, 1_000), (By::Digest, 0)] {
        let mut call = script::slot(by, key, holder, ms);
        let answer = store.query(at, call.arg(holder)).await.map_err(said)?;
        script::of_call::<i64>(answer, holder.as_bytes()).ok_or_else(|| OpenError::out_of_step(at))?;
    }
    for limited in &node.limits {
        let split = &limited.versions.load().now.split;
        let too_many = split.largest_cost + 1;
        let nothing = Ask { want: too_many, min: too_many, ..Ask::default() };
        let mut call = script::grant(By::Text, key, split, &nothing);
        let answer = store.query(at, call.arg(holder)).await.map_err(said)?;
        script::of_call::<Grant>(answer, holder.as_bytes()).ok_or_else(|| OpenError::out_of_step(at))?;
    }
    Ok(())
}
