package tatcell

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand"
	"net/netip"
	"os"
	"os/exec"
	"testing"
)

// TestCallsAreAnsweredAsByTheLibrary sends random calls to a program that is linked with the library (oracle/), whose
// path is in TATCELL_ORACLE, and compares each answer with that of this package. Calls and answers are words; see
// there.

type call [16]uint64
type reply [20]uint64

// world is the state behind the calls: what they refer to by number.
type world struct {
	*rand.Rand
	specs   []Spec
	limits  []*Limit // nil if the spec is none of a cell
	cells   [8]Cell
	permits [8]Permit
	of      [8]int // which spec each cell has
	last    Decision
	lastOf  int

	tables []*Table
	scopes []scope
	debts  map[[2]uint64]Permit
	kinds  map[string]int
}

// scope is a table, and the limits by number with which its keys are checked.
type scope struct {
	table  int
	limits []int
	byNo   map[int]*TableLimit
	hashes []uint64
	now    uint64
	swept  int
}

// clock moves a time on: mostly by little, sometimes by much, back, or anywhere.
func (w *world) clock(now *uint64, unit uint64) uint64 {
	switch n := w.Intn(400); {
	case n == 0:
		*now = w.Uint64()
	case n < 12:
		*now -= w.Uint64() % (unit/4 + 1)
	case n < 30:
		*now += w.Uint64() % (64*unit + 1)
	default:
		*now += w.Uint64() % (unit/2 + 2)
	}
	return *now
}

func (w *world) small(most uint64) uint64 { return w.Uint64() >> (w.Intn(64)) % (most + 1) }

// wide returns a number of any size.
func (w *world) wide() uint64 { return w.Uint64() >> w.Intn(64) }

func (w *world) spec() (Spec, call) {
	s := NewSpec(1+w.small(1<<20), 1+w.wide()>>w.Intn(40), 1+w.small(1<<10))
	if w.Intn(3) == 0 {
		s.Units, s.Period = []uint64{1, 10, 1000, 1e6}[w.Intn(4)], []uint64{1000, 1e6, 1e9, 60e9}[w.Intn(4)]
	}
	option := func(to *uint64, value uint64) {
		if w.Intn(3) == 0 {
			*to = value
		}
	}
	option(&s.Soft, w.small(s.Burst+1))
	option(&s.MaxRoom, w.small(20))
	option(&s.MaxDelay, w.small(s.Period))
	option(&s.MaxDebt, w.small(20))
	option(&s.Penalty, w.small(3))
	s.Heal, s.Shadow, s.StrictRefunds = w.Intn(10) == 0, w.Intn(10) == 0, w.Intn(4) == 0
	s.Epoch = uint32(w.Intn(3))
	if w.Intn(30) == 0 {
		s.Units, s.Burst = w.wide(), w.wide()
	}
	if w.Intn(4) == 0 {
		s = s.WithSkew(w.small(1 << 40))
	}
	if w.Intn(3) == 0 {
		s = s.WithResolution(int8(w.Intn(40) - 20))
	}
	c := call{0, uint64(len(w.specs)), s.Units, s.Period, s.Burst, s.Soft, s.MaxRoom, s.MaxDelay, s.MaxDebt, s.Penalty}
	for i, yes := range []bool{s.Heal, s.Shadow, s.StrictRefunds} {
		if yes {
			c[10] |= 1 << i
		}
	}
	c[11] = uint64(s.Epoch)
	if s.skew.is {
		c[12], c[13] = c[12]|1, s.skew.value
	}
	if s.shift.is {
		c[12], c[14] = c[12]|2, uint64(int64(s.shift.value))
	}
	return s, c
}

var codes = []error{
	nil, ErrZeroRate, ErrZeroPeriod, ErrZeroBurst, ErrNotRepresentable, ErrHorizonTooLong, ErrBadResolution, ErrBadSoft,
	ErrBadHeal, ErrTooSmall, ErrTooLarge, ErrSpanTooShort, ErrBadTagBits, ErrBadLifetime, ErrLimitTooFast,
}

func code(err error) reply {
	for i, known := range codes {
		if err == known {
			return reply{uint64(i)}
		}
	}
	return reply{99}
}

