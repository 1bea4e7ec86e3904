package tatcell

import (
	"errors"
	"fmt"
	"math"
	"strings"
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

func TestAnEmptyLimiterSaysHowToMakeOne(t *testing.T) {
	for name, call := range map[string]func(*Limiter){
		"Allow":     func(l *Limiter) { l.Allow("a") },
		"AllowMany": func(l *Limiter) { l.AllowMany([]string{"a"}, make([]bool, 1)) },
		"Hit":       func(l *Limiter) { l.Hit("a", 1) },
		"Refund":    func(l *Limiter) { l.Refund("a", &Decision{}) },
	} {
		func() {
			defer func() {
				if says := fmt.Sprint(recover()); !strings.Contains(says, "make one by New") {
					t.Errorf("%s: %s", name, says)
				}
			}()
			call(new(Limiter))
		}()
	}
}

// The hour of the limit is longer than any run of this test.
// Who gives one limit and makes no table must read of neither two limits nor of tables.
func TestALimitThatDoesNotFitSaysWhatDoes(t *testing.T) {
	for text, want := range map[string]string{
		"1000000000/s":           "1000000000 units in 1000000000 ns, burst 1000000000: at this rate a burst of at most ",
		"1/h burst 900000000000": "lower the burst, or the rate",
	} {
		_, err := New(text, 1000)
		says := fmt.Sprint(err)
		if !errors.Is(err, ErrSpanTooShort) || !strings.Contains(says, want) || strings.Contains(says, "table") {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, err := New("1000000000/s", 1000)
	var most uint64
	if _, scan := fmt.Sscanf(err.Error()[strings.Index(err.Error(), "at most"):], "at most %d", &most); scan != nil {
		t.Fatal(err)
	}
	for burst, fits := range map[uint64]bool{most: true, most + 1: false} {
		if _, err := New(fmt.Sprintf("1000000000/s burst %d", burst), 1000); (err == nil) != fits {
			t.Errorf("burst %d: %v", burst, err)
		}
	}
}

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
