package tatcell

import (
	"sync/atomic"
	"unsafe"
)

// Policy says what happens to a new key when all 16 slots of its set hold live keys.
type Policy uint8

const (
	Admit   Policy = iota // passes untracked: fails open and evicts no key
	Inherit               // takes over the smallest debt: fails closed and never over-admits
	Deny                  // is refused until a slot drains
	Sampled               // passes; one request in 16 takes over the smallest debt and forgives it
)

// TableOptions describes a new table.
type TableOptions struct {
	// Fastest is the limit of all keys, or the fastest of several.
	Fastest Spec
	// Slowest is the limit with the longest horizon, if keys have different limits.
	Slowest *Spec
	// Slots is the number of slots, rounded up to whole sets of 16. See SlotsForLoad.
	Slots int
	// Seed is the secret of the hash: random bytes, never a constant. Only a table whose caller hashes needs none.
	Seed *[16]byte
	// CallerHash lets the caller hash: then only the calls that take a hash work. Use a keyed hash.
	CallerHash bool
	Policy     Policy
	// TagBits is the width of the tag, 12 to 24; 0 is 20. A new key is mistaken for a live one with a chance of at most
	// 16 * 2^-TagBits. Each bit less doubles the span of the word.
	TagBits uint
	// TicksPerSecond is the frequency of the callers' clock, for those who read a saved image; 0 is unknown.
	TicksPerSecond uint64

	skew, lifetime optional[uint64]
	shift          optional[int8]
}

// WithSkew sets how far callers' clocks may be apart or step back, in ticks; see Spec.WithSkew.
func (o TableOptions) WithSkew(ticks uint64) TableOptions {
	o.skew = optional[uint64]{true, ticks}
	return o
}

// WithResolution fixes the unit of all words: 2^-shift ticks.
func (o TableOptions) WithResolution(shift int8) TableOptions {
	o.shift = optional[int8]{true, shift}
	return o
}

// WithClaimLifetime sets how long a goroutine that was stopped inside an insert keeps others from the slot, in ticks.
func (o TableOptions) WithClaimLifetime(ticks uint64) TableOptions {
	o.lifetime = optional[uint64]{true, ticks}
	return o
}

// Table decides requests for many keys in memory of a fixed size: 8 bytes a slot. A slot keeps a tag of the key's hash,
// not the key. A key whose debt has drained is the same as one that was never seen, so nothing is deleted. Any number
// of goroutines may use it at once.
type Table struct {
	slots   []uint64
	lines   uint64
	layout  layout
	shl     uint8
	shr     uint8
	policy  Policy
	hashes  bool
	seed    seed
	horizon uint64
	hz      uint64
}

// generation is that of a fresh table; permits carry it, and those of cells have 0.
const generation = 1

// tableWidth is the width of the words of a table.
func tableWidth(bits uint) width { return width{bits, 10, 3} }

// NewTable makes a table.
func NewTable(o TableOptions) (*Table, error) {
	if o.TagBits == 0 {
		o.TagBits = 20
	}
	if o.TagBits < 12 || o.TagBits > 24 {
		return nil, ErrBadTagBits
	}
	if o.Slots <= 0 {
		return nil, ErrTooSmall
	}
	lines := uint64(o.Slots+15) / 16 * 2
	if lines > 1<<32-1 {
		return nil, ErrTooLarge
	}
	if !o.CallerHash && o.Seed == nil {
		return nil, ErrMissingSeed
	}
	if o.Slowest == nil {
		o.Slowest = &o.Fastest
	}
	t, err := fit(&o)
	if err != nil {
		return nil, err
	}
	t.lines, t.slots = lines, alignedWords(lines*8)
	t.policy, t.hashes, t.hz = o.Policy, !o.CallerHash, o.TicksPerSecond
	if t.hashes {
		t.seed = newSeed(*o.Seed)
	}
	return t, nil
}

// alignedWords returns words that begin at a cache line.
func alignedWords(n uint64) []uint64 {
	words := make([]uint64, n+7)
	skip := -uintptr(unsafe.Pointer(&words[0])) / 8 % 8
	return words[skip : uint64(skip)+n : uint64(skip)+n]
}