// newSpec makes a spec; it may be none that a word can hold.
func (w *world) newSpec() (int, call, reply) {
	s, c := w.spec()
	limit, err := s.Limit()
	w.specs, w.limits = append(w.specs, s), append(w.limits, limit)
	r := code(err)
	if err == nil {
		p := &limit.p
		shifts := uint64(p.shl)<<8 | uint64(p.shr)
		r = reply{0, shifts, p.burst, p.room, p.tq, p.burstQ, p.horizonQ, p.windowQ, p.softQ, p.delayQ, p.debtQ, p.penaltyQ}
	}
	return len(w.specs) - 1, c, r
}

func words(d Decision, word uint64) reply {
	in := uint64(0)
	if d.InDebt {
		in = 1
	}
	p := d.Permit
	return reply{
		uint64(d.Verdict), uint64(d.Flags), uint64(d.Tracking), d.Cost, d.Burst, d.Remaining, d.RetryAfter, d.NextUnit,
		d.ResetAfter, d.Departure, d.Units, in, p.tat, p.stored, p.tick, p.generation, uint64(p.epoch), uint64(p.slot), word,
	}
}

func truth(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}

func retry(o Outcome) uint64 {
	if o.Verdict == Never {
		return most
	}
	return o.RetryAfter
}

func (w *world) cost(burst uint64) uint64 {
	switch w.Intn(12) {
	case 0:
		return 0
	case 1:
		return w.wide()
	case 2:
		return burst
	case 3:
		return burst + 1 + w.small(4)
	case 4, 5:
		return w.small(burst)
	}
	return 1 + w.small(2)
}

func (w *world) cell(now *uint64) (call, reply) {
	i := w.Intn(len(w.cells))
	c, limit := &w.cells[i], w.limits[w.of[i]]
	at := w.clock(now, limit.p.ticksUp(limit.p.tq, 0))
	cost, how := w.cost(limit.Burst()), w.Intn(16)
	if how > 7 {
		how = w.Intn(2)
	}
	n := call{1, uint64(i), uint64(w.of[i]), at, cost, uint64(how)}
	w.kinds[fmt.Sprint("cell ", how)]++
	var d Decision
	switch how {
	case 0:
		o := c.Check(limit, at, cost)
		w.kinds["cell "+o.Verdict.String()]++
		return n, reply{uint64(o.Verdict), retry(o), c.Word()}
	case 1:
		n[6] = uint64(w.Intn(6))
		d = c.Decide(limit, at, cost, n[6])
	case 2:
		d = c.Charge(limit, at, cost)
	case 3:
		d = c.Refund(limit, at, &w.permits[i])
		w.kinds["cell refund of something"] += int(min(d.Units, 1))
	case 4:
		d = c.Reserve(limit, at, cost)
	case 5:
		d = c.Peek(limit, at, cost)
	case 6:
		c.Reset()
		return n, reply{}
	case 7:
		to := w.Intn(len(w.limits))
		for w.limits[to] == nil {
			to = w.Intn(len(w.limits))
		}
		change := w.Intn(3)
		n[6] = uint64(to)<<8 | uint64(change)
		done := c.Change(limit, w.limits[to], at, []Change{KeepTime, KeepUnits, StartFull}[change])
		w.of[i] = to
		return n, reply{truth(done), c.Word()}
	}
	if how != 5 {
		w.permits[i] = d.Permit
	}
	w.last, w.lastOf = d, w.of[i]
	return n, words(d, c.Word())
}

// newTable makes a table, if these options make one.
func (w *world) newTable() (call, reply, bool) {
	fast, slow := w.Intn(len(w.specs)), w.Intn(len(w.specs))
	if w.Intn(2) == 0 {
		slow = fast
	}
	c := call{2, uint64(len(w.tables)), uint64(fast), uint64(slow), 1 + w.small(96)}
	c[5], c[6] = uint64(w.Intn(4)), uint64(w.Intn(15)+11)
	o := TableOptions{Fastest: w.specs[fast], Slowest: &w.specs[slow], Slots: int(c[4]), Policy: Policy(c[5])}
	o.TagBits, o.TicksPerSecond = uint(c[6]), 1e9
	if w.Intn(3) == 0 {
		c[7] = 1 + w.small(1<<36)
		o = o.WithSkew(c[7] - 1)
	}
	if w.Intn(4) == 0 {
		c[8] = 1 + w.small(1<<12)
		o = o.WithClaimLifetime(c[8] - 1)
	}
	if w.Intn(4) == 0 {
		shift := w.Intn(20) - 10
		c[9] = uint64(100 + shift)
		o = o.WithResolution(int8(shift))
	}
	if o.CallerHash = w.Intn(2) == 0; o.CallerHash {
		c[10] = 1
	}
	o.Seed = new([16]byte)
	copy(o.Seed[:], "0123456789abcdef")
	t, err := NewTable(o)
	w.tables = append(w.tables, t)
	if t != nil {
		w.scopes = append(w.scopes, scope{table: len(w.tables) - 1, byNo: map[int]*TableLimit{}, now: w.Uint64()})
	}
	return c, code(err), t != nil
}

