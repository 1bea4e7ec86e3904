//! The seeds that once found a fault. The planted faults of `dev/planted` are found by this test.

use tatcell_cluster_sim::kept::KEPT;
use tatcell_cluster_sim::lua::Scripts;
use tatcell_cluster_sim::plan::Plan;
use tatcell_cluster_sim::play::play;

#[test]
fn kept_seeds_stay_within_their_bounds() {
    let mut lua = Scripts::new().expect("Lua");
    let mut wrong = Vec::new();
    for (name, seed) in KEPT {
        let outcome = play(&Plan::of(*seed), &mut lua, false);
        if !outcome.wrong.is_empty() {
            wrong.push(format!("seed {seed} ({name}): {}", outcome.wrong.join("; ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_seed_is_one_world() {
    let mut lua = Scripts::new().expect("Lua");
    for seed in [3, 17, 42] {
        let play = |lua: &mut Scripts| play(&Plan::of(seed), lua, true).found;
        let (first, again) = (play(&mut lua), play(&mut lua));
        assert!(first.admitted == again.admitted && first.story == again.story, "seed {seed}");
        assert!(!first.admitted.is_empty());
    }
}
