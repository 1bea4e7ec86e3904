package tatcell

// The word of a slot, as pure functions.
//
//	bit 63   62            63-t   62-t                                 0
//	[CLAIM:1][   tag : t       ][              payload : W = 63-t       ]
//
//	EMPTY    0    tag 0    a version; 0 in an all-zero word, which counts as "now"
//	LIVE     0    tag x    the TAT of key x
//	CLAIM    1    tag x    a version: a key is being inserted, nothing is charged yet
//
// The payload of a claim is strictly above everything that the slot held before, so a claim word never recurs. An even
// claim took a reusable slot, an odd one took over a debt (payload - 1). A dropped claim leaves an EMPTY word of the
// same parity. A reset leaves a tombstone: an even EMPTY word above the debt that it forgave, which nobody takes until
// all but a few q-units of it have drained. Payloads wrap, every comparison is modular, and any value is a valid word.

const claimBit = 1 << 63

// layout says where tag and payload lie, and how every slot of a table is decoded.
type layout struct {
	bits     uint   // W = 63 - tag bits
	mask     uint64 // 2^W - 1
	field    uint64 // the bits of the tag
	window   uint64 // H + S of the table, never of a caller's limit: with another H a debt would be misread
	lifetime uint64 // G, how long a claim keeps others from its slot
	grace    uint64 // how far ahead an EMPTY word may lie and still be taken
}

func newLayout(tagBits uint, window, lifetime uint64) layout {
	mask := uint64(1)<<(63-tagBits) - 1
	return layout{63 - tagBits, mask, ^mask &^ claimBit, window, lifetime, lifetime + 16}
}

// tag returns the low bits of a hash in the place of the tag; 1 if they are 0.
func (l *layout) tag(hash uint64) uint64 {
	if tag := hash << (l.bits & 63) & l.field; tag != 0 {
		return tag
	}
	return l.mask + 1
}

func (l *layout) isEmpty(word uint64) bool        { return word&l.field == 0 }
func (l *layout) isClaim(word uint64) bool        { return word&claimBit != 0 && !l.isEmpty(word) }
func (l *layout) isLive(word uint64) bool         { return word&claimBit == 0 && !l.isEmpty(word) }
func (l *layout) hasTag(word, tag uint64) bool    { return word&l.field == tag }
func (l *layout) isLiveOf(word, tag uint64) bool  { return word^tag <= l.mask }
func (l *layout) isClaimOf(word, tag uint64) bool { return word&^l.mask == tag|claimBit }
func (l *layout) live(tag, tat uint64) uint64     { return tag | tat&l.mask }
func (l *layout) lead(word, nowQ uint64) uint64   { return leadOf(word, nowQ, l.mask, l.window) }
func (l *layout) age(word, nowQ uint64) uint64    { return (nowQ - word) & l.mask }
func (l *layout) holdsDebt(word, nowQ uint64) bool {
	return word&(l.field|1) == 1 && l.lead(word, nowQ) != 0
}
func (l *layout) isTombstone(word, now uint64) bool {
	return l.isEmpty(word) && word != 0 && word&1 == 0 && l.lead(word, now) != 0
}
func isTakeover(claim uint64) bool { return claim&1 == 1 }

// isReusable returns whether an insert of any key may take this slot.
func (l *layout) isReusable(word, nowQ uint64) bool {
	lead := l.lead(word, nowQ)
	return lead == 0 || l.isEmpty(word) && (word == 0 || word&1 == 1 || lead <= l.grace)
}

// claimOfReusable returns the claim on a reusable slot: even, above what the slot held, alive for G or longer.
func (l *layout) claimOfReusable(tag, old, nowQ uint64) uint64 {
	ahead := uint64(0)
	if old != 0 {
		ahead = l.lead(old, nowQ)
	}
	v := nowQ + max(ahead+1, l.lifetime)
	return tag | claimBit | (v+v&1)&l.mask
}

// claimOfDebt returns the claim that takes over a debt: the smallest odd payload above it.
func (l *layout) claimOfDebt(tag, old uint64) uint64 { return tag | claimBit | ((old+1)|1)&l.mask }

// dropped returns what a dropped claim becomes: EMPTY, above the claim, with its parity.
func (l *layout) dropped(claim uint64) uint64 { return (claim + 2) & l.mask }

// tombstone returns what a reset makes of a live word: the smallest even version above its TAT + 1, never 0.
func (l *layout) tombstone(live uint64) uint64 {
	if version := (live + 2 + live&1) & l.mask; version != 0 {
		return version
	}
	return 2
}

// isSweepable returns whether a sweep may empty this word: no caller whose clock is within the skew counts it as live.
func (l *layout) isSweepable(word, nowQ uint64) bool {
	old := l.window
	if l.isEmpty(word) {
		old = l.mask / 4
	}
	return word != 0 && l.lead(word, nowQ) == 0 && l.age(word, nowQ) > old
}

// swept returns the EMPTY word of a sweep: even, above the expired payload, and ahead of no caller within the skew.
func (l *layout) swept(nowQ uint64) uint64 { return (nowQ - l.window + 1) & l.mask &^ 1 }
