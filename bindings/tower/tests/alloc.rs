//! A request that passes allocates nothing, whatever it is limited by, unless it gets fields.
#![allow(unsafe_code)] // a global allocator is unsafe

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::Future;
use std::task::{Context, Poll, Waker};

use common::{from, hourly, inner, with};
use http::{HeaderName, Request, StatusCode};
use tatcell::Ladder;
use tatcell_tower::{key, LayerBuilder, Limit, RateLimitLayer};
use tower::{Layer, Service};

/// Counts the allocations of this thread.
struct Counting;

thread_local!(static ALLOCATIONS: Cell<u64> = const { Cell::new(0) });

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of 100 requests that pass, from readiness to the response, and of as many clones of the service.
fn allocations(builder: LayerBuilder) -> u64 {
    let layer = builder.open().expect("limits");
    let service = layer.layer(inner(StatusCode::OK));
    let request = |i: usize| {
        let request = with(from(&format!("192.0.2.{i}")), "x-api-key", &[b'k'; 4_000]);
        with(request, "x-forwarded-for", format!("198.51.100.1, 2001:db8:{i}::1").as_bytes())
    };
    let requests: Vec<Request<()>> = (0..100).map(request).collect();
    let before = ALLOCATIONS.with(Cell::get);
    for request in requests {
        let mut service = service.clone();
        let mut context = Context::from_waker(Waker::noop());
        assert!(service.poll_ready(&mut context).is_ready());
        let future = std::pin::pin!(service.call(request));
        let Poll::Ready(Ok(answer)) = future.poll(&mut context) else { panic!("it is ready") };
        assert_eq!(answer.status(), StatusCode::OK);
    }
    ALLOCATIONS.with(Cell::get) - before
}

fn builder() -> LayerBuilder {
    let api_key = || key::header(HeaderName::from_static("x-api-key"));
    RateLimitLayer::builder()
        .limit(Limit::new("client", hourly(1_000), key::forwarded_for(1)))
        .limit(Limit::new("all", hourly(1_000), (key::peer(), key::path(), api_key())))
}

#[test]
fn a_request_that_passes_allocates_nothing() {
    assert_eq!(allocations(builder()), 0, "two limits");
    assert_eq!(allocations(builder().refund_failures()), 0, "with refunds");
    assert_eq!(allocations(builder().shadow()), 0, "in shadow mode");
    let closure = key::from_fn(|request| Some(request.headers.get("x-api-key")?.as_bytes().into()));
    assert_eq!(allocations(builder().limit(Limit::new("key", hourly(1_000), closure))), 0, "a closure");
    let ladder = || Limit::ladder("net", hourly(1_000), Ladder::DEFAULT, key::forwarded_for(1));
    assert_eq!(allocations(builder().limit(ladder())), 0, "a ladder");
    assert_eq!(allocations(builder().limit(ladder()).refund_failures()), 0, "a ladder, with refunds");
}

#[test]
fn fields_allocate_so_the_count_counts() {
    assert!(allocations(builder().fields_on_passes()) > 0);
}
