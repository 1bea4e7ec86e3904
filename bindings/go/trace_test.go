package tatcell

import (
	"bytes"
	"fmt"
	"math/bits"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// The trace of firmware/rust/trace: one fixed stream of requests, and a digest of every answer and every state word.
// Boards and hosts print the same text. testdata/trace.txt is what the library prints; with TATCELL_TRACE set, that
// file is read instead. Here are all its sections but those of the small table, which only firmware has. The small
// cells have the words and the answers of others.
type trace struct {
	out                 *bytes.Buffer
	name                string
	planned, done, from uint64
	randoms, digest     uint64
	verdicts            [4]uint32
	full                [4]uint32
	counters            [10]uint64
}

func newTrace(out *bytes.Buffer, name string, planned, from uint64) *trace {
	return &trace{out: out, name: name, planned: planned, from: from, randoms: 0x74617463656c6c00, digest: 0x646967657374}
}

// random is splitmix64.
func (t *trace) random() uint64 {
	t.randoms += 0x9e3779b97f4a7c15
	return finalise(t.randoms)
}

func finalise(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// step moves a clock: mostly forwards by up to 2^bits ticks, now and then backwards, and once in 2048 to anywhere.
func (t *trace) step(now uint64, bits uint32) uint64 {
	r := t.random()
	dt := t.random() >> (64 - 1 - uint32(r)%bits)
	switch n := (r >> 32) % 2048; {
	case n == 0:
		return t.random()
	case n <= 40:
		return now - dt>>4
	}
	return now + dt
}

func (t *trace) cost(burst uint64) uint64 {
	r := t.random()
	cost := 1 + uint32(r>>8)%3
	switch n := r % 16; {
	case n == 0:
		cost = 0
	case n == 1:
		cost = uint32(r >> 8)
	case n == 2:
		cost = uint32(burst)
	case n <= 5:
		cost = uint32((r >> 8) % (burst + 2))
	}
	if t.done >= t.from {
		cost++
	}
	return uint64(cost)
}

func (t *trace) put(values ...uint64) {
	for _, value := range values {
		t.digest = (bits.RotateLeft64(t.digest, 5) ^ value) * 0x9e3779b97f4a7c15
	}
}

func (t *trace) verdict(v Verdict) {
	t.put(uint64(v))
	t.verdicts[v]++
}

func (t *trace) outcome(o Outcome) {
	t.verdict(o.Verdict)
	if o.Verdict == NonConforming {
		t.put(o.RetryAfter)
	}
}

func (t *trace) decision(d Decision) Permit {
	t.verdict(d.Verdict)
	t.full[d.Tracking]++
	t.put(uint64(d.Flags), uint64(d.Tracking), 0)
	t.put(d.Cost, d.Burst, d.Remaining, d.RetryAfter, d.NextUnit, d.ResetAfter, d.Departure)
	p := d.Permit
	t.put(p.tat, p.stored, p.tick, p.generation, uint64(p.epoch), uint64(p.slot))
	return p
}

func (t *trace) next() {
	if t.done++; t.done%(t.planned/8) == 0 {
		fmt.Fprintf(t.out, "%s %d %016x\n", t.name, t.done, t.digest)
	}
	if t.done == t.planned {
		v, f := t.verdicts, t.full
		fmt.Fprintf(t.out, "%s verdicts: %d pass, %d wait, %d never, %d contended\n", t.name, v[0], v[1], v[2], v[3])
		fmt.Fprintf(t.out, "%s full sets: %d untracked, %d inherited, %d forgiven\n", t.name, f[1], f[2], f[3])
	}
}

func everything(s Spec) Spec {
	s.Soft, s.MaxRoom, s.MaxDelay, s.MaxDebt = 4, 3, 300_000, 6
	return s
}

func pair(s Spec) [2]Spec {
	next := s
	next.Epoch = 1
	return [2]Spec{s, next}
}

func with(s Spec, option func(*Spec)) Spec {
	option(&s)
	return s
}

var wideSpecs = [][2]Spec{
	{everything(NewSpec(10, 1e9, 20).WithResolution(2)), everything(NewSpec(7, 1e9, 5).WithResolution(2))},
	pair(NewSpec(125_000_000, 1e9, 96_000)),
	pair(NewSpec(1, 86_400_000_000_000, 3)),
	pair(NewSpec(3, 1<<40, 9).WithSkew(1 << 44).WithResolution(-12)),
	pair(with(NewSpec(1_000, 1e9, 100).WithResolution(4), func(s *Spec) { s.Penalty = 2 })),
	{
		with(NewSpec(1, 300, 7).WithSkew(1<<30).WithResolution(9), func(s *Spec) { s.Heal = true }),
		with(NewSpec(1, 300, 7).WithSkew(1<<30).WithResolution(9), func(s *Spec) { s.Shadow = true }),
	},
}

var narrowSpecs = [][2]Spec{
	{everything(NewSpec(1, 100_000, 20).WithResolution(0)), everything(NewSpec(1, 70_000, 5).WithResolution(0))},
	pair(NewSpec(1, 1_000, 1_000)),
	pair(NewSpec(1, 1, 250)),
	pair(NewSpec(3, 1_000_000, 9).WithResolution(3)),
	pair(with(NewSpec(1, 5_000, 100).WithResolution(0), func(s *Spec) { s.Penalty = 2 })),
	pair(with(NewSpec(64, 1_000, 128).WithResolution(5), func(s *Spec) { s.Shadow = true })),
}

// narrowWord is the word of a cell of 32 bits, which only the trace has.
type narrowWord struct{ atomic.Uint32 }

func (w *narrowWord) Load() uint64 { return uint64(w.Uint32.Load()) }
func (w *narrowWord) CompareAndSwap(old, new uint64) bool {
	return w.Uint32.CompareAndSwap(uint32(old), uint32(new))
}

func (t *trace) cells(specs [][2]Spec, w width, step uint32, now, clock, mask uint64) {
	limits, words := make([][2]params, len(specs)), make([]word, len(specs))
	for i, pair := range specs {
		for j := range pair {
			var err error
			if limits[i][j], err = build(&pair[j], w); err != nil {
				panic(err)
			}
		}
		if words[i] = new(narrowWord); w.bits == 64 {
			words[i] = &new(Cell).word
		}
	}
	chosen, permits := make([]int, len(specs)), make([]Permit, len(specs))
	for t.done < t.planned {
		now = t.step(now, step) & clock
		r := t.random()
		key := int((r >> 8) % uint64(len(specs)))
		w, p := words[key], &limits[key][chosen[key]]
		cost := t.cost(p.burst)
		do := func(o op) { permits[key] = t.decision(decide(w, mask, &o, now)) }
		switch n := r % 32; {
		case n <= 3:
			do(op{p, check, cost, (r >> 16) % 5})
		case n == 4:
			do(op{p, charge, cost, 0})
		case n <= 6:
			_, back := refundWord(w, mask, p, now, &permits[key])
			t.put(back >> p.shl << p.shr)
			permits[key] = Permit{}
		case n <= 9:
			do(op{p, reserve, cost, 0})
		case n == 10:
			t.decision(peek(w, mask, p, now, cost))
		case n == 11 && r>>60 == 0:
			w.CompareAndSwap(w.Load(), 0)
		case n == 12 && r>>62 == 0:
			chosen[key] ^= 1
			how := []Change{KeepTime, KeepUnits, StartFull}[(r>>32)%3]
			changeWord(w, mask, p, &limits[key][chosen[key]], now, how)
			t.put(1)
		default:
			t.outcome(checkWord(w, mask, p, now, cost))
		}
		t.put(w.Load())
		t.next()
	}
}

// checkWord takes the short path of the public call, if the word is that of a Cell.
func checkWord(w word, mask uint64, p *params, now, cost uint64) Outcome {
	c, ok := w.(*atomic.Uint64)
	if !ok {
		return checkAgain(w, mask, p, now, cost)
	}
	cell := Cell{}
	cell.SetWord(c.Load())
	outcome := cell.Check(&Limit{*p}, now, cost)
	c.Store(cell.Word())
	return outcome
}

func shaped(units, period, burst, delay uint64) Spec {
	return with(NewSpec(units, period, burst), func(s *Spec) { s.MaxDelay = delay })
}

var wideSmall = []Spec{
	shaped(10, 1e9, 20, 300_000_000), shaped(125_000_000, 1e9, 96_000, 5_000), shaped(3, 1_000_000_007, 9, 1),
	shaped(1, 86_400_000_000_000, 3, 0),
}

var narrowSmall = []Spec{
	shaped(10, 1_000_000, 20, 300_000), shaped(1, 1_000, 1_000, 2_000), shaped(3, 1_000_000, 9, 1),
	shaped(64, 1_000, 128, 0),
}

func (t *trace) smallCells(specs []Spec, w width, step uint32, now, mask uint64) {
	limits, words := make([]params, len(specs)), make([]word, len(specs))
	for i := range specs {
		limits[i] = must(build(&specs[i], w))
		if words[i] = new(narrowWord); w.bits == 64 {
			words[i] = &new(Cell).word
		}
	}
	for t.done < t.planned {
		now = t.step(now, step) & mask
		r := t.random()
		key := (r >> 8) % uint64(len(specs))
		w, p := words[key], &limits[key]
		cost := t.cost(p.burst)
		switch n := r % 16; {
		case n <= 2:
			switch d := decide(w, mask, &op{p, reserve, cost, 0}, now); d.Verdict {
			case Conforming:
				t.put((d.Departure - now) & mask)
			default:
				// A small reservation does not compute when to try again.
				t.outcome(Outcome{Verdict: d.Verdict})
			}
		case n <= 5:
			t.outcome(checkWord(w, mask, p, now, 1))
		case n == 6:
			// A sweep of one cell.
			word := w.Load()
			if age := (p.now(now) - word) & mask; age > p.windowQ && age < -p.windowQ&mask {
				w.CompareAndSwap(word, 0)
			}
		default:
			t.outcome(checkWord(w, mask, p, now, cost))
		}
		t.put(w.Load())
		t.next()
	}
}

func traceOptions() (fast, slow Spec, o TableOptions) {
	fast, slow = NewSpec(1_000, 1e9, 12), NewSpec(100, 1e9, 6)
	fast.Soft, fast.MaxRoom, fast.MaxDelay, fast.MaxDebt = 8, 3, 9_000_000, 5
	slow.Epoch = 3
	seed := [16]byte{}
	copy(seed[:], "0123456789abcdef")
	return fast, slow, TableOptions{Fastest: fast, Slowest: &slow, Slots: 64, Seed: &seed}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

const traceKeys = 80

func (t *trace) table(policy Policy) {
	fast, slow, o := traceOptions()
	o.Policy, o.CallerHash = policy, true
	table := must(NewTable(o))
	limits := [2]*TableLimit{must(table.Limit(fast)), must(table.Limit(slow))}
	var permit Permit
	var permitHash uint64
	sweep, now := 0, uint64(1<<50)
	for t.done < t.planned {
		now = t.step(now, 18)
		r := t.random()
		key := (r >> 8) % traceKeys
		hash := bits.RotateLeft64((key+1)*0xd6e8feb86659fd93, 32)
		l := limits[0]
		if key%4 == 0 {
			l = limits[1]
		}
		cost := t.cost(l.Burst())
		do := func(o op) Permit {
			done := l.run(now, hash, o)
			d := l.decision(&done, now, o.cost)
			t.count(d, done.inserted)
			return t.decision(d)
		}
		switch n := r % 32; {
		case n <= 3:
			permit, permitHash = do(op{&l.p, check, cost, (r >> 16) % 5}), hash
		case n == 4:
			do(op{&l.p, charge, cost, 0})
		case n <= 6:
			back, _ := l.giveBack(now, permitHash, &permit)
			t.put(back)
			permit = Permit{}
		case n <= 9:
			permit, permitHash = do(op{&l.p, reserve, cost, 0}), hash
		case n == 10:
			t.decision(l.Peek(now, hash, cost))
		case n == 11 && r>>60 == 0:
			table.Reset(now, hash)
			t.put(1)
		case n == 12:
			sweep = table.Sweep(now, sweep, 5)
			t.put(uint64(sweep))
		case n == 13 && r>>60 == 0:
			s := table.Stats(now)
			t.put(s.Live*1_000_000/s.Slots, s.Slots, s.Live, s.Claims, s.Expired)
			t.put(s.Debt[:]...)
		case n == 14:
			t.put(nextLive(table, now, int((r>>8)%64)))
		default:
			t.outcome(l.Check(now, hash, cost))
		}
		t.next()
	}
	t.put(t.counters[:]...)
}

// count keeps the counters of the library: conforming, soft, shadow, non-conforming, never, contended, untracked,
// inherited, forgiven, inserted.
func (t *trace) count(d Decision, inserted bool) {
	for i, yes := range []bool{
		d.Verdict == Conforming && d.Flags&Shadow == 0, d.Flags&Soft != 0, d.Flags&Shadow != 0,
		d.Verdict == NonConforming, d.Verdict == Never, d.Verdict == Contended,
		d.Tracking == Untracked, d.Tracking == Inherited, d.Tracking == Forgiven, inserted,
	} {
		if yes {
			t.counters[i]++
		}
	}
}

func nextLive(t *Table, now uint64, from int) uint64 {
	for i := from; i < len(t.slots); i++ {
		word := t.slots[i]
		if lead := t.layout.lead(word, t.now(now)); lead != 0 && t.layout.isLive(word) {
			tag := word & t.layout.field >> t.layout.bits
			return ticksUp(lead, now, t.shl, t.shr) ^ tag<<32 ^ uint64(i)
		}
	}
	return most
}

func (t *trace) keyed() {
	fast, _, o := traceOptions()
	table := must(NewTable(o))
	l := must(table.Limit(fast))
	now := most - 1<<36
	for t.done < t.planned {
		now = t.step(now, 18)
		id := t.random() % traceKeys
		key := make([]byte, id%20+1)
		for i := range key {
			key[i] = byte(id) * byte(i+3)
		}
		t.outcome(l.Check(now, table.Hash(key), t.cost(l.Burst())))
		t.next()
	}
	image := table.Save(now)
	t.put(uint64(len(image)))
	t.put(image...)
}

func (t *trace) burst() {
	fast, _, o := traceOptions()
	table := must(NewTable(o))
	l := must(table.Limit(fast))
	now := uint64(1 << 40)
	for t.done < t.planned {
		now = t.step(now, 24)
		count := t.random() % 65
		var hashes, costs [64]uint64
		for i := range hashes[:count] {
			key := uint32(t.random() % 48)
			hashes[i] = table.Hash([]byte{byte(key >> 24), byte(key >> 16), byte(key >> 8), byte(key)})
			costs[i] = t.cost(3)
		}
		pass := uint64(0)
		for i := range hashes[:count] {
			if l.Check(now, hashes[i], costs[i]).Passes() {
				pass |= 1 << i
				t.verdicts[0]++
			} else {
				t.verdicts[1]++
			}
		}
		t.put(pass)
		t.next()
	}
}

// runTrace prints all sections. From request number `from` of each section on every cost is one higher.
func runTrace(from uint64) string {
	var out bytes.Buffer
	for _, name := range []string{"cell", "cell-exclusive"} {
		newTrace(&out, name, 24_000, from).cells(wideSpecs, cell64, 36, most-1<<44, most, most)
	}
	newTrace(&out, "cell32", 24_000, from).cells(narrowSpecs, cell32, 19, 1<<32-1-1<<25, 1<<32-1, 1<<32-1)
	for policy, name := range []string{"table-admit", "table-inherit", "table-deny", "table-sampled"} {
		for _, form := range []string{"shared", "exclusive"} {
			_ = form // Both print the same.
			newTrace(&out, name, 8_000, from).table(Policy(policy))
		}
	}
	newTrace(&out, "table-siphash", 24_000, from).keyed()
	newTrace(&out, "table-burst", 2_000, from).burst()
	for _, name := range []string{"small-cell", "small-cell-exclusive"} {
		newTrace(&out, name, 16_000, from).smallCells(wideSmall, cell64, 34, most-1<<42, most)
	}
	newTrace(&out, "small-cell32", 16_000, from).smallCells(narrowSmall, cell32, 19, 1<<32-1-1<<25, 1<<32-1)
	return out.String()
}

func TestTraceIsThatOfTheLibrary(t *testing.T) {
	path := "testdata/trace.txt"
	if own := os.Getenv("TATCELL_TRACE"); own != "" {
		path = own
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, line := range strings.SplitAfter(string(text), "\n") {
		other := strings.HasPrefix(line, "small-table") || strings.HasPrefix(line, "EVENTS")
		if !other && !strings.HasPrefix(line, "DIGEST") {
			want.WriteString(line)
		}
	}
	got := runTrace(most)
	if lines := strings.Count(got, "\n"); lines != 16*10 || got != want.String() {
		t.Errorf("%d lines; the trace differs:\n%s", lines, firstDifference(got, want.String()))
	}
}

// A comparison that cannot fail shows nothing.
func TestTraceChangesWithTheCosts(t *testing.T) {
	plain := make(map[string]bool)
	for _, line := range strings.Split(runTrace(most), "\n") {
		plain[line] = len(line) > 16 && !strings.Contains(line, ":")
	}
	for _, line := range strings.Split(runTrace(200), "\n") {
		if plain[line] {
			t.Error("higher costs left a digest as it was:", line)
		}
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return "got  " + g[i] + "\nwant " + strings.Join(w[i:i+1], "")
		}
	}
	return "the end is missing"
}
