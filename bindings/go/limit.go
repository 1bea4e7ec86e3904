package tatcell

import "math/bits"

// Spec describes a limit with its options, before it is validated for a word: Units per Period ticks, and at most Burst
// units at one instant after idle, the first one included. NewSpec and ParseSpec make one; set the other fields, or
// leave them 0.
type Spec struct {
	Units, Period, Burst uint64

	Soft     uint64 // units of debt above which a request that passes has the flag Soft
	MaxRoom  uint64 // the most units of elastic room that a call may ask for
	MaxDelay uint64 // ticks by which a reservation may lie ahead
	MaxDebt  uint64 // units above the burst that Charge may build up
	Penalty  uint64 // denied requests are charged too, until the debt is this many units above the burst
	Epoch    uint32 // permits carry it; a permit of another epoch gives nothing back

	Heal          bool // takes a word that is impossibly far ahead for a full debt of one burst
	Shadow        bool // passes what the limit would deny, flagged and uncharged; see Cell.Reserve
	StrictRefunds bool // makes refunds of several permits of one key safe in any order

	skew  optional[uint64]
	shift optional[int8]
}

type optional[T any] struct {
	is    bool
	value T
}

// NewSpec starts a specification. A Period in nanoseconds fits the clock of Now.
func NewSpec(units, period, burst uint64) Spec {
	return Spec{Units: units, Period: period, Burst: burst}
}

// WithSkew sets by how many ticks the clock may step back, or lie behind that of another caller. A reading that is
// older forgives the debt of the word. State it for wall clocks and coarse ticks, of which the default is days and
// more.
func (s Spec) WithSkew(ticks uint64) Spec {
	s.skew = optional[uint64]{true, ticks}
	return s
}

// WithResolution fixes the unit of state words: 2^-shift ticks. Limits that are exchanged for one another under traffic
// must have the same one.
func (s Spec) WithResolution(shift int8) Spec {
	s.shift = optional[int8]{true, shift}
	return s
}

// Limit is a validated limit for a Cell.
type Limit struct{ p params }

// NewLimit makes a limit of units per period ticks and the given burst.
func NewLimit(units, period, burst uint64) (*Limit, error) {
	return NewSpec(units, period, burst).Limit()
}

// Limit validates the specification for a cell. It never rounds to another limit: what a word cannot hold is an Error.
func (s Spec) Limit() (*Limit, error) {
	p, err := build(&s, cell64)
	if err != nil {
		return nil, err
	}
	return &Limit{p}, nil
}

// Burst returns the most units that conform at one instant after idle.
func (l *Limit) Burst() uint64 { return l.p.burst }

// params is the fixed-point form of a limit, with every division done. A q-unit is 2^-s ticks, shl is s if that is
// positive, and shr is -s if not. All sums and products of a decision fit 64 bits: D < 2^62 and H + S < 2^63.
type params struct {
	tq      uint64 // T: ceil(period * 2^s / units), so the rate is never exceeded
	burstQ  uint64 // D = burst * T
	plain   uint64 // the burst, or 0 if an option keeps requests off the short path
	windowQ uint64 // H + S: a word is live iff 1 <= TAT - now <= H + S
	softQ   uint64
	shl     uint8
	shr     uint8
	flags   uint8
	epoch   uint32

	horizonQ uint64 // H: the largest lead that a store can make
	burst    uint64
	delayQ   uint64
	penaltyQ uint64
	debtQ    uint64
	room     uint64
}

const (
	flagHeal = 1 << iota
	flagShadow
	flagPenalty
	flagStrict
)

// width says how the resolution of a word is chosen: T is at least 2^precision, and H + S < 2^(bits - spare).
type width struct{ bits, precision, spare uint }

var (
	cell64 = width{64, 16, 1}
	cell32 = width{32, 10, 1}
)

// longSpan is the finest resolution with which a 64-bit word spans more than a year of nanoseconds.
const longSpan = 9

// emission returns T at a resolution, or 0 if that is below one q-unit or does not fit 62 bits.
func emission(units, period uint64, shift int) uint64 {
	high, low, den := uint64(0), period, units
	if shift >= 0 {
		high, low = period>>(64-uint(shift)), period<<uint(shift)
	} else if s := uint(-shift); den>>(64-s) != 0 {
		return 0
	} else {
		den <<= s
	}
	if high >= den || high == 0 && low < den {
		return 0
	}
	t, rest := bits.Div64(high, low, den)
	if rest != 0 {
		t++
	}
	if t >= 1<<62 {
		return 0
	}
	return t
}

// times returns amount * t, or the largest number if it does not fit 62 bits.
func times(amount, t uint64) uint64 {
	if high, low := bits.Mul64(amount, t); high == 0 && low < 1<<62 {
		return low
	}
	return most
}

const most = ^uint64(0)

// toQ converts ticks to q-units; part is added before the division by a coarse q-unit, 0 or all of one but a tick.
func toQ(ticks uint64, shl, shr uint, up bool) uint64 {
	if ticks>>(64-shl) != 0 {
		return most
	}
	q := ticks << shl >> shr
	if up && q<<shr>>shl != ticks {
		q++
	}
	return q
}

