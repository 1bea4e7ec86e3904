package tatcell

import (
	"crypto/rand"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

var epoch = time.Now()

// Now returns the nanoseconds since the program began, by the monotonic clock of the system. It is never set back. On
// Linux it stands still while the machine is suspended, and then no debt drains.
func Now() uint64 { return uint64(time.Since(epoch)) }

// Limiter keeps one limit for each of many keys, by the clock of Now. Its memory is fixed, it has no lock and starts no
// goroutine. Any number of goroutines may use it at once. New and NewLimiter make one; the zero Limiter panics.
type Limiter struct {
	limit *TableLimit
	spec  Spec
	parts uint64        // of sweepPart slots each
	step  uint64        // nanoseconds between two parts of a sweep
	pause uint64        // nanoseconds after swept at which a silence begins, and no key owes anything
	swept atomic.Uint64 // the time until which all is swept that was due
}

// fullSetPPB is the chance, in billionths, that a new key finds its set full when a Limiter has as many keys as asked.
const fullSetPPB = 1000

// sweepPart is the number of slots that are swept at once, which takes some microseconds.
const sweepPart = 4096

// New makes a limiter from text such as "10/s burst 20" (see ParseSpec), for `keys` keys that are in debt at the same
// time. It takes 34 bytes for each of them. If more come, new ones pass untracked while their set is full.
func New(limit string, keys int) (*Limiter, error) {
	spec, err := ParseSpec(limit, uint64(time.Second))
	if err != nil {
		return nil, err
	}
	return NewLimiter(spec, keys, Admit)
}

// NewLimiter makes a limiter from a specification in nanoseconds, with a policy for keys beyond its memory.
func NewLimiter(spec Spec, keys int, policy Policy) (*Limiter, error) {
	o := TableOptions{Fastest: spec, Policy: policy, Slots: SlotsForLoad(keys, fullSetPPB), Seed: new([16]byte)}
	o.TicksPerSecond = uint64(time.Second)
	if keys > 0 && o.Slots == 0 {
		return nil, ErrTooLarge
	}
	if _, err := rand.Read(o.Seed[:]); err != nil {
		return nil, err
	}
	table, err := NewTable(o)
	if err == ErrSpanTooShort {
		return nil, notFitting(o)
	}
	if err != nil {
		return nil, err
	}
	limit, err := table.Limit(spec)
	if err != nil {
		return nil, err
	}
	l := &Limiter{limit: limit, spec: spec, parts: uint64(table.Slots()+sweepPart-1) / sweepPart}
	l.step = max(table.SweepInterval()/(4*l.parts), 1)
	l.pause = (l.parts + 1) * l.step // at least a quarter of the SweepInterval after the last call: longer than any debt
	l.swept.Store(Now())
	return l, nil
}

// notFitting returns why the limit of a table does not fit its words, with the largest burst that does.
func notFitting(o TableOptions) error {
	s := o.Fastest
	o.TagBits, o.Slowest = 20, &o.Fastest
	made := fmt.Sprintf("%d units in %d ns, burst %d", s.Units, s.Period, s.Burst)
	most, over := uint64(0), s.Burst
	for most+1 < over {
		o.Fastest.Burst = most + (over-most)/2
		o.Fastest.Soft = min(s.Soft, o.Fastest.Burst)
		if _, err := fit(&o); err == nil {
			most = o.Fastest.Burst
		} else {
			over = o.Fastest.Burst
		}
	}
	if most == 0 {
		return &misfit{made + ": lower MaxRoom, MaxDelay, MaxDebt or Penalty, or the rate"}
	}
	return &misfit{fmt.Sprintf("%s: at this rate a burst of at most %d fits: lower the burst, or the rate", made, most)}
}

// misfit is an ErrSpanTooShort of a Limiter, which has one limit, and whose table nobody made.
type misfit struct{ text string }

func (e *misfit) Error() string { return "tatcell: " + e.text }
func (e *misfit) Unwrap() error { return ErrSpanTooShort }

// Allow decides one request of cost 1 and charges it if it passes.
func (l *Limiter) Allow(key string) bool { return l.AllowN(key, 1) }

// AllowN decides one request of n units.
func (l *Limiter) AllowN(key string, n uint64) bool {
	return l.limit.Check(l.now(), l.limit.t.HashString(key), n).Passes()
}

// AllowMany decides one request of cost 1 for each key, in order, at one reading of the clock, and sets passes[i] to
// whether that of keys[i] passes. It returns how many pass. It panics if passes is shorter than keys.
//
// The cache misses of 64 keys overlap, so a key takes less time than one call of Allow.
func (l *Limiter) AllowMany(keys []string, passes []bool) int {
	if len(passes) < len(keys) {
		panic("tatcell: AllowMany has more keys than places for the answers")
	}
	t, now, count := l.limit.t, l.now(), 0
	passes = passes[:len(keys)]
	var hashes [64]uint64
	for len(keys) > 0 {
		some := hashes[:min(uint64(len(keys)), uint64(len(hashes)))]
		for i := range some {
			some[i] = t.HashString(keys[i])
			// Go has no prefetch: a load whose value nobody waits for starts the miss.
			atomic.LoadUint64(&t.home(some[i])[0])
		}
		for i, hash := range some {
			passes[i] = l.limit.Check(now, hash, 1).Passes()
			if passes[i] {
				count++
			}
		}
		keys, passes = keys[len(some):], passes[len(some):]
	}
	return count
}

// Hit decides like AllowN and returns the full answer.
func (l *Limiter) Hit(key string, cost uint64) Decision {
	return l.limit.Decide(l.now(), l.limit.t.HashString(key), cost, 0)
}

// Test returns what Hit would, without charging it.
func (l *Limiter) Test(key string, cost uint64) Decision {
	return l.limit.Peek(l.now(), l.limit.t.HashString(key), cost)
}

// Refund gives back what a Hit charged and has not drained since: for work that was not done after all.
func (l *Limiter) Refund(key string, d *Decision) Decision {
	return l.limit.Refund(l.now(), l.limit.t.HashString(key), &d.Permit)
}

// Reset makes the full burst of a key available at once. It returns false if it is contended: try again. The slot of
// the key stays taken until its old debt would have drained, so a reset counts as one more key.
func (l *Limiter) Reset(key string) bool { return l.limit.t.Reset(l.now(), l.limit.t.HashString(key)) }

// Limit returns the limit of the table that the limiter keeps, for calls that it does not have. Those sweep nothing.
// Call the limiter, too, at least once in a quarter of the SweepInterval of the table, or it forgets what they charged.
func (l *Limiter) Limit() *TableLimit { return l.limit }

// Spec returns what the limiter was made from.
func (l *Limiter) Spec() Spec { return l.spec }

// now reads the clock, and sweeps the parts of the table that are due by then.
func (l *Limiter) now() uint64 {
	now := Now()
	if now-l.swept.Load() < l.step {
		return now
	}
	return l.sweep(now)
}

// sweep sweeps the parts that are due: each part is due four times in a SweepInterval. After a pause it sweeps more
// than one part, at most the whole table once. After a silence, which is longer than any debt, it forgets all words:
// they may have wrapped, and then old debts count once more. It returns the time of the last sweep.
func (l *Limiter) sweep(now uint64) uint64 {
	if l.step == 0 {
		panic("tatcell: the Limiter is empty: make one by New")
	}
	for {
		swept := l.swept.Load()
		late := now - swept
		switch due := late / l.step; {
		case late > math.MaxInt64 || due == 0:
			return now // others have swept meanwhile
		case late > l.pause:
			if l.forget(now, swept) && l.swept.CompareAndSwap(swept, now) {
				return now
			}
		// One goroutine takes the parts. A sweep changes expired words alone, so it may meet any other call.
		case l.swept.CompareAndSwap(swept, swept+due*l.step):
			return l.sweepParts(now, swept/l.step, due)
		}
	}
}

// sweepParts sweeps count parts, beginning with first, each at most once.
func (l *Limiter) sweepParts(now, first, count uint64) uint64 {
	for i := uint64(0); ; now = Now() {
		l.limit.t.Sweep(now, int((first+i)%l.parts)*sweepPart, sweepPart)
		// By an old clock live debts look expired, so each part has a clock of its own.
		if i++; i >= count || i == l.parts {
			return now
		}
	}
}

// forget empties all words. It returns false once another goroutine has. Each that comes in a silence does the same
// work before it decides, so none waits for another. A word with a new charge was written after the end of the silence.
// So who loads such a word sees that end by the next load.
func (l *Limiter) forget(now, swept uint64) bool {
	t := l.limit.t
	empty := t.layout.swept(t.now(now))
	for i := range t.slots {
		seen := atomic.LoadUint64(&t.slots[i])
		if l.swept.Load() != swept {
			return false
		}
		if seen != 0 {
			atomic.CompareAndSwapUint64(&t.slots[i], seen, empty)
		}
	}
	return true
}

// SlotsForLoad returns the slots with which a new key finds its set full with a chance of at most ppb billionths, while
// that many keys are in debt. It returns 0 if no table is large enough. A set of 16 slots is a loss system, so that
// chance is Erlang B with 16 servers.
func SlotsForLoad(keys int, ppb uint64) int {
	const mostSlots = 1 << 34
	if keys <= 0 || uint64(keys) > mostSlots {
		return 0
	}
	// Bisection for the largest load, in millionths, that meets the target: the chance grows with the load.
	low, high := 0, 4_000_000
	for low+1 < high {
		middle := (low + high) / 2
		if math.Round(fullSet(middle)*1e9) <= float64(ppb) {
			low = middle
		} else {
			high = middle
		}
	}
	if low == 0 {
		return 0
	}
	slots := (uint64(keys)*1e6 + uint64(low) - 1) / uint64(low)
	if slots > mostSlots || slots > math.MaxInt-15 {
		return 0
	}
	return int(slots+15) / 16 * 16
}

// fullSet returns the chance of a full set at a load in millionths, by the recursion of Erlang B.
func fullSet(load int) float64 {
	offered, blocked := 16*float64(load)/1e6, 1.0
	for n := 1.0; n <= 16; n++ {
		blocked = offered * blocked / (n + offered*blocked)
	}
	return blocked
}
