package tatcell

import "sync/atomic"

// Cell holds the state of one limit: a word of 64 bits, for any number of goroutines. The zero Cell is fresh, and the
// full burst is available.
//
// A call charges by one compare-and-swap, and a denial only loads. A call that loses 8 swaps to other goroutines
// returns Contended and has charged nothing. now is the caller's clock in ticks, such as Now.
type Cell struct{ word atomic.Uint64 }

// maxLost is the number of swaps that a call may lose.
const maxLost = 8

// Word returns the state, for saving and inspection.
func (c *Cell) Word() uint64 { return c.word.Load() }

// SetWord sets the state. Any value is valid.
func (c *Cell) SetWord(word uint64) { c.word.Store(word) }

// Reset makes the full burst available.
func (c *Cell) Reset() { c.word.Store(0) }

// Check decides one request and charges it if it conforms. Cost 0 peeks and never writes.
func (c *Cell) Check(l *Limit, now, cost uint64) Outcome {
	p := &l.p
	if cost-1 < p.plain {
		old, tat, charge := c.word.Load(), p.now(now), cost*p.tq
		ahead := old - tat
		if old == 0 || ahead > p.windowQ {
			ahead = 0
		}
		if next := ahead + charge; next > p.burstQ {
			return Outcome{NonConforming, p.ticksUp(next-p.burstQ, now)}
		}
		// A next word of 0 would be the empty one.
		if next := tat + ahead + charge; next != 0 && c.word.CompareAndSwap(old, next) {
			return Outcome{}
		}
	}
	return checkAgain(&c.word, most, p, now, cost)
}

// Decide decides like Check and returns the full answer. The call may use room units above the burst, at most the
// MaxRoom of the limit.
func (c *Cell) Decide(l *Limit, now, cost, room uint64) Decision {
	return decide(&c.word, most, &op{&l.p, check, cost, room}, now)
}

// Charge charges after the fact: always, up to the burst plus the MaxDebt of the limit.
func (c *Cell) Charge(l *Limit, now, cost uint64) Decision {
	return decide(&c.word, most, &op{&l.p, charge, cost, 0}, now)
}

// Reserve reserves cost units for the earliest conforming instant, which the decision has as Departure. It refuses a
// request that would wait longer than the MaxDelay of the limit.
//
// A limit in shadow mode lets it leave at once. If it would have waited, it is flagged and charged as without shadow
// mode, and RetryAfter is that wait. If it would have been refused, it is flagged and not charged.
func (c *Cell) Reserve(l *Limit, now, cost uint64) Decision {
	return decide(&c.word, most, &op{&l.p, reserve, cost, 0}, now)
}

// Peek returns what Decide would, without charging it.
func (c *Cell) Peek(l *Limit, now, cost uint64) Decision {
	return peek(&c.word, most, &l.p, now, cost)
}

// Refund gives back what a permit proves was charged and has not drained since. Units of the answer are those given
// back. Refund several permits of one cell newest first, or set StrictRefunds.
func (c *Cell) Refund(l *Limit, now uint64, permit *Permit) Decision {
	d, _ := refundWord(&c.word, most, &l.p, now, permit)
	return d
}

// Change moves the state from one limit to another. It returns false if it is contended: try again. While others still
// check with the old limit, both must have the same resolution. Give the new limit another Epoch.
func (c *Cell) Change(from, to *Limit, now uint64, how Change) bool {
	return changeWord(&c.word, most, &from.p, &to.p, now, how)
}

// word is the state of a cell of either width.
type word interface {
	Load() uint64
	CompareAndSwap(old, new uint64) bool
}

// update changes a word by a bounded compare-and-swap loop. It returns false after maxLost lost swaps.
func update(w word, next func(uint64) (uint64, bool)) bool {
	for lost := 0; lost < maxLost; lost++ {
		old := w.Load()
		new, stores := next(old)
		if !stores || w.CompareAndSwap(old, new) {
			return true
		}
	}
	return false
}

// drive decodes, steps and encodes.
func drive(w word, mask uint64, o *op, now uint64) (a answer, ok bool) {
	nowQ := o.p.now(now)
	ok = update(w, func(word uint64) (uint64, bool) {
		lead, healed := o.p.decode(word, nowQ, mask)
		s := o.step(lead)
		a = s.answer
		if healed && !s.stores {
			s.next, s.stores = lead, true
		}
		return storedWord(now, nowQ, s.next, mask), s.stores
	})
	return a, ok
}

// storedWord returns the word of a lead. A lead of 0 is a TAT of now: a clock that steps back must not find the cell
// full. Only at tick 0, the first of any clock, it is the empty word.
func storedWord(now, nowQ, lead, mask uint64) uint64 {
	if now == 0 && lead == 0 {
		return 0
	}
	return encode(nowQ, lead, mask)
}

func checkAgain(w word, mask uint64, p *params, now, cost uint64) Outcome {
	a, ok := drive(w, mask, &op{p, check, cost, 0}, now)
	if !ok {
		return Outcome{Verdict: Contended}
	}
	return a.outcome(p, now)
}

func decide(w word, mask uint64, o *op, now uint64) Decision {
	a, ok := drive(w, mask, o, now)
	if !ok {
		return contended(o.p, o.cost)
	}
	return a.decision(o.p, now, o.cost, Tracked, a.permit(o.p, place{now: now, mask: mask}))
}

func peek(w word, mask uint64, p *params, now, cost uint64) Decision {
	lead, _ := p.decode(w.Load(), p.now(now), mask)
	a := p.peek(lead, cost)
	return a.decision(p, now, cost, Tracked, Permit{}).peeked()
}

// refundWord also returns the q-units given back.
func refundWord(w word, mask uint64, p *params, now uint64, permit *Permit) (Decision, uint64) {
	o := p.credit(permit, 0, now, mask)
	a, ok := drive(w, mask, &o, now)
	if !ok {
		return contended(p, 0), most
	}
	back := a.stored
	a.stored = 0
	d := a.decision(p, now, 0, Tracked, Permit{})
	d.Units = unitsOf(p, 0, back)
	return d, back
}

func changeWord(w word, mask uint64, from, to *params, now uint64, how Change) bool {
	return update(w, func(word uint64) (uint64, bool) {
		lead, _ := from.decode(word, from.now(now), mask)
		lead = from.changed(to, lead, now, how)
		if lead == 0 && word == 0 {
			return 0, false
		}
		next := storedWord(now, to.now(now), lead, mask)
		return next, next != word
	})
}