func (s *Spec) validate() error {
	switch {
	case s.Units == 0:
		return ErrZeroRate
	case s.Period == 0:
		return ErrZeroPeriod
	case s.Burst == 0:
		return ErrZeroBurst
	case s.Soft > s.Burst:
		return ErrBadSoft
	}
	return nil
}

// build validates a specification for a word, and chooses the coarsest resolution that is precise enough, but never
// one that is coarser than a tick.
func build(spec *Spec, w width) (params, error) {
	if err := spec.validate(); err != nil {
		return params{}, err
	}
	if spec.shift.is {
		return paramsAt(spec, w, int(spec.shift.value))
	}
	s := 0
	for s <= 63 && emission(spec.Units, spec.Period, s) < 1<<w.precision {
		s++
	}
	if s > 63 {
		return params{}, ErrNotRepresentable
	}
	if w.bits == 32 && spec.Period%spec.Units == 0 {
		s = 0
	}
	return paramsAt(spec, w, s)
}

// paramsAt makes the parameters at one resolution.
func paramsAt(spec *Spec, w width, shift int) (params, error) {
	if err := spec.validate(); err != nil {
		return params{}, err
	}
	if shift < -63 || shift > 63 {
		return params{}, ErrBadResolution
	}
	t := emission(spec.Units, spec.Period, shift)
	if t == 0 {
		return params{}, ErrNotRepresentable
	}
	burst := times(spec.Burst, t)
	if burst == most {
		return params{}, ErrNotRepresentable
	}
	shl, shr := uint(0), uint(0)
	if shift >= 0 {
		shl = uint(shift)
	} else {
		shr = uint(-shift)
	}
	delay := toQ(spec.MaxDelay, shl, shr, false)
	room, debt, penalty := times(spec.MaxRoom, t), times(spec.MaxDebt, t), times(spec.Penalty, t)
	if delay >= 1<<62 || room == most || debt == most || penalty == most {
		return params{}, ErrHorizonTooLong
	}
	horizon := burst + max(max(delay, room), max(debt, penalty))
	skew := defaultSkew(w.bits, shl, shr, horizon)
	if spec.skew.is {
		skew = toQ(spec.skew.value, shl, shr, true)
	}
	window, carry := bits.Add64(horizon, skew, 0)
	if carry != 0 || window >= 1<<(w.bits-w.spare) || window >= 1<<(63-shr) {
		return params{}, ErrHorizonTooLong
	}
	// A tick must fit into the span next to H + S, or a word would never drain.
	if w.bits < 64 && window+1<<shl > 1<<w.bits {
		return params{}, ErrHorizonTooLong
	}
	p := params{
		tq: t, burstQ: burst, plain: spec.Burst, windowQ: window, softQ: most, shl: uint8(shl), shr: uint8(shr),
		epoch: spec.Epoch, horizonQ: horizon, burst: spec.Burst, delayQ: delay, debtQ: burst + debt, room: spec.MaxRoom,
	}
	if spec.Soft != 0 {
		p.softQ = times(spec.Soft, t)
	}
	if spec.Heal {
		if w.bits != 64 || shl > longSpan {
			return params{}, ErrBadHeal
		}
		p.flags |= flagHeal
	}
	if spec.Shadow {
		p.flags |= flagShadow
	}
	if spec.Penalty != 0 {
		p.flags |= flagPenalty
		p.penaltyQ = burst + penalty
	}
	if p.flags != 0 {
		p.plain = 0
	}
	if spec.StrictRefunds {
		p.flags |= flagStrict
	}
	return p, nil
}

// defaultSkew returns an eighth of the span if that exceeds a year of nanoseconds, else a 64th of it, at most 2^30
// ticks, and at least H.
func defaultSkew(width, shl, shr uint, horizon uint64) uint64 {
	if width == 64 && shl <= longSpan {
		return 1 << 61 >> shr
	}
	return max(horizon, min(1<<(width-6), toQ(1<<30, shl, shr, true)))
}

// now converts the caller's clock to q-units, mod 2^64.
func (p *params) now(now uint64) uint64 { return now >> p.shr << p.shl }

// ticksUp returns the ticks after now until q more q-units have passed, rounded up.
func (p *params) ticksUp(q, now uint64) uint64 { return ticksUp(q, now, p.shl, p.shr) }

func ticksUp(q, now uint64, shl, shr uint8) uint64 {
	if q == 0 {
		return 0
	}
	whole := (q + (1<<shl - 1)) >> shl << shr
	// The part of the current q-unit that has passed already.
	return whole - now&(1<<shr-1)
}

func (p *params) has(flag uint8) bool { return p.flags&flag != 0 }

func max(a, b uint64) uint64 {
	if a > b {
		return a
	}
	return b
}

func min(a, b uint64) uint64 {
	if a < b {
		return a
	}
	return b
}

func saturatingSub(a, b uint64) uint64 {
	if a < b {
		return 0
	}
	return a - b
}

// ceilDiv returns a * b / c, rounded up; the largest number if that does not fit.
func mulDivUp(a, b, c uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high >= c {
		return most
	}
	q, rest := bits.Div64(high, low, c)
	if rest != 0 && q != most {
		q++
	}
	return q
}
