package tatcell

import "sync/atomic"

// Finding, charging and inserting a key in its set of two lines: the claim / commit protocol of the Rust crate
// (src/table/set), where its invariants are drawn and its models are.
//
//	EMPTY / expired --claim--> CLAIM(x,v) --commit--> LIVE(x,tat) --charge--> LIVE(x,tat+c) ...
//	     ^                        |                        |
//	     +------- drop, kill -----+                        +--takeover--> CLAIM(y,odd) --commit--> LIVE(y,..)
//
// A plain insert is wrong: callers hold different clocks, so two of them can find different slots reusable and give one
// key two slots, each with a full burst. Here a goroutine first claims a slot, which charges nothing. Then it scans the
// set again, and only the lowest claim of a key may commit. Two goroutines must not both miss the other's claim; Go's
// atomics are sequentially consistent, so no fence is needed between the claim and that scan.

// line is 8 slots: 64 bytes, one cache line.
type line = [8]uint64

// set is the two lines of a key, home line first.
type set struct {
	home, next *line
	line       uint32 // the number of the home line; that of the other is line ^ 1
}

// seen is a slot, by its position in search order, and the word seen in it.
type seen struct {
	at   int
	word uint64
}

func (s *set) slot(at int) *uint64 {
	if at < 8 {
		return &s.home[at]
	}
	return &s.next[at&7]
}

// number returns the number in the table of the slot at a position.
func (s *set) number(at int) uint32 {
	return (s.line^uint32(at>>3))*8 + uint32(at&7)
}

// find returns the position of the key's live slot and its word, home line first, or -1.
func (s *set) find(l *layout, tag uint64) seen {
	if i, word := findIn(s.home, l.mask, tag); i >= 0 {
		return seen{i, word}
	}
	if i, word := findIn(s.next, l.mask, tag); i >= 0 {
		return seen{i + 8, word}
	}
	return seen{-1, 0}
}

func findIn(line *line, mask, tag uint64) (int, uint64) {
	for i := range line {
		if word := atomic.LoadUint64(&line[i]); word^tag <= mask {
			return i, word
		}
	}
	return -1, 0
}

// ask is one request of one key.
type ask struct {
	set
	*layout
	policy Policy
	tag    uint64
	nowQ   uint64
	op     op
	sample bool // under Sampled: whether this request may take over a debt
	lost   int  // swaps lost so far
}

// done is how a request ended.
type done struct {
	answer
	contended bool
	tracking  Tracking
	slot      uint32
	inserted  bool
	charged   uint64 // what was charged; stored is the part that a permit may give back
}

func (a *ask) replace(at int, old, new uint64) bool {
	return atomic.CompareAndSwapUint64(a.slot(at), old, new)
}

// run charges the key's live slot, else inserts the key.
func (a *ask) run() done {
	if found := a.find(a.layout, a.tag); found.at >= 0 {
		if d, ok := a.charge(found); ok {
			return d
		}
	}
	return a.settle()
}

// charge changes a live slot as long as it belongs to the key. It returns false if the slot changed hands: scan again.
func (a *ask) charge(s seen) (done, bool) {
	for a.lost < maxLost {
		step := a.op.step(a.lead(s.word, a.nowQ))
		if !step.stores || a.replace(s.at, s.word, a.live(a.tag, a.nowQ+step.next)) {
			return done{answer: step.answer, slot: a.number(s.at), charged: step.stored}, true
		}
		a.lost++
		s.word = atomic.LoadUint64(a.slot(s.at))
		if !a.isLiveOf(s.word, a.tag) {
			return done{}, false
		}
	}
	return done{contended: true}, true
}

// commit makes a claim LIVE with this lead. It returns false if the claim has changed.
func (a *ask) commit(claim seen, lead uint64, ans answer) (done, bool) {
	ahead := a.lead(claim.word, a.nowQ)
	if !isTakeover(claim.word) {
		// A claim lies above everything that the slot held, so the commit must not lie before the claim.
		lead = max(lead, ahead)
	}
	charged := ans.stored
	ans.lead = lead
	// Nobody was charged for what lies below the claim, so no permit may give it back.
	ans.stored = min(ans.stored, saturatingSub(lead, ahead))
	if !a.replace(claim.at, claim.word, a.live(a.tag, a.nowQ+lead)) {
		return done{}, false
	}
	tracking, slot := a.trackingOf(claim.word), a.number(claim.at)
	return done{answer: ans, tracking: tracking, slot: slot, inserted: true, charged: charged}, true
}

// mayTake returns whether the request may take the slot of another key. Under Inherit the debt of a dropped takeover
// stays with its slot.
func (a *ask) mayTake(word uint64) bool {
	return a.isReusable(word, a.nowQ) && !(a.policy == Inherit && a.holdsDebt(word, a.nowQ))
}

func (a *ask) claim(word uint64) uint64 {
	if a.holdsDebt(word, a.nowQ) {
		return a.claimOfDebt(a.tag, word)
	}
	return a.claimOfReusable(a.tag, word, a.nowQ)
}

func (a *ask) trackingOf(claim uint64) Tracking {
	if isTakeover(claim) {
		switch a.policy {
		case Inherit:
			return Inherited
		case Sampled:
			return Forgiven
		}
	}
	return Tracked
}

// claimLead returns the lead that a claim commits on: the debt that it took over, or 0.
func (a *ask) claimLead(claim uint64) uint64 {
	if isTakeover(claim) && a.policy == Inherit {
		return a.lead(claim-1, a.nowQ)
	}
	return 0
}