// fit chooses the unit of the words. It starts at one tick, which is exact. Too short a span needs a coarser unit, too
// short an interval a finer one.
func fit(o *TableOptions) (*Table, error) {
	if o.shift.is {
		return fitAt(o, int(o.shift.value))
	}
	t, err := fitAt(o, 0)
	step, other := 0, Error("")
	switch err {
	case ErrSpanTooShort:
		step, other = -1, ErrNotRepresentable
	case ErrNotRepresentable:
		step, other = 1, ErrSpanTooShort
	default:
		return t, err
	}
	for s := step; s >= -62 && s <= 62; s += step {
		switch t, err = fitAt(o, s); err {
		case other:
			// No unit is fine enough for the fastest limit and coarse enough for the slowest.
			return nil, ErrSpanTooShort
		case ErrSpanTooShort, ErrNotRepresentable:
		default:
			return t, err
		}
	}
	return nil, ErrSpanTooShort
}

func fitAt(o *TableOptions, shift int) (*Table, error) {
	w := tableWidth(63 - o.TagBits)
	fast, err := tableParams(&o.Fastest, w, shift)
	if err != nil {
		return nil, err
	}
	slow, err := tableParams(o.Slowest, w, shift)
	if err != nil {
		return nil, err
	}
	least := min(fast.tq, slow.tq)
	if least < 1<<w.precision {
		return nil, ErrNotRepresentable
	}
	shl, shr := uint(fast.shl), uint(fast.shr)
	horizon := max(fast.horizonQ, slow.horizonQ)
	skew := defaultSkew(w.bits, shl, shr, horizon)
	if o.skew.is {
		skew = toQ(o.skew.value, shl, shr, true)
	}
	window := saturatingAdd(horizon, skew)
	if window > 1<<(w.bits-w.spare) || window >= 1<<(63-shr) {
		return nil, ErrSpanTooShort
	}
	lifetime := min(1<<shl, least/2)
	if o.lifetime.is {
		lifetime = toQ(o.lifetime.value, shl, shr, true)
	}
	// A claim must commit above itself: now + cost > now + G plus the few steps of dropped claims.
	if lifetime > least/2 {
		return nil, ErrBadLifetime
	}
	l := newLayout(o.TagBits, window, max(lifetime, 2))
	return &Table{layout: l, shl: fast.shl, shr: fast.shr, horizon: horizon}, nil
}

// tableParams makes the parameters at one resolution. The skew of the table applies, not that of the limit.
func tableParams(spec *Spec, w width, shift int) (params, error) {
	s := spec.WithSkew(0)
	p, err := paramsAt(&s, w, shift)
	switch {
	case err == ErrHorizonTooLong:
		err = ErrSpanTooShort
	case err == ErrNotRepresentable && shift > -62:
		// If the burst and not the rate fails to fit, a coarser unit solves it.
		one := Spec{Units: s.Units, Period: s.Period, Burst: 1, Heal: s.Heal, skew: s.skew}
		if _, tooFast := paramsAt(&one, width{64, 0, 1}, shift); tooFast == nil {
			err = ErrSpanTooShort
		}
	}
	return p, err
}

// TableLimit is a limit of one table: its calls decide.
type TableLimit struct {
	p params
	t *Table
}

// Limit makes a limit in the unit of this table. Different keys may have different limits, but each one key.
func (t *Table) Limit(spec Spec) (*TableLimit, error) {
	w := tableWidth(t.layout.bits)
	p, err := tableParams(&spec, w, int(t.shl)-int(t.shr))
	if err == ErrSpanTooShort {
		err = ErrLimitTooFast
	}
	if err != nil {
		return nil, err
	}
	// The claim lifetime and the rate error were chosen for the fastest limit of the options.
	if p.horizonQ > t.horizon || p.tq < 1<<w.precision || p.tq/2 < t.layout.lifetime {
		return nil, ErrLimitTooFast
	}
	p.windowQ = t.layout.window
	return &TableLimit{p, t}, nil
}

// Burst returns the most units that conform at one instant after idle.
func (l *TableLimit) Burst() uint64 { return l.p.burst }

