package tatcell

// Verdict says whether a request passes, and if not, why.
type Verdict uint8

const (
	Conforming    Verdict = iota // passes
	NonConforming                // does not pass now; the retry time says when it would
	Never                        // can never pass: the cost is above the burst
	Contended                    // no verdict, nothing charged: other goroutines won every attempt
)

// String returns the verdict in words.
func (v Verdict) String() string {
	return [...]string{"conforming", "non-conforming", "never", "contended"}[v&3]
}

// Outcome is the short answer: the verdict, and the ticks until the same cost would conform.
type Outcome struct {
	Verdict Verdict
	// RetryAfter is exact, not a tick early or late, if the verdict is NonConforming; else 0.
	RetryAfter uint64
}

// Passes returns whether the request may pass.
func (o Outcome) Passes() bool { return o.Verdict == Conforming }

// Tracking says how a table accounted for a decision.
type Tracking uint8

const (
	Tracked   Tracking = iota // the key has its own slot, or would have had one
	Untracked                 // the set was full, and the policy decided without storing anything
	Inherited                 // the set was full, and the key took over the smallest debt
	Forgiven                  // the set was full, and the key took over a slot whose debt was forgiven
)

// Flags of a decision.
const (
	Soft    = 1 << iota // passed, but above the soft threshold of the limit
	Shadow              // passed, or left without a wait, only because the limit is in shadow mode
	Elastic             // passed inside the elastic room of this call
)

// Decision is the full answer. Times are ticks after now, except Departure; amounts are units. If the verdict is
// Contended, all numbers but Cost and Burst are 0.
type Decision struct {
	Verdict    Verdict
	Tracking   Tracking
	InDebt     bool   // a peek of cost 0 found a debt above the burst: it refuses nobody
	Flags      uint32 // any of Soft, Shadow, Elastic
	Cost       uint64 // the units that the request asked for
	Burst      uint64 // the most units that conform at one instant after idle
	Remaining  uint64 // units that would conform right after this decision, rounded down
	RetryAfter uint64 // until the same cost conforms: 0 if it does, the largest number if it never will
	NextUnit   uint64 // until Remaining grows by one; 0 if the burst is full
	ResetAfter uint64 // until the whole burst is there again, rounded up
	Departure  uint64 // the tick at which the request may leave; 0 if it does not pass
	Units      uint64 // whole units that the call charged or gave back
	Permit     Permit // the record of the charge, for a refund
}

// Passes returns whether the request may pass.
func (d *Decision) Passes() bool { return d.Verdict == Conforming }

// Permit proves what a charge stored, so that a refund gives back no more than that. Use it once. The zero Permit gives
// nothing back.
type Permit struct {
	tat, stored, tick, generation uint64
	epoch, slot                   uint32
}

// answer is the result of one step, in q-units.
type answer struct {
	verdict Verdict
	flags   uint32
	lead    uint64 // after the step
	wait    uint64 // until the same request conforms, or may depart
	stored  uint64 // the charge
}

// step is an answer and the lead to store, if any.
type step struct {
	answer
	next   uint64
	stores bool
}

func keep(verdict Verdict, flags uint32, lead, wait uint64) step {
	return step{answer: answer{verdict, flags, lead, wait, 0}}
}

func (a *answer) outcome(p *params, now uint64) Outcome {
	if a.verdict == NonConforming {
		return Outcome{NonConforming, p.ticksUp(a.wait, now)}
	}
	return Outcome{Verdict: a.verdict}
}

// place is where and when a charge was stored.
type place struct {
	now, mask, generation uint64
	slot                  uint32
}

func (a *answer) permit(p *params, at place) Permit {
	if a.stored == 0 {
		return Permit{}
	}
	ahead := a.lead
	if p.has(flagStrict) {
		ahead = a.stored
	}
	return Permit{(p.now(at.now) + ahead) & at.mask, a.stored, at.now, at.generation, p.epoch, at.slot}
}

// decision makes the full answer. It divides.
func (a *answer) decision(p *params, now, cost uint64, tracking Tracking, permit Permit) Decision {
	d := Decision{
		Verdict: a.verdict, Tracking: tracking, Flags: a.flags, Cost: cost, Burst: p.burst, Permit: permit,
		Remaining: saturatingSub(p.burstQ, a.lead) / p.tq, ResetAfter: p.ticksUp(a.lead, now),
		Units: unitsOf(p, cost, a.stored),
	}
	if d.Remaining >= p.burst {
		d.Remaining = p.burst
	} else {
		d.NextUnit = p.ticksUp(a.lead+(d.Remaining+1)*p.tq-p.burstQ, now)
	}
	wait := a.wait
	if wait != most {
		wait = p.ticksUp(wait, now)
	}
	switch {
	case a.verdict != Conforming:
		d.RetryAfter = wait
	case a.flags&Shadow != 0:
		// It passes at once, and RetryAfter reports the wait that it was spared.
		d.RetryAfter, d.Departure = wait, now
	default:
		d.Departure = now + wait
	}
	return d
}

func contended(p *params, cost uint64) Decision {
	return Decision{Verdict: Contended, Cost: cost, Burst: p.burst}
}

func (d Decision) peeked() Decision {
	d.InDebt = d.Cost == 0 && d.Verdict == NonConforming
	return d
}

// refunded makes the answer of a refund from a peek after it.
func (d Decision) refunded(now, units uint64) Decision {
	d.Verdict, d.Flags, d.RetryAfter, d.Departure, d.Units, d.InDebt = Conforming, 0, 0, now, units, false
	return d
}

// unitsOf returns the whole units of a charge, of which a request asked for cost.
func unitsOf(p *params, cost, stored uint64) uint64 {
	if stored == 0 {
		return 0
	}
	if stored == saturatingMul(cost, p.tq) {
		return cost
	}
	return stored / p.tq
}
