package tatcell

import (
	"math/bits"
	"strconv"
	"strings"
)

// Fields has the values of the HTTP fields of a response, as the library writes them: RateLimit and RateLimit-Policy of
// draft-ietf-httpapi-ratelimit-headers, and Retry-After of RFC 9110. An empty value is a field that is left out.
//
// Seconds are rounded up, so that a client that comes back when it was told is not refused again; units are rounded
// down. A peek of cost 0 refuses nobody. Clients are told nothing of a limit in shadow mode.
type Fields struct {
	Policy     string // RateLimit-Policy: "name";q=20;w=2, a quota of q units in w seconds
	Limit      string // RateLimit: "name";r=3;t=4, r units are left for t seconds
	RetryAfter string // Retry-After: seconds
}

// FieldMaker makes the fields of one limit.
type FieldMaker struct {
	name, policy   string
	ticksPerSecond uint64
	shadow         bool
}

// NewFieldMaker makes a maker for a limit with a name, by which clients tell it from others. The quota is its burst,
// and the window is the time in which a whole burst drains.
func NewFieldMaker(name string, spec Spec, ticksPerSecond uint64) (*FieldMaker, error) {
	p, err := build(&spec, cell64)
	if err != nil {
		return nil, err
	}
	return newFieldMaker(name, &p, ticksPerSecond)
}

// Fields makes a maker for the limit of this limiter.
func (l *Limiter) Fields(name string) (*FieldMaker, error) {
	return newFieldMaker(name, &l.limit.p, 1e9)
}

func newFieldMaker(name string, p *params, ticksPerSecond uint64) (*FieldMaker, error) {
	for i := 0; i < len(name); i++ {
		if name[i] < 0x20 || name[i] > 0x7e {
			return nil, ErrBadName
		}
	}
	if ticksPerSecond == 0 {
		return nil, &ParseError{0, noFrequency}
	}
	m := &FieldMaker{ticksPerSecond: ticksPerSecond, shadow: p.has(flagShadow)}
	m.name = `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(name) + `"`
	if m.shadow {
		return m, nil
	}
	m.policy = m.name + ";q=" + number(p.burst)
	// burstQ is burst * T.
	window := (p.burstQ + (1<<p.shl - 1)) >> p.shl
	if high, low := bits.Mul64(window, 1<<p.shr); high == 0 {
		window = low
	} else {
		window = most
	}
	if window != 0 {
		m.policy += ";w=" + number(m.seconds(window))
	}
	return m, nil
}

// Of returns the fields of a decision.
func (m *FieldMaker) Of(d *Decision) Fields {
	f := Fields{Policy: m.policy}
	verdict := d.Verdict
	if d.InDebt {
		verdict = Conforming
	}
	wait := most
	switch verdict {
	case NonConforming:
		wait = max(m.seconds(d.RetryAfter), 1)
	case Contended:
		wait = 1
	}
	if wait != most {
		f.RetryAfter = number(wait)
	}
	if m.shadow || d.Flags&Shadow != 0 || verdict == Contended {
		return f
	}
	f.Limit = m.name + ";r=" + number(d.Remaining)
	window := m.seconds(d.ResetAfter)
	if verdict == NonConforming {
		window = m.seconds(d.RetryAfter)
	}
	if window = min(window, wait); window != 0 {
		f.Limit += ";t=" + number(window)
	}
	return f
}

func (m *FieldMaker) seconds(ticks uint64) uint64 {
	seconds := ticks / m.ticksPerSecond
	if ticks%m.ticksPerSecond != 0 {
		seconds++
	}
	return seconds
}

// number writes an integer of structured fields (RFC 9651): at most 15 digits.
func number(n uint64) string { return strconv.FormatUint(min(n, 999_999_999_999_999), 10) }