// Table returns the table of the limit.
func (l *TableLimit) Table() *Table { return l.t }

// Slots returns the number of slots.
func (t *Table) Slots() int { return len(t.slots) }

// Hash hashes a key with the secret of the table. Tables of one seed give a key the same hash. It returns 0 if the
// caller hashes.
func (t *Table) Hash(key []byte) uint64 {
	if !t.hashes {
		return 0
	}
	return hash(t.seed, key)
}

// HashString hashes like Hash.
func (t *Table) HashString(key string) uint64 {
	if !t.hashes {
		return 0
	}
	return hash(t.seed, key)
}

func (t *Table) now(now uint64) uint64 { return now >> (t.shr & 63) << (t.shl & 63) }

func (t *Table) place(hash uint64) set {
	home := (hash >> 32) * t.lines >> 32
	next := home ^ 1
	return set{(*line)(t.slots[home*8:]), (*line)(t.slots[next*8:]), uint32(home)}
}

// Check decides one request of a key, given by its hash, and charges it if it conforms. Cost 0 peeks. now is the
// caller's clock in ticks, such as Now.
func (l *TableLimit) Check(now, hash, cost uint64) Outcome {
	t, p := l.t, &l.p
	if cost-1 < p.plain {
		nowQ, tag, home := t.now(now), t.layout.tag(hash), t.home(hash)
		if i, word := findIn(home, t.layout.mask, tag); i >= 0 {
			next := t.layout.lead(word, nowQ) + cost*p.tq
			if next > p.burstQ {
				return Outcome{NonConforming, p.ticksUp(next-p.burstQ, now)}
			}
			if atomic.CompareAndSwapUint64(&home[i&7], word, t.layout.live(tag, nowQ+next)) {
				return Outcome{}
			}
		}
	}
	d := l.run(now, hash, op{p, check, cost, 0})
	if d.contended {
		return Outcome{Verdict: Contended}
	}
	return d.outcome(p, now)
}

func (t *Table) home(hash uint64) *line {
	return (*line)(t.slots[(hash>>32)*t.lines>>32*8:])
}

// run runs an operation on the key of a hash.
func (l *TableLimit) run(now, hash uint64, o op) done {
	t := l.t
	nowQ := t.now(now)
	a := ask{set: t.place(hash), layout: &t.layout, policy: t.policy, tag: t.layout.tag(hash), nowQ: nowQ, op: o}
	// One request in 16, independent of set and tag.
	a.sample = (hash^nowQ)*0x9e3779b97f4a7c15>>60 == 0
	return a.run()
}

func (l *TableLimit) decide(now, hash uint64, o op) Decision {
	d := l.run(now, hash, o)
	return l.decision(&d, now, o.cost)
}

func (l *TableLimit) decision(d *done, now, cost uint64) Decision {
	if d.contended {
		return contended(&l.p, cost)
	}
	var permit Permit
	if d.tracking != Untracked {
		permit = d.permit(&l.p, place{now, l.t.layout.mask, generation, d.slot})
	}
	d.stored = d.charged
	return d.answer.decision(&l.p, now, cost, d.tracking, permit)
}

// Decide decides like Check and returns the full answer. The call may use room units above the burst, at most the
// MaxRoom of the limit.
func (l *TableLimit) Decide(now, hash, cost, room uint64) Decision {
	t, p := l.t, &l.p
	nowQ, tag, home := t.now(now), t.layout.tag(hash), t.home(hash)
	// One attempt, which is all that most known keys need.
	if i, word := findIn(home, t.layout.mask, tag); i >= 0 {
		s := p.check(t.layout.lead(word, nowQ), cost, room)
		if !s.stores || atomic.CompareAndSwapUint64(&home[i&7], word, t.layout.live(tag, nowQ+s.next)) {
			d := done{answer: s.answer, slot: uint32((hash>>32)*t.lines>>32*8) + uint32(i), charged: s.stored}
			return l.decision(&d, now, cost)
		}
	}
	return l.decide(now, hash, op{&l.p, check, cost, room})
}

