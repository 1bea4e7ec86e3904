//! One limit of a layer, as its user describes it.

use tatcell::{FullPolicy, Ladder, LimitSpec};

use crate::key::{Client, Key};

/// Says what happens to a request that has no key for a limit.
///
/// ```
/// use http::HeaderName;
/// use tatcell::LimitSpec;
/// use tatcell_tower::{key, Limit, NoKey, RateLimitLayer};
///
/// let api_key = key::header(HeaderName::from_static("x-api-key"));
/// let per_key = Limit::new("per-key", LimitSpec::per_second(50), api_key).without_key(NoKey::Refuse);
/// let layer = RateLimitLayer::new(per_key)?;
/// // How many requests came without a key, since the layer was opened.
/// assert_eq!(layer.without_key().non_conforming, 0);
/// # Ok::<(), tatcell_tower::OpenError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoKey {
    /// All such requests share one key, and so one limit. A client gains nothing by leaving the key out.
    Share,
    /// This limit does not apply to it; the others do.
    Pass,
    /// It is refused: status 400, or INVALID_ARGUMENT of gRPC.
    Refuse,
}

/// Describes one limit of a layer: how much, and for which key.
///
/// Times of a [`LimitSpec`] are nanoseconds here.
///
/// ```
/// use http::HeaderName;
/// use tatcell::{Ladder, LimitSpec};
/// use tatcell_tower::{key, Limit, NoKey};
///
/// let per_ip = Limit::new("per-ip", LimitSpec::per_second(10).burst(20), key::peer());
/// let per_key = Limit::new("per-key", LimitSpec::per_second(50), key::header(HeaderName::from_static("x-api-key")))
///     .keys(10_000)
///     .without_key(NoKey::Refuse);
/// let per_net = Limit::ladder("per-net", LimitSpec::per_second(10), Ladder::DEFAULT, key::forwarded_for(1));
/// # let _ = (per_ip, per_key, per_net);
/// ```
pub struct Limit {
    pub(crate) name: String,
    pub(crate) spec: LimitSpec,
    pub(crate) by: By,
    pub(crate) keys: usize,
    pub(crate) policy: FullPolicy,
    pub(crate) no_key: Option<NoKey>,
    pub(crate) shadow: bool,
}

pub(crate) enum By {
    Key(Box<dyn Key>),
    Ladder(Ladder, Client),
}

impl Limit {
    /// Makes a limit for each key. Clients see the name in the fields of a response: characters 0x20 to 0x7e.
    pub fn new(name: impl Into<String>, spec: LimitSpec, key: impl Key) -> Limit {
        Limit::by(name.into(), spec, By::Key(Box::new(key)))
    }

    /// Makes a limit for the address of a client and, times their multipliers, for its networks. Each prefix length
    /// is one of the 8 limits that a layer can ask for one request. Clients see it as `NAME/v4/24` or `NAME/v6/48`.
    pub fn ladder(name: impl Into<String>, spec: LimitSpec, ladder: Ladder, client: Client) -> Limit {
        Limit::by(name.into(), spec, By::Ladder(ladder, client))
    }

    fn by(name: String, spec: LimitSpec, by: By) -> Limit {
        Limit { name, spec, by, keys: 100_000, policy: FullPolicy::Admit, no_key: None, shadow: false }
    }

    /// Sets for how many keys the table has room that are in debt at the same time: 100 000 if not set. A key takes 34
    /// to 36 bytes, and a limit whole huge pages of 2 MiB, at least one.
    #[must_use]
    pub fn keys(mut self, keys: usize) -> Limit {
        self.keys = keys;
        self
    }

    /// Sets what happens to a new key whose place in the table is full: if not set, it passes ([`FullPolicy::Admit`]).
    #[must_use]
    pub fn when_full(mut self, policy: FullPolicy) -> Limit {
        self.policy = policy;
        self
    }

    /// Sets what happens to a request without a key.
    ///
    /// If not set, all such requests share one. But if the key needs the address of the peer, and the server passes on
    /// none, then all clients would share one limit, and nobody would see it. So the answer is status 500 then, or
    /// INTERNAL of gRPC, with a text that says how the server passes the address on.
    #[must_use]
    pub fn without_key(mut self, no_key: NoKey) -> Limit {
        self.no_key = Some(no_key);
        self
    }

    /// Decides and counts, but refuses nobody and charges no request that this limit would have refused. Clients are
    /// told nothing of it.
    /// [`LayerBuilder::shadow`](crate::LayerBuilder::shadow) does that for all limits of a layer.
    #[must_use]
    pub fn shadow(mut self) -> Limit {
        self.shadow = true;
        self
    }
}
