//! What a limit is for: the address of the client, a header, the path, or whatever a closure returns.
//!
//! | Key | Requests that share a limit | A request without it |
//! |---|---|---|
//! | [`peer`] | of one peer address, or of its prefix | the server passes no peer address (below) |
//! | [`forwarded_for`] | of one client of the trusted proxies | the same, and no entry is its address |
//! | [`header`] | with the same value | without the header, or with an empty one |
//! | [`path`] | for the same path | none |
//! | [`from_fn`] | for which the closure returns the same bytes | the closure returns `None` |
//! | `(a, b)`, `(a, b, c)` | with all of these keys the same | one of them is missing |
//!
//! What happens to a request without a key is the [`NoKey`](crate::NoKey) of the limit.
//!
//! The peer address is an extension of the request: a [`SocketAddr`], which any server may insert. With feature `axum`
//! it is also `ConnectInfo<SocketAddr>` of axum 0.8 or, in tests, its `MockConnectInfo<SocketAddr>`, and with feature
//! `tonic` also `TcpConnectInfo` of tonic 0.14. If there is none, and the limit has no [`NoKey`](crate::NoKey), the
//! answer is an error of the server, status 500, which says so: all clients would share one limit. A server on a Unix
//! socket has no addresses, so its limits have a `NoKey`.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use http::request::Parts;
use http::HeaderName;
use tatcell::Address;

/// Reads the key of a request.
///
/// Closures implement it through [`from_fn`], tuples of two or three keys by themselves. Implement it for a type of
/// your own if its bytes are neither borrowed nor worth an allocation:
///
/// ```
/// use http::request::Parts;
/// use tatcell_tower::Key;
///
/// /// Requests of one tenant, whose number an earlier layer has put into the extensions.
/// struct Tenant;
///
/// impl Key for Tenant {
///     fn hash(&self, request: &Parts, hash: &dyn Fn(&[u8]) -> u64) -> Option<u64> {
///         request.extensions.get::<u32>().map(|tenant| hash(&tenant.to_le_bytes()))
///     }
/// }
/// ```
pub trait Key: Send + Sync + 'static {
    /// Passes the bytes of the key to `hash` and returns what that returns; `None` if the request has no key.
    ///
    /// `hash` is the keyed hash of the limit's table, so clients cannot choose keys that collide.
    fn hash(&self, request: &Parts, hash: &dyn Fn(&[u8]) -> u64) -> Option<u64>;

    /// Calls `see` with each [`Client`] that the key is made of. A key of your own that has one passes it on: then its
    /// prefix is validated when the layer is opened, and a server that passes on no peer address is an error.
    fn clients(&self, see: &mut dyn FnMut(&Client)) {
        let _ = see;
    }
}

/// Finds the address of a client. Made by [`peer`] and [`forwarded_for`].
///
/// ```
/// use std::net::SocketAddr;
/// use tatcell::Address;
/// use tatcell_tower::key::{self, Client};
///
/// let client: Client = key::peer();
/// let request = http::Request::builder().extension(SocketAddr::from(([192, 0, 2, 1], 40_000))).body(())?;
/// let (parts, ()) = request.into_parts();
/// assert_eq!(client.address(&parts), Some(Address::from([192, 0, 2, 1])));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Client {
    hops: usize,
    v4: u8,
    v6: u8,
}

/// Makes a key of the peer address: the host that the server is connected to.
///
/// An IPv4 address counts whole, of an IPv6 address the first 64 bits: one host can send from all addresses of a /64.
/// An IPv4-mapped address is the IPv4 address ([`Address`] lists the forms).
///
/// ```
/// use tatcell_tower::key;
/// let by_network = key::peer().prefix(24, 48);
/// # let _ = by_network;
/// ```
pub fn peer() -> Client {
    forwarded_for(0)
}

/// Makes a key of the address that `X-Forwarded-For` names, behind this number of trusted proxies.
///
/// Each proxy appends the address that it was connected from, so the client is the entry that is `hops` from the end.
/// What stands before it came from the client, and is not read. With 0 hops no header is trusted: the key is the
/// [peer address](peer). A port or a zone after the address is ignored.
///
/// If there is no such entry, or it is not an address, the client is the peer of the connection, which nobody can make
/// up: the request came around the proxies, or a proxy did not say from where. Empty entries count, because the next
/// one before them may be the client's.
///
/// ```
/// use http::Request;
/// use tatcell::Address;
/// use tatcell_tower::key;
/// // The client wrote 198.51.100.9. The proxy appended the address that it saw.
/// let request = Request::builder().header("x-forwarded-for", "198.51.100.9, 192.0.2.1").body(())?;
/// let (parts, ()) = request.into_parts();
/// assert_eq!(key::forwarded_for(1).address(&parts), Some(Address::from([192, 0, 2, 1])));
/// // Fewer than 3 entries: it is the peer, if the server passes that on.
/// assert_eq!(key::forwarded_for(3).address(&parts), None);
/// # Ok::<(), http::Error>(())
/// ```
pub fn forwarded_for(hops: usize) -> Client {
    Client { hops, v4: 32, v6: 64 }
}