// Charge charges after the fact, up to the burst plus the MaxDebt of the limit. It inserts an absent key.
func (l *TableLimit) Charge(now, hash, cost uint64) Decision {
	return l.decide(now, hash, op{&l.p, charge, cost, 0})
}

// Reserve reserves cost units for the earliest conforming instant, at most MaxDelay away: see Cell.Reserve.
func (l *TableLimit) Reserve(now, hash, cost uint64) Decision {
	return l.decide(now, hash, op{&l.p, reserve, cost, 0})
}

// Peek returns what Decide would, without charging it. A key whose insert is in progress counts as absent.
func (l *TableLimit) Peek(now, hash, cost uint64) Decision {
	t, lead := l.t, uint64(0)
	s := t.place(hash)
	if found := s.find(&t.layout, t.layout.tag(hash)); found.at >= 0 {
		lead = t.layout.lead(found.word, t.now(now))
	}
	a := l.p.peek(lead, cost)
	return a.decision(&l.p, now, cost, Tracked, Permit{}).peeked()
}

// Refund gives back what a permit proves was charged, has not drained since, and is still in the key's slot. So it
// gives back nothing under Sampled, and nothing after a reset. Units of the answer are those given back.
func (l *TableLimit) Refund(now, hash uint64, permit *Permit) Decision {
	back, ok := l.giveBack(now, hash, permit)
	if !ok {
		return contended(&l.p, 0)
	}
	return l.Peek(now, hash, 0).refunded(now, unitsOf(&l.p, 0, back))
}

// giveBack returns the q-units given back, or false if contended.
func (l *TableLimit) giveBack(now, hash uint64, permit *Permit) (uint64, bool) {
	t := l.t
	o := l.p.credit(permit, generation, now, t.layout.mask)
	s := t.place(hash)
	if o.amount == 0 || t.policy == Sampled || permit.slot>>4 != s.line>>1 {
		return 0, true
	}
	nowQ, tag, slot := t.now(now), t.layout.tag(hash), &t.slots[permit.slot]
	for lost := 0; lost < maxLost; lost++ {
		word := atomic.LoadUint64(slot)
		if !t.layout.isLiveOf(word, tag) {
			return 0, true
		}
		step := o.step(t.layout.lead(word, nowQ))
		if !step.stores || atomic.CompareAndSwapUint64(slot, word, t.layout.live(tag, nowQ+step.next)) {
			return step.stored, true
		}
	}
	return 0, false
}

// Change moves one key from this limit to another one of the same table, from now on; an absent key stays absent. It
// returns false if it is contended: try again. Give the new limit another Epoch. It panics if the other limit is of
// another table, which would misread the slots.
func (l *TableLimit) Change(to *TableLimit, now, hash uint64, how Change) bool {
	if l.t != to.t {
		panic("tatcell: the two limits are of different tables")
	}
	if how == StartFull {
		return l.t.Reset(now, hash)
	}
	t := l.t
	nowQ, tag := t.now(now), t.layout.tag(hash)
	return t.update(hash, func(word uint64) (uint64, bool) {
		lead := t.layout.lead(word, nowQ)
		// Not to before the claim that took the slot: a stalled goroutine could take a later claim for its own.
		next := max(l.p.changed(&to.p, lead, now, how), min(lead, t.layout.grace+2))
		return t.layout.live(tag, nowQ+next), lead != 0 && next != lead
	})
}

// Reset makes a key full again at once. It returns false if it is contended: try again. The slot keeps a tombstone
// until the debt that it held has drained.
func (t *Table) Reset(now, hash uint64) bool {
	nowQ := t.now(now)
	return t.update(hash, func(word uint64) (uint64, bool) {
		return t.layout.tombstone(word), t.layout.lead(word, nowQ) != 0
	})
}

// update changes the live word of a key, if there is one; never inserts. It returns false if contended.
func (t *Table) update(hash uint64, next func(uint64) (uint64, bool)) bool {
	s, tag := t.place(hash), t.layout.tag(hash)
	for lost := 0; lost < maxLost; lost++ {
		// Searches again each time: the winner of the swap may have moved the key.
		found := s.find(&t.layout, tag)
		if found.at < 0 {
			return true
		}
		word, stores := next(found.word)
		if !stores || atomic.CompareAndSwapUint64(s.slot(found.at), found.word, word) {
			return true
		}
	}
	return false
}

