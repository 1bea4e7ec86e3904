package tatcell

import (
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// later moves the clock of Now on.
func later(d time.Duration) { epoch = epoch.Add(-d) }

// backAfter sets the clock back after a test, as it was.
func backAfter(t *testing.T) {
	began := epoch
	t.Cleanup(func() { epoch = began })
}

// odd is 5 in 15 minutes and 5 ns. Its words have a span of hours.
var odd = NewSpec(1, 180_000_000_001, 5)

// A client that owes nothing has its whole burst, however rare the requests are. Each of them drains a client that has
// been idle for the time in which its burst drains.
func TestAQuietTableIsSweptInTime(t *testing.T) {
	backAfter(t)
	for _, quiet := range []struct {
		spec           Spec
		gap            time.Duration
		calls, clients int
	}{
		{odd, 10 * time.Second, 20_000, 1000}, {odd, time.Minute, 20_000, 150}, {odd, 10 * time.Minute, 6000, 150},
		{NewSpec(5, 900_000_000_000, 5), time.Hour, 12_000, 150},
	} {
		l, random := must(NewLimiter(quiet.spec, 100_000, Admit)), rand.New(rand.NewSource(29))
		idleSince, refused, asked := map[int]uint64{}, 0, 0
		for call := 0; call < quiet.calls; call++ {
			later(quiet.gap)
			client := random.Intn(quiet.clients)
			if last, known := idleSince[client]; known && Now()-last < uint64(16*time.Minute) {
				continue
			}
			asked++
			if !l.AllowN(fmt.Sprint(client), 5) {
				refused++
			}
			idleSince[client] = Now()
		}
		if refused != 0 {
			t.Errorf("a request in %v: %d of %d were refused", quiet.gap, refused, asked)
		}
	}
}

// Keys that are drained at once have their burst back when it has drained, and keep it.
func TestDrainedKeysGetTheirBurstBack(t *testing.T) {
	backAfter(t)
	l := must(NewLimiter(odd, 100_000, Admit))
	const keys = 5000
	for key := 0; key < keys; key++ {
		l.AllowN(fmt.Sprint(key), 5)
	}
	since, owe := time.Duration(0), 0
	for since < 30*time.Hour {
		for hour := since + time.Hour; since < hour; since += 5 * time.Second {
			later(5 * time.Second)
			l.Allow("another")
		}
		left := 0
		for key := 0; key < keys; key++ {
			if d := l.Test(fmt.Sprint(key), 5); !d.Passes() {
				left++
			}
		}
		if owe < left {
			owe = left
			t.Errorf("after %v, %d of %d keys do not have their burst", since, left, keys)
		}
	}
}

// A program may look often and charge rarely, such as one that charges failures alone. Each call but those of Limit
// sweeps what is due.
func TestEachCallSweeps(t *testing.T) {
	backAfter(t)
	for name, call := range map[string]func(*Limiter){
		"Test": func(l *Limiter) { l.Test("another", 1) },
		"Refund": func(l *Limiter) {
			var d Decision
			l.Refund("another", &d)
		},
		"Reset":     func(l *Limiter) { l.Reset("another") },
		"Hit":       func(l *Limiter) { l.Hit("another", 1) },
		"AllowMany": func(l *Limiter) { l.AllowMany([]string{"another"}, make([]bool, 1)) },
	} {
		l := must(NewLimiter(odd, 1000, Admit))
		l.AllowN("a", 5)
		for since := time.Duration(0); since < 20*time.Hour; since += 10 * time.Minute {
			later(10 * time.Minute)
			call(l)
			if d := l.Test("a", 5); since > 16*time.Minute && !d.Passes() {
				t.Errorf("%s: after %v, a drained key has %d units of 5", name, since, d.Remaining)
				break
			}
		}
	}
}

// After a time without any call, no sweep can tell old words from new ones. But then no key owes anything.
func TestASilenceIsForgiven(t *testing.T) {
	backAfter(t)
	random, began := rand.New(rand.NewSource(30)), epoch
	for _, text := range []string{
		"5/15min", "100/min", "100/h", "7/h", "1/h burst 2", "5/d", "30/s burst 10000", "10/s burst 20",
		"1000/s burst 300000", "1000000/s burst 10",
	} {
		refused := 0
		for try := 0; try < 2000; try++ {
			epoch = began
			l := must(New(text, 1))
			drained := time.Duration(l.Hit("a", l.spec.Burst).ResetAfter)
			if try%2 == 0 {
				// The words wrap after 2^43 units, and count once more until they have drained again.
				wrapped := time.Duration(1) << (43 + l.limit.t.shr) >> l.limit.t.shl
				drained += wrapped*time.Duration(1+try%5) - time.Duration(random.Int63n(int64(drained)))
			}
			later(drained + time.Duration(random.Int63n(int64(100*24*time.Hour))>>(try%40)))
			if d := l.Test("a", l.spec.Burst); try%3 == 0 && !d.Passes() || !l.AllowN("a", l.spec.Burst) {
				refused++
			}
		}
		if refused != 0 {
			t.Errorf("%s: %d of 2000 silences were followed by a refusal", text, refused)
		}
	}
}

// Goroutines come at once after a silence. None is refused for old debts, and no charge is lost.
func TestGoroutinesEndASilenceTogether(t *testing.T) {
	backAfter(t)
	l := must(New("1/h burst 20", 50_000))
	for round := 0; round < 20; round++ {
		var group sync.WaitGroup
		var shared, refused atomic.Int64
		for g := 0; g < 4; g++ {
			group.Add(1)
			go func(g int) {
				defer group.Done()
				for i := 0; i < 500; i++ {
					if l.Allow("shared") {
						shared.Add(1)
					}
					if !l.AllowN(fmt.Sprint(g, i), 20) {
						refused.Add(1)
					}
				}
			}(g)
		}
		if group.Wait(); shared.Load() != 20 || refused.Load() != 0 {
			t.Fatalf("round %d: %d units of 20 passed, and %d clients that owe nothing were refused", round,
				shared.Load(), refused.Load())
		}
		// The debts of this round count once more.
		later(time.Duration(1)<<(43+l.limit.t.shr)>>l.limit.t.shl - time.Second)
	}
}

// expire fills the table with words that have expired. The function that it returns makes a call of Allow, and returns
// how many of them are gone: those that were swept, and perhaps one that the call took.
func expire(l *Limiter) (swept func() int) {
	table := l.limit.t
	old := table.now(Now()) - table.layout.window - 10
	for i := range table.slots {
		table.slots[i] = table.layout.live(table.layout.tag(uint64(i+1)), old)
	}
	expired := func() int { return int(table.Stats(Now()).Expired) }
	return func() int {
		before := expired()
		l.Allow("a")
		return before - expired()
	}
}

// A call sweeps as many parts as are due, so one part where calls are frequent, and at most the whole table.
func TestACallSweepsNoMoreThanIsDue(t *testing.T) {
	backAfter(t)
	for _, keys := range []int{1, 20, 1000, 20_000, 50_000} {
		l := must(NewLimiter(odd, keys, Admit))
		slots, step := l.limit.t.Slots(), time.Duration(l.step)
		if all := l.parts * sweepPart; all < uint64(slots) || all >= uint64(slots)+sweepPart {
			t.Fatalf("%d keys: %d parts of %d slots", keys, l.parts, slots)
		}
		if round := 4 * l.parts * l.step; round > l.limit.t.SweepInterval() {
			t.Errorf("%d keys: four sweeps take %d ns", keys, round)
		}
		later(step)
		l.Allow("a")
		swept := expire(l)
		if n := swept(); n > 1 {
			t.Errorf("%d keys: a call to which no part is due swept %d slots", keys, n)
		}
		for part := uint64(0); part < l.parts; part++ {
			later(step)
			if n := swept(); n > sweepPart+1 || n == 0 {
				t.Errorf("%d keys: a call to which one part is due swept %d slots", keys, n)
			}
		}
		if n := l.limit.t.Stats(Now()).Expired; n > 1 {
			t.Errorf("%d keys: a round of all parts left %d slots", keys, n)
		}
		swept = expire(l)
		later(3 * step)
		if n := swept(); n > 3*sweepPart+1 {
			t.Errorf("%d keys: a call to which three parts are due swept %d slots", keys, n)
		}
		later(time.Duration(l.limit.t.SweepInterval()) / 2)
		if swept(); l.limit.t.Stats(Now()).Expired > 1 {
			t.Errorf("%d keys: a call after a pause left slots", keys)
		}
		if expire(l)() > 1 {
			t.Errorf("%d keys: a second call after a pause swept again", keys)
		}
	}
}

// A refund gives back so much that a call 96 ns after the charge passes. No two calls by one clock are nearer.
func TestARefundIsThereAtOnce(t *testing.T) {
	for _, text := range []string{"1/s", "1/min", "1/h", "2/h burst 1", "7/h burst 1"} {
		l := must(New(text, 1000)).Limit()
		for now := uint64(1_000_000); now < 1_001_000; now += 7 {
			d := l.Decide(now, now<<32|now, 1, 0)
			l.Refund(now, now<<32|now, &d.Permit)
			if again := l.Check(now+96, now<<32|now, 1); !d.Passes() || !again.Passes() {
				t.Fatalf("%s: refused for %d ns more", text, again.RetryAfter)
			}
		}
	}
}