impl Client {
    /// Takes `v4` bits of an IPv4 address, 0 to 32, or `v6` bits of an IPv6 address, 0 to 128. With others the layer
    /// [does not open](crate::OpenError::BadPrefix). A ladder does not use this: it has lengths of its own.
    #[must_use]
    pub fn prefix(self, v4: u8, v6: u8) -> Client {
        Client { v4, v6, ..self }
    }

    /// Returns the address of the client, if the request has one.
    pub fn address(&self, request: &Parts) -> Option<Address> {
        let forwarded = self.hops.checked_sub(1).and_then(|before| {
            let lines = request.headers.get_all("x-forwarded-for").iter().rev();
            let mut entries = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
            host(std::str::from_utf8(entries.nth(before)?).ok()?)
        });
        forwarded.or_else(|| peer_of(request)).map(Address::from)
    }

    /// Returns whether an address has as many bits.
    pub(crate) fn is_valid(&self) -> bool {
        self.v4 <= 32 && self.v6 <= 128
    }
}

impl Key for Client {
    fn hash(&self, request: &Parts, hash: &dyn Fn(&[u8]) -> u64) -> Option<u64> {
        let address = self.address(request)?;
        Some(hash(address.prefix(if address.is_v4() { self.v4 } else { self.v6 }).as_ref()))
    }

    fn clients(&self, see: &mut dyn FnMut(&Client)) {
        see(self);
    }
}

/// Returns the address that the server has put into the extensions.
pub(crate) fn peer_of(request: &Parts) -> Option<IpAddr> {
    let peer = request.extensions.get::<SocketAddr>().copied();
    #[cfg(feature = "axum")]
    let peer = peer.or_else(|| {
        use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};
        let extensions = &request.extensions;
        let made_up = || extensions.get::<MockConnectInfo<SocketAddr>>().map(|connection| connection.0);
        extensions.get::<ConnectInfo<SocketAddr>>().map(|connection| connection.0).or_else(made_up)
    });
    #[cfg(feature = "tonic")]
    let peer =
        peer.or_else(|| request.extensions.get::<tonic::transport::server::TcpConnectInfo>()?.remote_addr());
    peer.map(|peer| peer.ip())
}

/// Reads an entry of X-Forwarded-For: an address, perhaps in brackets, with a zone or with a port.
fn host(entry: &str) -> Option<IpAddr> {
    let entry = entry.trim_matches([' ', '\t']);
    let (host, port) = match entry.strip_prefix('[') {
        Some(inside) => inside.split_once(']')?,
        // With more than one colon it is an IPv6 address.
        None => match entry.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host, &entry[entry.len() - port.len() - 1..]),
            _ => (entry, ""),
        },
    };
    let digits = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(digits) {
        return None;
    }
    host.split_once('%').map_or(host, |(address, _zone)| address).parse().ok()
}

/// Is the key that [`header`] makes.
///
/// ```
/// use http::{HeaderName, Request};
/// use tatcell_tower::{key, Key};
///
/// let by_key: key::Header = key::header(HeaderName::from_static("x-api-key"));
/// // Any function of the bytes shows what is the key: here their number.
/// let length = |bytes: &[u8]| bytes.len() as u64;
/// let (with, ()) = Request::builder().header("x-api-key", "secret").body(())?.into_parts();
/// let (without, ()) = Request::new(()).into_parts();
/// assert_eq!(by_key.hash(&with, &length), Some(6));
/// assert_eq!(by_key.hash(&without, &length), None);
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Header(HeaderName);

/// Makes a key of the value of a header, of any bytes. Of several values the first counts, which is the one that
/// [`HeaderMap::get`](http::HeaderMap::get) gives the handler too.
///
/// A client chooses its header. So limit a header only after something has verified it, or limit the address too.
///
/// ```
/// use http::{header, HeaderName};
/// use tatcell_tower::key;
/// let by_key = key::header(HeaderName::from_static("x-api-key"));
/// let by_token = key::header(header::AUTHORIZATION);
/// # let _ = (by_key, by_token);
/// ```
pub fn header(name: HeaderName) -> Header {
    Header(name)
}