// Sweep empties expired slots among count slots from number from; it returns the number to continue from, 0 after the
// last. Needed once in each SweepInterval, or a key that was away for that long may, for a small share of idle times,
// meet a debt that it does not have. Changes no decision.
func (t *Table) Sweep(now uint64, from, count int) int {
	nowQ, end := t.now(now), from+count
	if end >= len(t.slots) {
		end = len(t.slots)
	}
	for i := from; i < end; i++ {
		if word := atomic.LoadUint64(&t.slots[i]); t.layout.isSweepable(word, nowQ) {
			// If a newer word wins, the slot is in use again.
			atomic.CompareAndSwapUint64(&t.slots[i], word, t.layout.swept(nowQ))
		}
	}
	if end == len(t.slots) {
		return 0
	}
	return end
}

// SweepInterval returns the ticks within which every slot should be swept once.
func (t *Table) SweepInterval() uint64 {
	ticks := (t.layout.mask - 2*t.layout.window) >> t.shl
	if ticks>>(64-t.shr) != 0 {
		return most
	}
	return ticks << t.shr
}

// Stats sums up the slots of a table.
type Stats struct {
	Slots    uint64    // all of them
	Live     uint64    // slots with a key that owes something
	Claims   uint64    // inserts in progress, or abandoned and not yet reused
	Expired  uint64    // slots whose key has drained: as good as empty
	FullSets uint64    // sets of 16 slots of which a new key could take none: there the policy decides
	Longest  uint64    // the longest debt, in ticks
	Debt     [8]uint64 // live slots by debt: element k counts those in (H / 2^(k+1), H / 2^k], the last all smaller ones
}

// Stats scans all slots; each word is as of the moment of its load.
func (t *Table) Stats(now uint64) Stats {
	nowQ, longest, taken := t.now(now), uint64(0), 0
	s := Stats{Slots: uint64(len(t.slots))}
	for i := range t.slots {
		word := atomic.LoadUint64(&t.slots[i])
		if !t.layout.isReusable(word, nowQ) {
			taken++
		}
		if i%16 == 15 {
			if taken == 16 {
				s.FullSets++
			}
			taken = 0
		}
		lead := t.layout.lead(word, nowQ)
		switch {
		case t.layout.isClaim(word):
			s.Claims++
		case t.layout.isLive(word) && lead != 0:
			s.Live++
			longest = max(longest, lead)
			k := 0
			for above := t.horizon / 2; k < 7 && lead <= above; above /= 2 {
				k++
			}
			s.Debt[k]++
		case t.layout.isLive(word):
			s.Expired++
		}
	}
	s.Longest = ticksUp(longest, now, t.shl, t.shr)
	return s
}

// Save returns an image of the table in the format of the library: two lines of header, then the slots, without what
// has expired. Each word is as of the moment of its load. The library restores it, and its tools read it.
func (t *Table) Save(now uint64) []uint64 {
	image := make([]uint64, 16, 16+len(t.slots))
	shift, hashes, check := uint64(uint8(int8(t.shl)-int8(t.shr))), uint64(1), uint64(0)
	if t.hashes {
		hashes, check = 0, hash(t.seed, "tatcell seed check")
	}
	image[0] = 0x74617463656c0002 // "tatcel", layout version 2
	image[1] = t.lines<<32 | uint64(63-t.layout.bits)<<24 | shift<<16 | hashes<<8 | uint64(t.policy)<<4
	image[2], image[3], image[4] = t.horizon, t.layout.window, t.layout.lifetime
	image[5], image[8], image[9] = check, generation, t.hz
	nowQ := t.now(now)
	for i := range t.slots {
		word := atomic.LoadUint64(&t.slots[i])
		switch {
		case t.layout.lead(word, nowQ) == 0:
			word = 0
		case t.layout.isLive(word):
		case isTakeover(word):
			word &= t.layout.mask
		default:
			word = 0
		}
		image = append(image, word)
	}
	return image
}
