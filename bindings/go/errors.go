package tatcell

import "fmt"

// Error says why a limit or a table cannot be made. Compare it with the constants by errors.Is.
type Error string

// Error returns what is wrong and what to change.
func (e Error) Error() string { return "tatcell: " + string(e) }

const (
	ErrZeroRate         Error = "the rate is 0: give at least 1 unit a period"
	ErrZeroPeriod       Error = "the period is 0: give at least 1 tick"
	ErrZeroBurst        Error = "the burst is 0: give at least 1 unit"
	ErrNotRepresentable Error = "the rate is too fast or the burst too large: use larger units or another resolution"
	ErrHorizonTooLong   Error = "burst and allowances are too long for the word: lower them, or use slower ticks"
	ErrBadResolution    Error = "the resolution must be -63 to 63"
	ErrBadSoft          Error = "the soft threshold is above the burst: lower it"
	ErrBadHeal          Error = "Heal needs a cell with a span of more than a year: leave it out"
	ErrTooSmall         Error = "the table has no set of slots: give more keys"
	ErrTooLarge         Error = "the table has too many sets: give fewer keys, or use two tables"
	ErrSpanTooShort     Error = "fastest and slowest limit do not fit one word: use a smaller burst, or two tables"
	ErrBadTagBits       Error = "the tag width must be 12 to 24 bits"
	ErrBadLifetime      Error = "the claim lifetime exceeds half an emission interval: lower it"
	ErrMissingSeed      Error = "a keyed hash needs a secret seed of 16 bytes"
	ErrLimitTooFast     Error = "the limit is faster or longer than the table's options: change Fastest or Slowest"
	ErrBadName          Error = "a name or unit has a character outside of 0x20 to 0x7e"
)

// ParseError says why a text is no limit, and at which byte.
type ParseError struct {
	// Position is the first byte that cannot be read, from 0; the length of the text if something is missing there.
	Position int
	what     parseKind
}

// Error returns the byte, and what is wrong there.
func (e *ParseError) Error() string {
	return fmt.Sprintf("tatcell: byte %d: %s", e.Position, parseKinds[e.what])
}

type parseKind uint8

const (
	needNumber parseKind = iota
	needSlash
	needUnit
	tooMuch
	isZero
	isFraction
	tooLarge
	noFrequency
)

var parseKinds = [...]string{
	needNumber:  `a number is missing, as in "10/s burst 20"`,
	needSlash:   `"/" and a time are missing, as in "10/s"`,
	needUnit:    "not a unit of time: use ns, us, ms, s, m, h, d or w",
	tooMuch:     `only "burst" and a number may follow the rate`,
	isZero:      "the number is 0",
	isFraction:  "a burst is a whole number of units",
	tooLarge:    "the number is too large for 64 bits",
	noFrequency: "the clock has 0 ticks a second",
}
