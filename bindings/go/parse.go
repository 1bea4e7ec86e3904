package tatcell

import (
	"math/big"
	"math/bits"
)

// ParseSpec reads a limit from text: "10/s burst 20", "100r/m", "1.5MB/s burst 64kB", "5/15min". ticksPerSecond is the
// frequency of the caller's clock: 1e9 for Now.
//
//	limit  = amount "/" [ number ] unit [ "burst" [ "=" ] amount ]
//	amount = number [ prefix ] [ "B" | "r" ]          number: digits, and a point and digits
//	prefix = k M G T: powers of 1000;  Ki Mi Gi Ti: powers of 1024
//	unit   = ns us ms s m h d w, or a name: sec, second, min, minute, hour, day, week, with or without a final s
//
// Spaces may stand between any two of these. The burst counts the first unit. Without it, it is the amount of the rate,
// rounded up to whole units. The rate is exact. An error is a *ParseError.
func ParseSpec(text string, ticksPerSecond uint64) (Spec, error) {
	r := reader{text: text}
	spec, err := r.spec(ticksPerSecond)
	if err != nil {
		return Spec{}, err
	}
	return spec, nil
}

// amount is a number as a fraction.
type amount struct{ over, under *big.Int }

func (a amount) reduced() amount {
	gcd := new(big.Int).GCD(nil, nil, a.over, a.under)
	return amount{new(big.Int).Div(a.over, gcd), new(big.Int).Div(a.under, gcd)}
}

func (a amount) times(n uint64) amount {
	return amount{new(big.Int).Mul(a.over, new(big.Int).SetUint64(n)), a.under}
}

type reader struct {
	text string
	at   int
}

func (r *reader) fail(what parseKind) *ParseError { return &ParseError{r.at, what} }

// peek returns the next byte, or 0 at the end. A 0 in the text is no part of any limit.
func (r *reader) peek() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *reader) spaces() {
	for r.peek() == ' ' || r.peek() == '\t' {
		r.at++
	}
}

func (r *reader) takes(b byte) bool {
	if r.peek() != b {
		return false
	}
	r.at++
	return true
}

// word returns the letters that come next. They are not taken.
func (r *reader) word() string {
	end := r.at
	for end < len(r.text) && (r.text[end]|0x20) >= 'a' && (r.text[end]|0x20) <= 'z' {
		end++
	}
	return r.text[r.at:end]
}

func (r *reader) number() (amount, *ParseError) {
	start, over, under, digits, point := r.at, uint64(0), uint64(1), 0, false
	for {
		switch c := r.peek(); {
		case c >= '0' && c <= '9':
			high, low := bits.Mul64(over, 10)
			sum, carry := bits.Add64(low, uint64(c-'0'), 0)
			if over = sum; point {
				var more uint64
				more, under = bits.Mul64(under, 10)
				high |= more
			}
			if high|carry != 0 {
				return amount{}, &ParseError{start, tooLarge}
			}
			digits++
		case c == '.' && !point && digits > 0:
			point = true
		case digits == 0:
			return amount{}, r.fail(needNumber)
		case over == 0:
			return amount{}, &ParseError{start, isZero}
		default:
			return amount{new(big.Int).SetUint64(over), new(big.Int).SetUint64(under)}, nil
		}
		r.at++
	}
}

// amount reads a number of units, with its prefix.
func (r *reader) amount() (amount, *ParseError) {
	a, err := r.number()
	if err != nil {
		return a, err
	}
	power := map[byte]int{'k': 1, 'K': 1, 'M': 2, 'G': 3, 'T': 4}[r.peek()]
	base := uint64(1000)
	if power > 0 {
		r.at++
		if r.takes('i') {
			base = 1024
		}
	}
	if !r.takes('B') {
		r.takes('r')
	}
	for ; power > 0; power-- {
		a = a.times(base)
	}
	return a.reduced(), nil
}

// units lists the units of time, and each as a fraction of seconds. A name of more than two letters may end with an s.
var units = map[string][2]uint64{
	"ns": {1, 1e9}, "us": {1, 1e6}, "ms": {1, 1e3}, "s": {1, 1}, "sec": {1, 1}, "second": {1, 1},
	"m": {60, 1}, "min": {60, 1}, "minute": {60, 1}, "h": {3600, 1}, "hour": {3600, 1},
	"d": {86400, 1}, "day": {86400, 1}, "w": {604800, 1}, "week": {604800, 1},
}

// time reads the time of a rate, in seconds.
func (r *reader) time() (amount, *ParseError) {
	count := amount{big.NewInt(1), big.NewInt(1)}
	if c := r.peek(); c >= '0' && c <= '9' || c == '.' {
		var err *ParseError
		if count, err = r.number(); err != nil {
			return count, err
		}
	}
	r.spaces()
	word := r.word()
	unit, ok := units[word]
	if n := len(word) - 1; !ok && n > 2 && word[n] == 's' {
		unit, ok = units[word[:n]]
	}
	if !ok {
		return count, r.fail(needUnit)
	}
	r.at += len(word)
	under := new(big.Int).Mul(count.under, new(big.Int).SetUint64(unit[1]))
	return amount{count.times(unit[0]).over, under}, nil
}

func (r *reader) spec(ticksPerSecond uint64) (Spec, *ParseError) {
	if ticksPerSecond == 0 {
		return Spec{}, r.fail(noFrequency)
	}
	r.spaces()
	start := r.at
	amount, err := r.amount()
	if err != nil {
		return Spec{}, err
	}
	r.spaces()
	if !r.takes('/') {
		return Spec{}, r.fail(needSlash)
	}
	r.spaces()
	time, err := r.time()
	if err != nil {
		return Spec{}, err
	}
	// A whole number of units in a whole number of ticks, each no larger than that takes.
	ticks := time.times(ticksPerSecond)
	if ticks.over.BitLen() > 128 {
		return Spec{}, &ParseError{start, tooLarge}
	}
	ticks = ticks.reduced()
	units := new(big.Int).Mul(amount.over, ticks.under)
	period := new(big.Int).Mul(ticks.over, amount.under)
	if !units.IsUint64() || !period.IsUint64() {
		return Spec{}, &ParseError{start, tooLarge}
	}
	spec := NewSpec(units.Uint64(), period.Uint64(), 0)
	r.spaces()
	if r.at != len(r.text) {
		spec.Burst, err = r.burst()
		return spec, err
	}
	atOnce, rest := new(big.Int).DivMod(amount.over, amount.under, new(big.Int))
	if rest.Sign() != 0 {
		atOnce.Add(atOnce, big.NewInt(1))
	}
	if !atOnce.IsUint64() {
		return Spec{}, &ParseError{start, tooLarge}
	}
	spec.Burst = atOnce.Uint64()
	return spec, nil
}

// burst reads the burst, which ends the text.
func (r *reader) burst() (uint64, *ParseError) {
	if r.word() != "burst" {
		return 0, r.fail(tooMuch)
	}
	r.at += len("burst")
	r.spaces()
	r.takes('=')
	r.spaces()
	start := r.at
	burst, err := r.amount()
	if err != nil {
		return 0, err
	}
	if !burst.under.IsUint64() || burst.under.Uint64() != 1 {
		return 0, &ParseError{start, isFraction}
	}
	r.spaces()
	if r.at != len(r.text) {
		return 0, r.fail(tooMuch)
	}
	if !burst.over.IsUint64() {
		return 0, &ParseError{start, tooLarge}
	}
	return burst.over.Uint64(), nil
}
