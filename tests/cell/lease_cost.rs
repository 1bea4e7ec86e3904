//! How often a lease touches the shared cell, counted by the cell's word, which changes with every swap.
use tatcell::{Cell, Lease, Limit};

/// Swaps on the cell in `requests` requests of cost 1 that are `apart` ticks apart, after as many to warm up.
fn swaps(limit: &Limit, batch: u32, apart: u64, requests: u64) -> u64 {
    let (cell, mut lease) = (Cell::new(), Lease::with_batch(batch));
    let mut now = 1;
    let mut count = 0;
    for round in 0..2 {
        let mut last = cell.word();
        count = 0;
        for _ in 0..requests {
            now += apart;
            assert!(lease.check(&cell, limit, now, 1).passes(), "round {round} at {now}");
            count += (cell.word() != last) as u64;
            last = cell.word();
        }
    }
    count
}

#[test]
fn a_lease_asks_the_cell_once_in_batch_times_share_requests() {
    // 1 unit a tick; one request in `apart` ticks is a share of 1 / apart of the rate.
    let limit = Limit::new(1, 1, 1 << 20).unwrap();
    for (batch, apart, once_in) in
        [(64, 1, 64), (1024, 1, 1024), (1024, 4, 256), (1 << 16, 10, 6_500), (0, 10, 6_500)]
    {
        let count = swaps(&limit, batch, apart, 100_000);
        assert!(count <= 100_000 / once_in + 2, "batch {batch}, apart {apart}: {count} swaps");
    }
}

#[test]
fn without_a_batch_to_take_it_asks_each_time() {
    let limit = Limit::new(1, 1, 8).unwrap();
    assert_eq!(swaps(&limit, 0, 1, 1_000), 1_000);
}
