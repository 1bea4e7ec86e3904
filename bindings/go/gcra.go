package tatcell

import (
	"math/big"
	"math/bits"
)

// The generic cell rate algorithm (ITU-T I.371, virtual scheduling form), as pure functions. The state of a key is its
// theoretical arrival time (TAT); its lead is TAT - now if that is within H + S, else 0. A request of cost c conforms
// iff lead + c * T <= D, and then moves the TAT by c * T. These are the functions of the Rust crate, by its names.

// leadOf returns how far a TAT lies ahead, in a word of mask's width.
func leadOf(tat, nowQ, mask, window uint64) uint64 {
	if d := (tat - nowQ) & mask; d-1 < window {
		return d
	}
	return 0
}

// encode makes the word of a lead. 0 is the empty word, so a computed 0 is stored as 1.
func encode(nowQ, lead, mask uint64) uint64 {
	if word := (nowQ + lead) & mask; word != 0 {
		return word
	}
	return 1
}

// decode returns the lead of a whole word, and whether it is so far ahead that Heal applies.
func (p *params) decode(word, nowQ, mask uint64) (lead uint64, healed bool) {
	if word == 0 {
		return 0, false
	}
	lead = leadOf(word, nowQ, mask, p.windowQ)
	if lead == 0 && p.has(flagHeal) && leadOf(word, nowQ, mask, mask>>1) != 0 {
		return p.burstQ, true
	}
	return lead, false
}

// op is one operation on a key. amount is the elastic room in units (check), the credit in q-units (refund), or the
// q-units before which a request may not leave (reserve).
type op struct {
	p            *params
	kind         kind
	cost, amount uint64
}

type kind uint8

const (
	check kind = iota
	charge
	reserve
	refund
)

func (o *op) step(lead uint64) step {
	switch o.kind {
	case check:
		return o.p.check(lead, o.cost, o.amount)
	case charge:
		return o.p.charge(lead, o.cost)
	case reserve:
		return o.p.reserve(lead, o.cost, o.amount)
	}
	back := min(o.amount, lead)
	return step{answer{Conforming, 0, lead - back, 0, back}, lead - back, back != 0}
}

// shadows returns whether the operation passes what the limit would deny.
func (o *op) shadows() bool { return o.p.has(flagShadow) && (o.kind == check || o.kind == reserve) }

func (p *params) check(lead, cost, room uint64) step {
	room = min(room, p.room)
	if cost > saturatingAdd(p.burst, room) {
		if p.has(flagShadow) {
			return keep(Conforming, Shadow, lead, most)
		}
		return keep(Never, 0, lead, most)
	}
	charge, limit := cost*p.tq, p.burstQ+room*p.tq
	next := lead + charge
	if next <= limit {
		flags := p.softFlag(next)
		if next > p.burstQ {
			flags |= Elastic
		}
		// Cost 0 only peeks: it never writes.
		return step{answer{Conforming, flags, next, 0, charge}, next, charge != 0}
	}
	over := next - limit
	if p.has(flagShadow) {
		return keep(Conforming, Shadow, lead, over)
	}
	if p.has(flagPenalty) && lead < p.penaltyQ && charge != 0 {
		next := min(next, p.penaltyQ)
		// The penalty raises the lead, and the wait with it.
		s := keep(NonConforming, 0, next, over+next-lead)
		s.next, s.stores = next, true
		return s
	}
	return keep(NonConforming, 0, lead, over)
}

// peek returns the answer of check without its store.
func (p *params) peek(lead, cost uint64) answer {
	s := p.check(lead, cost, 0)
	if s.stores {
		s.lead, s.answer.stored = lead, 0
		if s.verdict == NonConforming {
			// The penalty is not stored here, so it does not lengthen the wait.
			s.wait -= s.next - lead
		}
	}
	return s.answer
}

// charge charges after the fact: always, up to the cap of the debt.
func (p *params) charge(lead, cost uint64) step {
	next := lead + min(saturatingMul(cost, p.tq), p.debtQ)
	next = max(min(next, p.debtQ), lead)
	return step{answer{Conforming, p.softFlag(next), next, 0, next - lead}, next, next != lead}
}

