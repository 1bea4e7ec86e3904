//! The answer to a client: the fields of a response, and the response of a refusal.

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::Full;
use smallvec::SmallVec;
use tatcell::http::{Field, Fields, Policy};
use tatcell::{Decision, MAX_LINKS};

use crate::decide::{Decided, Rules};

const FIELDS: [(HeaderName, Field); 2] = [
    (HeaderName::from_static("ratelimit-policy"), Field::RateLimitPolicy),
    (HeaderName::from_static("ratelimit"), Field::RateLimit),
];

/// Describes a refusal, for a closure that changes its response.
///
/// [`LayerBuilder::on_refusal`](crate::LayerBuilder::on_refusal) takes the closure.
///
/// ```
/// use tatcell_tower::Refusal;
///
/// /// A line for the log of the server.
/// fn line(refusal: &Refusal<'_>) -> String {
///     match refusal.decision {
///         Some(decision) => format!("{}: retry in {} ns", refusal.limit, decision.retry_after),
///         None => format!("{}: the request has no key", refusal.limit),
///     }
/// }
/// # let _ = line;
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Refusal<'a> {
    /// The name of the limit that refused; of a ladder with family and prefix length, `NAME/v4/24`.
    pub limit: &'a str,
    /// The decision of all limits together; `None` if the request had no key.
    pub decision: Option<&'a Decision>,
    /// Whether the request came by gRPC: then the answer is in `grpc-status`, and the status is 200.
    pub grpc: bool,
}

/// The fields of a response, made before the request is passed on.
pub(crate) struct Told([Option<HeaderValue>; 2]);

impl Told {
    pub fn add_to(self, headers: &mut HeaderMap) {
        for ((name, _), value) in FIELDS.into_iter().zip(self.0) {
            // Both are lists: a limit of another layer adds to them.
            value.map(|value| headers.append(name, value));
        }
    }
}

fn value(fields: &Fields<'_>, field: Field) -> Option<HeaderValue> {
    let mut text = String::new();
    fields.write_value(field, &mut text).ok()?;
    // Structured fields are ASCII.
    HeaderValue::try_from(text).ok().filter(|value| !value.is_empty())
}

/// Makes the fields of a decision, and the seconds of Retry-After.
pub(crate) fn fields(rules: &Rules, decided: &Decided) -> (Told, Option<HeaderValue>) {
    let policies: SmallVec<[Policy<'_>; MAX_LINKS]> = decided
        .asked
        .iter()
        .zip(&decided.each)
        .filter_map(|(asked, decision)| {
            let tier = rules.tier(asked);
            // Names were verified when the layer was opened.
            Some(Policy::new(&tier.name).ok()?.limit(&tier.info).decision(decision))
        })
        .collect();
    // As many policies as links, and the clock is the system's in nanoseconds: never an error.
    let Ok(fields) = Fields::new(1_000_000_000, &policies) else { return (Told([None, None]), None) };
    (Told(FIELDS.map(|(_, field)| value(&fields, field))), value(&fields, Field::RetryAfter))
}

/// Returns the content type of a request if that is one of gRPC.
pub(crate) fn grpc(headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get(CONTENT_TYPE).filter(|value| value.as_bytes().starts_with(b"application/grpc")).cloned()
}

/// Makes the response of a refusal.
pub(crate) fn refused(
    rules: &Rules,
    decided: &Decided,
    content: Option<HeaderValue>,
) -> Response<Full<Bytes>> {
    let (told, wait) = fields(rules, decided);
    let text = match wait.as_ref().and_then(|wait| wait.to_str().ok()) {
        Some(seconds) => format!("too many requests: retry in {seconds} s"),
        None => "too many requests".to_owned(),
    };
    let mut response = plain(StatusCode::TOO_MANY_REQUESTS, "8", text, content);
    told.add_to(response.headers_mut());
    wait.map(|wait| response.headers_mut().insert(RETRY_AFTER, wait));
    response
}

/// Makes the response to a request without a key.
pub(crate) fn keyless(limit: &str, content: Option<HeaderValue>) -> Response<Full<Bytes>> {
    plain(StatusCode::BAD_REQUEST, "3", format!("the request has no key for the limit {limit}"), content)
}

/// Makes the response of a server that passes on no peer address. Only who runs the server can change that.
pub(crate) fn peerless(limit: &str, content: Option<HeaderValue>) -> Response<Full<Bytes>> {
    let text = format!(
        "limit {limit}: the server passes on no peer address, so all clients would share one limit: serve axum 0.8 \
         with into_make_service_with_connect_info::<SocketAddr>(), insert a SocketAddr into the extensions of each \
         request, or choose NoKey::Share"
    );
    plain(StatusCode::INTERNAL_SERVER_ERROR, "13", text, content)
}

/// A response of a text, or of a status of gRPC without a body.
fn plain(
    status: StatusCode,
    code: &'static str,
    text: String,
    grpc: Option<HeaderValue>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    let headers = response.headers_mut();
    match grpc {
        Some(content) => {
            headers.insert(CONTENT_TYPE, content);
            headers.insert("grpc-status", HeaderValue::from_static(code));
            // Names of limits are printable ASCII: only a percent sign must be escaped.
            if let Ok(text) = HeaderValue::try_from(text.replace('%', "%25")) {
                headers.insert("grpc-message", text);
            }
        }
        None => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
            *response.status_mut() = status;
            *response.body_mut() = Full::from(text + "\n");
        }
    }
    response
}
