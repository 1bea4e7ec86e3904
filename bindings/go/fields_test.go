package tatcell

import (
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