// survey is what one scan of a whole set found. A position of -1 is none.
type survey struct {
	live  seen
	claim seen // the lowest claim of the key, in address order
	free  seen // the first EMPTY slot in search order, else the one that has been expired longest
	least seen // the smallest debt of any key: live, or (under Inherit) emptied with its debt kept
	// soonest is the lead of the slot that drains first, tombstones included.
	freeAge, leastLead, soonest uint64
}

func (a *ask) survey() survey {
	none := seen{-1, 0}
	f := survey{none, none, none, none, 0, most, most}
	for at := 0; at < 16; at++ {
		word := atomic.LoadUint64(a.slot(at))
		s := seen{at, word}
		switch {
		case a.hasTag(word, a.tag):
			if !a.isClaim(word) {
				if f.live.at < 0 {
					f.live = s
				}
			} else if f.claim.at < 0 || a.number(at) < a.number(f.claim.at) {
				f.claim = s
			}
		case a.mayTake(word):
			age := most
			if !a.isEmpty(word) {
				age = a.age(word, a.nowQ)
			}
			if f.free.at < 0 || age > f.freeAge {
				f.free, f.freeAge = s, age
			}
		case !a.isClaim(word):
			lead := a.lead(word, a.nowQ)
			f.soonest = min(f.soonest, lead)
			// A tombstone is nobody's debt: an insert waits for it and does not take it over.
			if lead < f.leastLead && !a.isTombstone(word, a.nowQ) {
				f.least, f.leastLead = s, lead
			}
		}
	}
	return f
}

func (a *ask) drop(claim seen) {
	if claim.at >= 0 {
		// If another goroutine has changed it first, that stands.
		a.replace(claim.at, claim.word, a.dropped(claim.word))
	}
}

// dropHigher drops every claim of the key that is higher than this one. It returns false if one of them has changed or
// committed since the scan: scan again.
func (a *ask) dropHigher(than int) bool {
	for at := 0; at < 16; at++ {
		if a.number(at) <= a.number(than) {
			continue
		}
		word := atomic.LoadUint64(a.slot(at))
		if a.isClaimOf(word, a.tag) {
			if !a.replace(at, word, a.dropped(word)) {
				return false
			}
		} else if a.isLiveOf(word, a.tag) {
			return false
		}
	}
	return true
}

// settle scans the set, does what the result calls for and scans again, up to a bound. A claim that two scans found
// counts as the request's own, even if another goroutine placed it.
func (a *ask) settle() done {
	own, known := seen{-1, 0}, seen{-1, 0}
	for pass := 0; pass < 3*maxLost && a.lost < maxLost; pass++ {
		f := a.survey()
		// A live word decides, whatever claims there are: goroutines that find those drop them.
		if f.live.at >= 0 {
			if d, ok := a.charge(f.live); ok {
				a.drop(own)
				return d
			}
			continue
		}
		if f.claim.at >= 0 {
			// A claim commits only after a scan that began later.
			if known != f.claim {
				known = f.claim
				continue
			}
			step := a.op.step(a.claimLead(f.claim.word))
			if !step.stores || step.verdict != Conforming {
				a.drop(own)
				return done{answer: step.answer, tracking: a.trackingOf(f.claim.word)}
			}
			// Once dropped, higher claims cannot commit a second slot of this key.
			if a.dropHigher(f.claim.at) {
				if d, ok := a.commit(f.claim, step.next, step.answer); ok {
					return d
				}
			}
			a.lost++
			continue
		}
		// The key is absent. A refused request, or one that stores nothing, needs no slot.
		fresh := a.op.step(0)
		if !fresh.stores || fresh.verdict != Conforming {
			return done{answer: fresh.answer}
		}
		take, claim := f.free, uint64(0)
		switch {
		case take.at >= 0:
			claim = a.claim(take.word)
		case f.least.at >= 0 && (a.policy == Inherit || a.policy == Sampled && a.sample):
			take, claim = f.least, a.claimOfDebt(a.tag, f.least.word)
			if a.policy == Inherit {
				// Refused, or a charge at its cap: nothing would be stored, so no key loses a slot.
				if s := a.op.step(a.claimLead(claim)); s.verdict != Conforming || !s.stores {
					return done{answer: s.answer, tracking: Inherited}
				}
			}
		case f.least.at < 0 && a.policy == Inherit && f.soonest == most:
			// At this moment every slot is being claimed: return no verdict rather than a guess.
			a.drop(own)
			return done{contended: true}
		default:
			return a.full(fresh.answer, f.soonest)
		}
		if a.replace(take.at, take.word, claim) {
			own = seen{take.at, claim}
			known = own
		} else {
			a.lost++
		}
	}
	// At the bound nothing is charged. The claim would only keep others from the slot until it expires.
	a.drop(own)
	return done{contended: true}
}

// full returns the answer of a policy that stores nothing.
func (a *ask) full(fresh answer, soonest uint64) done {
	wait := soonest
	if wait == most {
		wait = 1
	}
	d := done{answer: fresh, tracking: Untracked}
	if a.policy == Deny || a.policy == Inherit {
		d.answer = answer{verdict: NonConforming, wait: wait}
		if a.op.shadows() {
			d.verdict, d.flags = Conforming, Shadow
		}
	}
	d.stored = 0
	return d
}
