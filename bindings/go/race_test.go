package tatcell

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// storm lets many goroutines ask for one unit at a time until the clock ends, each by its own reading of a clock that
// all of them move on. It returns the units admitted in each tick.
func storm(ticks int, ask func(worker int, now uint64) Outcome) []uint64 {
	admitted := make([]uint64, ticks)
	var clock atomic.Uint64
	var workers sync.WaitGroup
	for worker := 0; worker < 4*runtime.GOMAXPROCS(0); worker++ {
		workers.Add(1)
		go func(worker int) {
			defer workers.Done()
			for i := 0; ; i++ {
				now := clock.Load()
				if now >= uint64(ticks) {
					return
				}
				if ask(worker, now+1_000_000).Passes() {
					atomic.AddUint64(&admitted[now], 1)
				}
				if i%16 == worker%16 {
					clock.CompareAndSwap(now, now+1)
				}
				if i%64 == 0 {
					runtime.Gosched()
				}
			}
		}(worker)
	}
	workers.Wait()
	return admitted
}

// audit fails if more than burst units and the rate of one unit in period ticks passed in any window.
func audit(t *testing.T, admitted []uint64, period, burst uint64) {
	t.Helper()
	// The level of a leaky bucket is the largest excess of any window that ends now, in units / period.
	level, all := uint64(0), uint64(0)
	for now, n := range admitted {
		level = saturatingSub(level, 1) + n*period
		if all += n; level > burst*period {
			t.Fatalf("tick %d: %d units passed, in a window more than its rate and burst allow", now, all)
		}
	}
	if want := burst + uint64(len(admitted))/period; all+burst < want {
		t.Errorf("%d units passed of about %d: too few", all, want)
	}
}

func TestGoroutinesGetTheRateAndTheBurstOfACell(t *testing.T) {
	limit := must(NewLimit(1, 5, 20))
	var cell Cell
	audit(t, storm(20_000, func(_ int, now uint64) Outcome { return cell.Check(limit, now, 1) }), 5, 20)
}

// Clocks of the callers differ by up to one tick, so a key may get as much more as drains in it.
func TestGoroutinesGetTheRateAndTheBurstOfAKey(t *testing.T) {
	for _, policy := range []Policy{Admit, Inherit, Deny} {
		spec := NewSpec(1, 5, 20)
		table := must(NewTable(TableOptions{Fastest: spec, Slots: 16, CallerHash: true, Policy: policy}))
		limit := must(table.Limit(spec))
		admitted := storm(20_000, func(worker int, now uint64) Outcome { return limit.Check(now, 7, 1) })
		audit(t, admitted, 5, 20)
		if s := table.Stats(1_020_000); s.Live > 1 {
			t.Errorf("policy %d: the key has %d slots", policy, s.Live)
		}
	}
}

// TestInsertsGiveAKeyOneSlot races many inserts of one key in a set of expired slots, by clocks that differ: exactly
// the burst may pass. The schedules that a weaker protocol needs to fail are too rare for it; the models of the library
// find those, and TestCallsAreAnsweredAsByTheLibrary puts claims of others in the way.
func TestInsertsGiveAKeyOneSlot(t *testing.T) {
	const racers, burst = 8, 3
	spec := NewSpec(1, 1<<20, burst)
	table := must(NewTable(TableOptions{Fastest: spec, Slots: 16, CallerHash: true}))
	limit := must(table.Limit(spec))
	now, rounds := uint64(1)<<40, 3000
	if testing.Short() {
		rounds = 300
	}
	for round := 0; round < rounds; round++ {
		// Strangers fill some slots, and drain before the race at different times.
		for i := uint64(0); i < 16; i++ {
			limit.Check(now+i*1000, (round64(round)+i)*2+1000, 1)
		}
		now += 1<<20 + 8_000
		hash := round64(round)*2 + 1
		var passed atomic.Uint32
		var start, end sync.WaitGroup
		start.Add(1)
		for i := uint64(0); i < racers; i++ {
			end.Add(1)
			go func(now uint64) {
				defer end.Done()
				start.Wait()
				for n := 0; n < 2; n++ {
					if limit.Check(now, hash, 1).Passes() {
						passed.Add(1)
					}
				}
			}(now + i*1000)
		}
		start.Done()
		end.Wait()
		// To an older clock the last unit may not have drained, so ask once more by the latest.
		n := passed.Load()
		for limit.Check(now+racers*1000, hash, 1).Passes() {
			n++
		}
		if n != burst {
			t.Fatalf("round %d: %d requests passed, and the burst is %d", round, n, burst)
		}
		now += 4 << 20
	}
}

func round64(n int) uint64 { return uint64(n) << 8 }

// Refunds, resets, sweeps and looks run next to checks, and every unit is counted. The limit is so slow that none
// drains: a key passes as many units as its burst has and refunds give back, and at most a burst more for each reset.
func TestAllCallsRunAtOnce(t *testing.T) {
	const burst, keys = 5, 100
	l := must(New("5/520w", 5000))
	// All slots have expired words, and calls sweep a part each 5 ms.
	expire(l)
	l.step = 5_000_000
	l.swept.Store(Now())
	// Those of one kind have refunds, those of the next have resets.
	var names [3][]string
	for i := range names {
		for k := 0; k < keys; k++ {
			names[i] = append(names[i], fmt.Sprint(i, " ", k))
		}
	}
	const plain, refunds, resets = 0, 1, 2
	var passed, given [3][keys]atomic.Int64
	var workers sync.WaitGroup
	for worker := 0; worker < 8; worker++ {
		workers.Add(1)
		go func(worker int) {
			defer workers.Done()
			passes := make([]bool, keys)
			for i := 0; i < 3000; i++ {
				kind, k := i%3, (37*worker+i/3)%keys
				key := names[kind][k]
				d := l.Hit(key, 1)
				if d.Passes() {
					passed[kind][k].Add(1)
				}
				switch {
				case i%64 == 0:
					l.AllowMany(names[i/64%3], passes)
					for k, one := range passes {
						if one {
							passed[i/64%3][k].Add(1)
						}
					}
				case i%512 == 1:
					l.Limit().Table().Sweep(Now(), 0, 4096)
					l.Limit().Table().Stats(Now())
				case kind == refunds && d.Passes():
					if back := l.Refund(key, &d); back.Verdict != Contended {
						given[kind][k].Add(1)
					}
				case kind == resets && i/3 >= 500 && i/3 < 513:
					l.Reset(key)
					given[kind][k].Add(burst)
				}
			}
		}(worker)
	}
	workers.Wait()
	for kind := range names {
		for k, key := range names[kind] {
			n, most := passed[kind][k].Load(), burst+given[kind][k].Load()
			left := int64(l.Test(key, 0).Remaining)
			if n+left > most || kind != resets && n+left != most || n < burst-left {
				t.Errorf("key %s: %d units passed, %d are left, and there were %d", key, n, left, most)
			}
		}
	}
	// A reset keeps its slot, so there are few of them: a full set admits new keys uncounted.
	if s := l.limit.t.Stats(Now()); s.Live > 3*keys || s.FullSets != 0 {
		t.Errorf("%d keys have %d slots, and %d sets are full", 3*keys, s.Live, s.FullSets)
	}
}