// reserve decides a request that may leave later, but not before ahead q-units from now. In shadow mode it is neither
// refused nor sent later than it asks for, but stores what it would store without.
func (p *params) reserve(lead, cost, ahead uint64) step {
	s := p.place(lead, cost, ahead)
	if p.has(flagShadow) && (s.verdict != Conforming || s.wait > ahead) {
		s.verdict, s.flags = Conforming, s.flags|Shadow
	}
	return s
}

// place returns the step of reserve without shadow mode.
func (p *params) place(lead, cost, ahead uint64) step {
	if cost > p.burst {
		return keep(Never, 0, lead, most)
	}
	charge, limit := cost*p.tq, p.burstQ+p.delayQ
	late := saturatingSub(ahead, p.delayQ)
	start := ahead
	if lead > ahead || late != 0 {
		start = lead
	}
	next := start + charge
	if next > limit || late != 0 {
		return keep(NonConforming, 0, lead, max(saturatingSub(next, limit), late))
	}
	wait := max(saturatingSub(next, p.burstQ), ahead)
	return step{answer{Conforming, p.softFlag(next), next, wait, charge}, next, charge != 0}
}

func (p *params) softFlag(lead uint64) uint32 {
	if lead > p.softQ {
		return Soft
	}
	return 0
}

// credit returns the refund of a permit: min(stored, TAT after the charge - now), or nothing if that has drained or
// belongs to another epoch. The tick of the charge decides its age: one span of the word later the TAT alone would look
// undrained again.
func (p *params) credit(permit *Permit, generation, now, mask uint64) op {
	o := op{p: p, kind: refund}
	age, skew := now-permit.tick, saturatingSub(p.windowQ, p.horizonQ)
	recent := age <= p.ticksUp(p.horizonQ, 0) || -age <= p.ticksUp(skew, 0)
	if permit.epoch == p.epoch && permit.generation == generation && recent {
		o.amount = min(leadOf(permit.tat, p.now(now), mask, p.horizonQ), permit.stored)
	}
	return o
}

// Change says what happens to the state of a key when its limit changes.
type Change uint8

const (
	KeepTime  Change = iota // a key that needed 2 s to be full still needs 2 s
	KeepUnits               // a key that was 7 units short of full still is
	StartFull               // the key starts full
)

// changed returns the lead under another limit, rounded up, at most its H.
func (p *params) changed(to *params, lead, now uint64, how Change) uint64 {
	switch {
	case lead == 0 || how == StartFull:
		return 0
	case how == KeepUnits:
		return min(mulDivUp(lead, to.tq, p.tq), to.horizonQ)
	case p.shl == to.shl && p.shr == to.shr:
		return min(lead, to.horizonQ)
	}
	// q -> ticks -> q, rounded up once. A lead counts from the start of a q-unit. If that is coarser than a tick,
	// subtract its passed part under the old limit, and add it under the new one.
	wide := func(n uint64, shift uint8) *big.Int {
		w := new(big.Int).SetUint64(n)
		return w.Lsh(w, uint(shift))
	}
	ticks := wide(lead, p.shr)
	ticks.Sub(ticks, wide(now&(1<<p.shr-1), 0))
	ticks.Add(ticks, wide(now&(1<<to.shr-1), p.shl))
	ticks.Lsh(ticks, uint(to.shl))
	down := uint(p.shl) + uint(to.shr)
	ticks.Add(ticks, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), down), big.NewInt(1)))
	ticks.Rsh(ticks, down)
	if !ticks.IsUint64() {
		return to.horizonQ
	}
	return min(ticks.Uint64(), to.horizonQ)
}

func saturatingAdd(a, b uint64) uint64 {
	if sum, carry := bits.Add64(a, b, 0); carry == 0 {
		return sum
	}
	return most
}

func saturatingMul(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return most
}