func (w *world) newTableLimit(s *scope, number int) (call, reply) {
	of := w.Intn(len(w.specs))
	l, err := w.tables[s.table].Limit(w.specs[of])
	if err == nil {
		s.limits, s.byNo[number] = append(s.limits, number), l
	}
	return call{3, uint64(s.table), uint64(of), uint64(number)}, code(err)
}

func (w *world) key(s *scope) (call, reply) {
	t := w.tables[s.table]
	if !t.hashes {
		s.hashes = append(s.hashes, w.Uint64())
		return w.prefix()
	}
	key := make([]byte, w.Intn(40))
	w.Read(key)
	hash := t.Hash(key)
	if hash != t.HashString(string(key)) {
		panic("a string hashes otherwise than its bytes")
	}
	s.hashes = append(s.hashes, hash)
	return withText(5, uint64(s.table), key), reply{hash}
}

func withText(op, n uint64, text []byte) call {
	c := call{op, n, uint64(len(text))}
	for i, b := range text {
		c[3+i/8] |= uint64(b) << (i % 8 * 8)
	}
	return c
}

func textReply(text string) reply {
	r := reply{uint64(len(text))}
	for i := range []byte(text) {
		r[1+i/8] |= uint64(text[i]) << (i % 8 * 8)
	}
	return r
}

// poke stores a word in a slot: a claim, a debt, a tombstone or anything, of a key that is in use, near now. So the
// calls that follow meet what stalled and rival goroutines leave.
func (w *world) poke(s *scope) (call, reply) {
	t := w.tables[s.table]
	hash := s.hashes[w.Intn(len(s.hashes))]
	set := t.place(hash)
	number := set.number(w.Intn(16))
	payload := t.now(s.now) + w.small(2*t.layout.window) - w.small(4)
	if w.Intn(2) == 0 {
		payload = t.now(s.now) + w.small(30)
	}
	word := []uint64{0, claimBit}[w.Intn(2)] | []uint64{0, t.layout.tag(hash)}[w.Intn(2)] | payload&t.layout.mask
	if w.Intn(20) == 0 {
		word = w.Uint64()
	}
	t.slots[number] = word
	w.kinds["poke"]++
	return call{10, uint64(s.table), uint64(number), word}, reply{}
}

