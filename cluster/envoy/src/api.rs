//! The messages of `envoy.service.ratelimit.v3` that are used, by their field numbers.
//!
//! They are written by hand, because ten of Envoy's messages are needed, and a crate of all takes minutes to build. A
//! request with fields that are not named here is refused: see `fields.rs`.

use prost::{Enumeration, Message};

/// `RateLimitRequest`.
#[derive(Clone, PartialEq, Message)]
pub struct RateLimitRequest {
    /// The domain whose rules apply.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// What the request asks about.
    #[prost(message, repeated, tag = "2")]
    pub descriptors: Vec<Descriptor>,
    /// The cost; 0 means 1.
    #[prost(uint32, tag = "3")]
    pub hits_addend: u32,
}

/// `RateLimitDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub struct Descriptor {
    /// Keys and values, from the outermost rule to the innermost.
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<Entry>,
    /// A limit that replaces the rule's.
    #[prost(message, optional, tag = "2")]
    pub limit: Option<Override>,
    /// The cost of this descriptor, which replaces the request's; may be 0.
    #[prost(message, optional, tag = "3")]
    pub hits_addend: Option<u64>,
    /// Whether the cost is to be given back.
    #[prost(bool, tag = "4")]
    pub is_negative_hits: bool,
}

/// `RateLimitDescriptor.Entry`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Entry {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// `RateLimitDescriptor.RateLimitOverride`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct Override {
    /// The number of requests.
    #[prost(uint32, tag = "1")]
    pub requests_per_unit: u32,
    /// The time unit.
    #[prost(enumeration = "Unit", tag = "2")]
    pub unit: i32,
}

/// `RateLimitResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct RateLimitResponse {
    /// The answer.
    #[prost(enumeration = "Code", tag = "1")]
    pub overall_code: i32,
    /// One for each descriptor.
    #[prost(message, repeated, tag = "2")]
    pub statuses: Vec<DescriptorStatus>,
    /// Header fields for the client of the proxy.
    #[prost(message, repeated, tag = "3")]
    pub response_headers_to_add: Vec<HeaderValue>,
}

/// `RateLimitResponse.DescriptorStatus`.
#[derive(Clone, PartialEq, Message)]
pub struct DescriptorStatus {
    /// The answer for this descriptor.
    #[prost(enumeration = "Code", tag = "1")]
    pub code: i32,
    /// The limit that applied.
    #[prost(message, optional, tag = "2")]
    pub current_limit: Option<CurrentLimit>,
    /// What is left of it.
    #[prost(uint32, tag = "3")]
    pub limit_remaining: u32,
    /// The time until it is full again; if it is over the limit, the time until the same cost passes.
    #[prost(message, optional, tag = "4")]
    pub duration_until_reset: Option<prost_types::Duration>,
}

/// `RateLimitResponse.RateLimit`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct CurrentLimit {
    /// The number of requests.
    #[prost(uint32, tag = "1")]
    pub requests_per_unit: u32,
    /// The time unit.
    #[prost(enumeration = "Unit", tag = "2")]
    pub unit: i32,
    /// The name of the rule.
    #[prost(string, tag = "3")]
    pub name: String,
}

/// `envoy.config.core.v3.HeaderValue`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct HeaderValue {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// `RateLimitResponse.RateLimit.Unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Unit {
    /// Not given.
    Unknown = 0,
    /// A second.
    Second = 1,
    /// 60 seconds.
    Minute = 2,
    /// 60 minutes.
    Hour = 3,
    /// 24 hours.
    Day = 4,
    /// 30 days.
    Month = 5,
    /// 365 days.
    Year = 6,
    /// 7 days.
    Week = 7,
}

/// `RateLimitResponse.Code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Code {
    /// Not given.
    Unknown = 0,
    /// The request passes.
    Ok = 1,
    /// The request is over the limit.
    OverLimit = 2,
}
