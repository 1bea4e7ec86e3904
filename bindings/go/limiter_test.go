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