func (w *world) table(s *scope) (call, reply) {
	if w.Intn(8) == 0 {
		return w.poke(s)
	}
	number := s.limits[w.Intn(len(s.limits))]
	l, t := s.byNo[number], w.tables[s.table]
	hash := s.hashes[w.Intn(len(s.hashes))]
	now := w.clock(&s.now, l.p.ticksUp(l.p.tq, 0)/8)
	cost, how := w.cost(l.Burst()), w.Intn(24)
	if how > 9 {
		how = w.Intn(2)
	}
	if how == 9 && w.Intn(4) == 0 {
		how = 10
	}
	c := call{4, uint64(number), hash, now, cost, uint64(how)}
	w.kinds[fmt.Sprint("table ", how)]++
	var d Decision
	id := [2]uint64{uint64(s.table), hash}
	switch how {
	case 0:
		o := l.Check(now, hash, cost)
		w.kinds["table "+o.Verdict.String()]++
		return c, reply{uint64(o.Verdict), retry(o)}
	case 1:
		c[6] = uint64(w.Intn(6))
		d = l.Decide(now, hash, cost, c[6])
	case 2:
		d = l.Charge(now, hash, cost)
	case 3:
		permit := w.debts[id]
		d = l.Refund(now, hash, &permit)
		w.kinds["table refund of something"] += int(min(d.Units, 1))
	case 4:
		d = l.Reserve(now, hash, cost)
	case 5:
		d = l.Peek(now, hash, cost)
	case 6:
		return c, reply{truth(t.Reset(now, hash))}
	case 7:
		to, change := s.limits[w.Intn(len(s.limits))], w.Intn(3)
		c[6] = uint64(to)<<8 | uint64(change)
		return c, reply{truth(l.Change(s.byNo[to], now, hash, []Change{KeepTime, KeepUnits, StartFull}[change]))}
	case 8:
		c[4], c[6] = uint64(s.swept), uint64(w.Intn(9))
		s.swept = t.Sweep(now, s.swept, int(c[6]))
		return c, reply{uint64(s.swept)}
	case 9:
		n := t.Stats(now)
		return c, reply{n.Slots, n.Live, n.Claims, n.Expired, n.FullSets, n.Longest, n.Debt[0], n.Debt[7]}
	default:
		sum := uint64(0)
		for _, word := range t.Save(now) {
			sum = (bits.RotateLeft64(sum, 5) ^ word) * 0x9e3779b97f4a7c15
		}
		return c, reply{sum, t.SweepInterval()}
	}
	w.kinds[fmt.Sprint("tracking ", d.Tracking)]++
	if how != 5 {
		w.debts[id] = d.Permit
	}
	return c, words(d, 0)
}

var pieces = []string{
	"1", "10", "0", "25", ".", "/", " ", "s", "m", "k", "K", "M", "Ki", "Gi", "T", "B", "r", "burst", "=",
	"min", "hours", "d", "ns", "us", "ms", "secs", "days", "weeks", "18446744073709551615", "0.5", "1.5", "9999999999",
	"\t", "\x00", "é", "ss", "S",
}

// text makes texts that are nearly limits.
func (w *world) text() (call, reply) {
	text, hz := "", []uint64{1, 1000, 1e9, most, 0}[w.Intn(5)]
	switch w.Intn(3) {
	case 0:
		for i := w.Intn(9); i >= 0; i-- {
			text += pieces[w.Intn(len(pieces))]
		}
	case 1:
		text = []string{"10/s burst 20", "1.5MiB/15minutes burst=64KiB", "0.5 / 2h", "100r/m"}[w.Intn(4)]
		at := w.Intn(len(text) + 1)
		text = text[:at] + pieces[w.Intn(len(pieces))] + text[at+w.Intn(len(text)-at+1):]
	default:
		unit := []string{"ns", "us", "ms", "s", "m", "h", "d", "w", "hour", "mins"}[w.Intn(10)]
		prefix := func() string { return pieces[8+w.Intn(9)] }
		text = fmt.Sprintf("%d%s/%d%s burst %d%s", w.wide(), prefix(), 1+w.small(99), unit, w.small(1<<20), prefix())
	}
	if len(text) > 104 {
		text = text[:104]
	}
	s, err := ParseSpec(text, hz)
	c, parse := withText(6, hz, []byte(text)), (*ParseError)(nil)
	w.kinds[fmt.Sprint("text is a limit: ", err == nil)]++
	if errors.As(err, &parse) {
		if text != string([]rune(text)) {
			return c, reply{98}
		}
		return c, reply{1 + uint64(parse.what), uint64(parse.Position)}
	}
	return c, reply{0, s.Units, s.Period, s.Burst}
}

func (w *world) fields() (call, reply) {
	hz := []uint64{1, 1000, 1e9}[w.Intn(3)]
	m := must(newFieldMaker(`a "b"`, &w.limits[w.lastOf].p, hz))
	text := ""
	f := m.Of(&w.last)
	all := [][2]string{{"RateLimit-Policy", f.Policy}, {"RateLimit", f.Limit}, {"Retry-After", f.RetryAfter}}
	for _, field := range all {
		if field[1] != "" {
			text += field[0] + ": " + field[1] + "\r\n"
		}
	}
	return call{7, uint64(w.lastOf), hz}, textReply(text + ".")
}