impl Key for Header {
    fn hash(&self, request: &Parts, hash: &dyn Fn(&[u8]) -> u64) -> Option<u64> {
        let value = request.headers.get(&self.0)?.as_bytes();
        (!value.is_empty()).then(|| hash(value))
    }
}

/// Is the key that [`path`] makes.
///
/// ```
/// use http::Request;
/// use tatcell_tower::{key, Key};
///
/// let by_path: key::Path = key::path();
/// let length = |bytes: &[u8]| bytes.len() as u64;
/// let (request, ()) = Request::builder().uri("/login?user=ann").body(())?.into_parts();
/// assert_eq!(by_path.hash(&request, &length), Some(6));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Path;

/// Makes a key of the path of the request, without the query. For a gRPC request it is the name of the method.
///
/// A router that axum nests in another one sees the rest of the path. With feature `axum` the key is the whole path
/// there, too (`OriginalUri`).
///
/// A client can ask for any number of paths, and a nest with a parameter has as many as the parameter has values. So
/// use it in a tuple, or behind a router that knows them.
///
/// ```
/// use tatcell_tower::key;
/// let by_client_and_path = (key::peer(), key::path());
/// # let _ = by_client_and_path;
/// ```
pub fn path() -> Path {
    Path
}

impl Key for Path {
    fn hash(&self, request: &Parts, hash: &dyn Fn(&[u8]) -> u64) -> Option<u64> {
        #[cfg(feature = "axum")]
        if let Some(whole) = request.extensions.get::<axum::extract::OriginalUri>() {
            return Some(hash(whole.path().as_bytes()));
        }
        Some(hash(request.uri.path().as_bytes()))
    }
}

/// Is the key that [`from_fn`] makes.
///
/// ```
/// use http::Request;
/// use tatcell_tower::{key, Key};
///
/// let by_method = key::from_fn(|request| Some(request.method.as_str().as_bytes().into()));
/// let length = |bytes: &[u8]| bytes.len() as u64;
/// let (request, ()) = Request::delete("/").body(())?.into_parts();
/// assert_eq!(by_method.hash(&request, &length), Some(6));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FromFn<F>(F);

/// Makes a key of what a closure returns: bytes of the request, or bytes of its own. `None` means that the request has
/// no key.
///
/// ```
/// use http::header::HOST;
/// use tatcell_tower::key;
/// // HTTP/1.1 names the host in a header, HTTP/2 in the URI.
/// let by_host = key::from_fn(|request| {
///     let host = request.headers.get(HOST).map(|host| host.as_bytes());
///     Some(host.or_else(|| Some(request.uri.authority()?.as_str().as_bytes()))?.into())
/// });
/// let by_method = key::from_fn(|request| Some(request.method.as_str().as_bytes().into()));
/// # let _ = (by_host, by_method);
/// ```
pub fn from_fn<F>(key: F) -> FromFn<F>
where
    F: for<'a> Fn(&'a Parts) -> Option<Cow<'a, [u8]>> + Send + Sync + 'static,
{
    FromFn(key)
}

impl<F> Key for FromFn<F>
where
    F: for<'a> Fn(&'a Parts) -> Option<Cow<'a, [u8]>> + Send + Sync + 'static,
{
    fn hash(&self, request: &Parts, hash: &dyn Fn(&[u8]) -> u64) -> Option<u64> {
        self.0(request).map(|key| hash(&key))
    }
}

/// Hashes the hashes of the parts, so that no part can be taken for the end of the one before.
fn both(hash: &dyn Fn(&[u8]) -> u64, first: u64, second: u64) -> u64 {
    hash((u128::from(first) << 64 | u128::from(second)).to_le_bytes().as_slice())
}

impl<A: Key, B: Key> Key for (A, B) {
    fn hash(&self, request: &Parts, hash: &dyn Fn(&[u8]) -> u64) -> Option<u64> {
        Some(both(hash, self.0.hash(request, hash)?, self.1.hash(request, hash)?))
    }

    fn clients(&self, see: &mut dyn FnMut(&Client)) {
        self.0.clients(see);
        self.1.clients(see);
    }
}

impl<A: Key, B: Key, C: Key> Key for (A, B, C) {
    fn hash(&self, request: &Parts, hash: &dyn Fn(&[u8]) -> u64) -> Option<u64> {
        let front = both(hash, self.0.hash(request, hash)?, self.1.hash(request, hash)?);
        Some(both(hash, front, self.2.hash(request, hash)?))
    }

    fn clients(&self, see: &mut dyn FnMut(&Client)) {
        self.0.clients(see);
        self.1.clients(see);
        self.2.clients(see);
    }
}
