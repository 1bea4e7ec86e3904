package tatcell

import (
	"fmt"
	"math"
	"testing"
)

func TestFieldsNeedAName(t *testing.T) {
	if _, err := NewFieldMaker("a\nb", NewSpec(1, 1000, 1), 1000); err != ErrBadName {
		t.Error("a name with a line feed:", err)
	}
	if _, err := NewFieldMaker("a", NewSpec(1, 1000, 1), 0); err == nil {
		t.Error("a clock without ticks was taken")
	}
}

func TestALimiterNeedsKeysAndALimit(t *testing.T) {
	for _, bad := range []struct {
		limit string
		keys  int
	}{{"10/s", 0}, {"10/s", -1}, {"10", 10}, {"10/s burst 99999999999999", 10}, {"10/s", math.MaxInt}} {
		if l, err := New(bad.limit, bad.keys); err == nil || l != nil {
			t.Errorf("%v made a limiter", bad)
		}
	}
}

// A word that nobody touches for a span of the clock would read as a debt again. Calls sweep it away before that.
func TestCallsSweepTheTable(t *testing.T) {
	for _, keys := range []int{1, 20, 100} {
		l := must(New("10/s", keys))
		table := l.limit.t
		old := Now() - table.layout.window - 10
		for i := range table.slots {
			table.slots[i] = table.layout.live(table.layout.tag(uint64(i+1)), old)
		}
		l.Allow("a")
		if n := table.Stats(Now()).Expired; n < uint64(len(table.slots)-1) {
			t.Fatalf("%d keys: %d words are left before the sweep is due", keys, n)
		}
		for i := uint64(0); i < l.parts; i++ {
			l.due.Store(0)
			l.Allow("a")
		}
		if n := table.Stats(Now()).Expired; n != 0 {
			t.Errorf("%d keys: %d of %d words are left after a sweep", keys, n, len(table.slots))
		}
		if due := l.due.Load(); due > Now()+table.SweepInterval()/2 {
			t.Errorf("%d keys: the next part is due in %d ns", keys, due-Now())
		}
	}
}

// The hour of the limit is longer than any run of this test.
func TestManyAreDecidedAsOneAfterTheOther(t *testing.T) {
	one, many := must(New("3/h", 1000)), must(New("3/h", 1000))
	random := newTrace(nil, "", 0, most)
	for _, count := range []int{0, 1, 63, 64, 65, 1000} {
		keys, passes, passed := make([]string, count), make([]bool, count+1), 0
		for i := range keys {
			keys[i] = fmt.Sprint("client ", random.random()%200)
		}
		got := many.AllowMany(keys, passes)
		for i, key := range keys {
			if want := one.Allow(key); passes[i] != want {
				t.Errorf("request %d of %d, by %s: %v", i, count, key, passes[i])
			} else if want {
				passed++
			}
		}
		if got != passed || passes[count] {
			t.Errorf("%d of %d passed, and the answer is %d", passed, count, got)
		}
	}
	// The second slice has room for both answers, but that room is somebody else's.
	for _, passes := range [][]bool{make([]bool, 1), make([]bool, 2)[:1]} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d places of %d were taken for two answers", len(passes), cap(passes))
				}
			}()
			many.AllowMany([]string{"a", "b"}, passes)
		}()
	}
}

// A list may come after a long pause, and then it sweeps all parts, while a single call sweeps one and leaves the rest.
func TestAListSweepsAllThatIsDue(t *testing.T) {
	l := must(New("10/s", 100))
	table, parts := l.limit.t, l.parts
	fill := func() {
		old := Now() - table.layout.window - 10
		for i := range table.slots {
			table.slots[i] = table.layout.live(table.layout.tag(uint64(i+1)), old)
		}
		l.step = 1
		l.due.Store(0)
	}
	fill()
	for i := uint64(0); i < parts; i++ {
		if n := table.Stats(Now()).Expired; n == 0 {
			t.Fatalf("no word is left after %d of %d parts", i, parts)
		}
		l.Allow("a")
	}
	if n := table.Stats(Now()).Expired; n != 0 {
		t.Errorf("single calls left %d of %d words", n, len(table.slots))
	}
	fill()
	l.AllowMany([]string{"a"}, make([]bool, 1))
	if n := table.Stats(Now()).Expired; n != 0 {
		t.Errorf("a list left %d of %d words", n, len(table.slots))
	}
	l.step = 1 << 40
	l.due.Store(0)
	l.AllowMany([]string{"a"}, make([]bool, 1))
	if due := l.due.Load(); due < 1<<40 {
		t.Errorf("the next part is due at %d ns", due)
	}
}
