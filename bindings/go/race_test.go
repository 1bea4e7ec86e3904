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

// Refunds, resets, sweeps and looks run next to checks; what they do to one key is never more than its burst.
func TestAllCallsRunAtOnce(t *testing.T) {
	l := must(New("1000000/s burst 5", 200))
	var workers sync.WaitGroup
	for worker := 0; worker < 8; worker++ {
		workers.Add(1)
		go func(worker int) {
			defer workers.Done()
			for i := 0; i < 3000; i++ {
				key := fmt.Sprint((worker*i + i) % 300)
				switch d := l.Hit(key, 1); i % 8 {
				case 0:
					l.Refund(key, &d)
				case 1:
					l.Reset(key)
				case 2:
					if d := l.Test(key, 1); d.Remaining > 5 {
						t.Errorf("%d units are left of 5", d.Remaining)
					}
				case 3:
					l.Limit().Table().Sweep(Now(), 0, 64)
				case 4:
					l.Limit().Table().Stats(Now())
				}
			}
		}(worker)
	}
	workers.Wait()
}