func (w *world) prefix() (call, reply) {
	b := make([]byte, 4+w.Intn(2)*12)
	w.Read(b)
	if len(b) == 16 {
		starts := [][]byte{
			{}, {0x20, 2}, {0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff},
		}
		copy(b, starts[w.Intn(4)])
	}
	address, _ := netip.AddrFromSlice(b)
	v4, v6 := w.Intn(33), w.Intn(129)
	return withText(8, uint64(v4)|uint64(v6)<<8, b), textReply(AddressKey(address, v4, v6))
}

// calls makes n calls and their answers.
func (w *world) calls(n int, take func(call, reply)) {
	for i := 0; i < 40; i++ {
		_, c, r := w.newSpec()
		take(c, r)
	}
	valid := func() int {
		for {
			if i := w.Intn(len(w.limits)); w.limits[i] != nil {
				return i
			}
		}
	}
	for i := range w.of {
		w.of[i] = valid()
	}
	now, numbers := w.Uint64(), 0
	var s *scope
	for ; n > 0; n-- {
		switch {
		case n%5000 == 0:
			// Other limits, and another table.
			for i := 0; i < 20; i++ {
				_, c, r := w.newSpec()
				take(c, r)
			}
			for i := range w.of {
				w.of[i] = valid()
			}
			for found := false; !found; {
				var c call
				var r reply
				c, r, found = w.newTable()
				take(c, r)
				if found {
					s = &w.scopes[len(w.scopes)-1]
					for tries := 0; tries < 20 && len(s.limits) < 3; tries++ {
						numbers++
						take(w.newTableLimit(s, numbers))
					}
					found = len(s.limits) > 0
				}
			}
			for i := 0; i < 60; i++ {
				take(w.key(s))
			}
		case s == nil || w.Intn(3) == 0:
			take(w.cell(&now))
		case w.Intn(50) == 0:
			take(w.text())
		case w.Intn(50) == 0:
			take(w.fields())
		case w.Intn(50) == 0:
			take(w.prefix())
		default:
			take(w.table(s))
		}
	}
	for _, keys := range []uint64{1, 16, 1000, 100_000, 123_456_789} {
		take(call{9, keys, 1000}, reply{uint64(SlotsForLoad(int(keys), 1000))})
	}
}

func TestCallsAreAnsweredAsByTheLibrary(t *testing.T) {
	oracle := os.Getenv("TATCELL_ORACLE")
	if oracle == "" {
		t.Skip("TATCELL_ORACLE names no program: run make test in bindings/go")
	}
	const count = 1_200_000
	w := &world{Rand: rand.New(rand.NewSource(29)), debts: map[[2]uint64]Permit{}, kinds: map[string]int{}}
	program := exec.Command(oracle)
	program.Stderr = os.Stderr
	in, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	type pair struct {
		call
		reply
	}
	expected := make(chan pair, 1<<16)
	go func() {
		defer close(expected)
		to := bufio.NewWriterSize(in, 1<<20)
		w.calls(count, func(c call, r reply) {
			var raw [128]byte
			for i, word := range c {
				binary.LittleEndian.PutUint64(raw[i*8:], word)
			}
			to.Write(raw[:])
			expected <- pair{c, r}
			if len(expected) == cap(expected) {
				to.Flush()
			}
		})
		to.Flush()
		in.Close()
	}()
	from, n, wrong := bufio.NewReaderSize(out, 1<<20), 0, 0
	for e := range expected {
		var got reply
		if err := binary.Read(from, binary.LittleEndian, &got); err != nil {
			t.Fatalf("the oracle ended at call %d: %v: %v", n, e.call, err)
		}
		if n++; got != e.reply {
			if wrong++; wrong <= 5 {
				t.Errorf("call %d, %v:\nlibrary %v\nGo      %v", n, e.call, got, e.reply)
			}
		}
	}
	if err := program.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%d calls, %d answered otherwise", n, wrong)
	for kind, times := range w.kinds {
		t.Logf("%8d %s", times, kind)
	}
	for _, kind := range []string{
		"cell non-conforming", "cell never", "cell refund of something", "table non-conforming", "table refund of something",
		"tracking 1", "tracking 2", "tracking 3", "text is a limit: true",
	} {
		if w.kinds[kind] < 100 {
			t.Errorf("%d calls of the kind %q: too few to show anything", w.kinds[kind], kind)
		}
	}
}
