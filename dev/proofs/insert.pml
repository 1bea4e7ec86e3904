/* The insert protocol of the keyed table, as shipped: insert.rs, insert_contended.rs and attempt.rs in src/table/set/,
 * src/table/layout/word.rs, and the refund of src/table/calls/full_answer.rs.
 *
 *   spin -a insert.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m100000
 *
 * A caller may be a link of a chain that another link refuses: it takes its charge back, by restoring the word that it
 * has replaced if the slot still holds what it stored, and else by the permit (src/combine/short.rs). Only a word that
 * lies ahead of now is restored.
 *
 * Three callers on one set of two lines, one atomic access of a slot a step, every interleaving, and each of them may
 * die before any step. What the init process chooses is explored as well: whose keys, which clocks, what lies in the
 * slots. Then two more callers come, one at once and one when all has drained.
 *
 *   word  [CLAIM : bit 13][tag : 2 bits][payload : 11 bits]       EMPTY: tag 0.  Time is in q-units.
 *
 * Holds in every state: a key has at most one LIVE word; a claim is above all that its slot has held; a key is charged
 * at most a burst and what passes between the readings (Admit), or the words of the set account for every unit, but for
 * what drains of a slot between the readings (Inherit). At the end: what was charged and not given back lies in a word;
 * a caller that runs alone ends within five looks; when all has drained every key is tracked and charged again, whoever
 * died where.
 *
 * -DPER_LINE=n slots a line (1), -DINHERIT another policy than Admit, -DUNITS=3 a burst for chains (worlds 8 to 10),
 * -DCRASHES=n most deaths (3), -DWORLD=n only one of the worlds below. Flags that weaken a rule, each of which must be
 * found out: NAIVE, NO_SECOND_LOOK, FOREIGN_ONCE, UNVERSIONED (with RECURS, which lets claims recur, a key then gets
 * two slots), NO_DROP, DROP_IGNORED, HOME_ONLY, BLIND_CHARGE, REFUND_WHOLE, CLAIMS_BLOCK; of chains RESTORE_BLIND,
 * RESTORE_TWICE, RESTORE_ONLY, UNDO_UNCHARGED, EQUAL_WORD; of Inherit PARITY_LOST, DEBT_FREE. RESTORE_EXPIRED is
 * harmless, and holds.
 *
 * Which free slot an insert takes is left open: the shipped order, an EMPTY one before the longest expired, is one way.
 * Not here: weak memory (the loom models have it), wraps of the payload (arithmetic.py), several keys with one tag, the
 * bounds on looks and lost swaps (a caller may give up before any look but its first, which covers every bound). */

#ifndef PER_LINE
#define PER_LINE 1
#endif
#ifndef CRASHES
#define CRASHES 3
#endif
#define SLOTS (2 * PER_LINE)

#define NOW 256
#define UNIT 64      /* T; the burst is one unit, or two under Inherit */
#ifndef UNITS
#ifdef INHERIT
#define UNITS 2
#else
#define UNITS 1
#endif
#endif
#define LIMIT (UNITS * UNIT)
#define G 2          /* the claim lifetime */
#define GRACE 18     /* G + 16: how far ahead a dropped claim may lie and still be taken */
#define WINDOW 256   /* H + S */
#define LATE (NOW + 1000)

#define X 1
#define Y 2
#define Z 3

#define PAYLOAD(w) ((w) & 2047)
#define TAG(w) ((w) >> 11 & 3)
#define LIVE(k, t) ((k) << 11 | (t))
#define CLAIM(k, v) (1 << 13 | (k) << 11 | (v))
#define IS_EMPTY(w) (TAG(w) == 0)
#define IS_CLAIM(w) ((w) >> 13 == 1)
#define LIVE_OF(w, k) ((w) >> 11 == (k))
#define CLAIM_OF(w, k) ((w) >> 11 == (4 | (k)))
#define ODD(w) ((w) & 1)
#define LEAD(w, n) \
    ((w) != 0 && PAYLOAD(w) > (n) && PAYLOAD(w) - (n) <= WINDOW -> PAYLOAD(w) - (n) : 0)
#define HOLDS_DEBT(w, n) (IS_EMPTY(w) && ODD(w) && LEAD(w, n) > 0)
#define EVEN(n) ((n) + ((n) & 1))
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MIN(a, b) ((a) < (b) -> (a) : (b))

#ifdef INHERIT
#define TAKES_DEBT 1
#else
#define TAKES_DEBT 0
#endif

#ifdef CLAIMS_BLOCK
#define DRAINED(w, n) (LEAD(w, n) == 0 && !IS_CLAIM(w))
#else
#define DRAINED(w, n) (LEAD(w, n) == 0)
#endif
#define REUSABLE(w, n) (DRAINED(w, n) || IS_EMPTY(w) && (ODD(w) || LEAD(w, n) <= GRACE))
#ifdef DEBT_FREE
#define MAY_TAKE(w, n) REUSABLE(w, n)
#undef HOLDS_DEBT
#define HOLDS_DEBT(w, n) 0
#else
#define MAY_TAKE(w, n) (REUSABLE(w, n) && !(TAKES_DEBT && HOLDS_DEBT(w, n)))
#endif

/* The claim on a reusable slot is even and above what it held, on a debt odd. A dropped claim keeps the parity. */
#ifdef UNVERSIONED
#define VERSION(w, n) EVEN((n) + G)
#define DROPPED(w) 0
#else
#define VERSION(w, n) \
    (HOLDS_DEBT(w, n) -> (PAYLOAD(w) + 1) | 1 : EVEN((n) + MAX(LEAD(w, n) + 1, G)))
#ifdef PARITY_LOST
#define DROPPED(w) EVEN(PAYLOAD(w) + 1)
#else
#define DROPPED(w) (PAYLOAD(w) + 2)
#endif
#endif
/* What a claim commits on. */
#define CLAIM_LEAD(w, n) (TAKES_DEBT && ODD(w) -> LEAD(PAYLOAD(w) - 1, n) : 0)

/* The slot at place i of the search of a key: its home line, then the other one. Slots are numbered by address. */
#define AT(i) (((i) / PER_LINE ^ home) * PER_LINE + (i) % PER_LINE)

#define ADMITTED 1
#define REFUSED 2
#define UNTRACKED 3
#define CONTENDED 4

short slot[SLOTS];
short highest[SLOTS]; /* the highest claim that each slot has held */
short net[3];         /* what each key was charged and has not got back */
short first = LATE;   /* the least and the largest reading of the callers */
short last;
short owed;           /* what the set owed at the start */
byte deaths;
byte ended;

/* A swap that has been won: slot `to` gets the word `next`, and what must hold in every state is looked at. */
inline place() {
    if
    :: IS_CLAIM(next) ->
#ifndef RECURS
        assert(PAYLOAD(next) > highest[to]);
#endif
        highest[to] = PAYLOAD(next)
    :: else
    fi;
    slot[to] = next;
    for (j : 0 .. SLOTS - 1) {
        assert(j == to || IS_EMPTY(next) || IS_CLAIM(next) || !LIVE_OF(slot[j], TAG(next)))
    }
    j = 0;
    to = 0;
    next = 0
}
#define PLACE(at, new) to = at; next = new; place()

/* A charge that has been stored. */
inline charged(amount) {
    net[key] = net[key] + amount;
#ifndef INHERIT
    assert(solo || net[key] <= LIMIT + last - first)
#endif
}

/* Any slot of the look that may be taken; SLOTS where there is none. */
inline choose() {
    j = 0;
    pick = SLOTS;
    do
    :: j < SLOTS && MAY_TAKE(seen[j], now) && TAG(seen[j]) != key ->
        pick = j;
        if
        :: break
        :: j++
        fi
    :: j < SLOTS && !(MAY_TAKE(seen[j], now) && TAG(seen[j]) != key) -> j++
    :: j == SLOTS -> break
    od;
    j = 0
}

/* Dies here, or goes on. */
#define DIE if :: true :: !solo && deaths < CRASHES -> deaths++; goto dead fi

proctype caller(byte key; short now; byte script; bit solo) {
    byte home = key == Y;
    byte i, j, to, pick, best, looks, verdict;
    short seen[SLOTS];
    short word, lead, next;
    short own, known;          /* own claim, and the last claim met; 0 is none */
    byte own_at, known_at;
    short tat, stored;         /* the permit */
    byte permit_at;
    bit refunds = script > 0 && script < 3;
    bit chained = script == 3; /* another link refuses after the charge of this one */
    short before, after_it;    /* the words of its charge; 0 is none */

begin:
    /* The look of a hit: the home line, and the other one unless the key is in the first. */
    i = 0;
first_look:
    atomic {
        DIE;
        seen[i] = slot[AT(i)];
        i++;
        if
        :: i % PER_LINE == 0 ->
            j = i - PER_LINE;
            do
            :: j < i && TAG(seen[j]) != key -> j++
            :: else -> break
            od;
            if
            :: j < i -> pick = j; i = 0; j = 0; goto hit
            :: j == i && i == SLOTS -> goto vacancy
            :: else -> j = 0
            fi
        :: else
        fi;
        goto first_look
    }

hit: /* The word is loaded again: what was met may be a claim, and may have changed. */
    atomic {
        DIE;
        word = slot[AT(pick)];
        if
        :: LIVE_OF(word, key) -> goto charge
        :: else -> goto again
        fi
    }

vacancy: /* Still in the look's last step: any slot that may be taken. Or it gives way to the slow path, as it may. */
    atomic {
        i = 0;
        choose();
        if
        :: pick == SLOTS -> goto again
        :: pick < SLOTS && !solo -> goto again
        :: else
        fi
    }
    atomic {
        DIE;
        word = slot[AT(pick)];
        if
        :: MAY_TAKE(word, now) && TAG(word) != key -> goto claim
        :: else -> goto again
        fi
    }

claim:
    atomic {
        DIE;
        if
        :: slot[AT(pick)] == word ->
#ifdef NAIVE
            PLACE(AT(pick), LIVE(key, now + UNIT));
            charged(UNIT);
            verdict = ADMITTED;
            goto answered
#else
            own = CLAIM(key, VERSION(word, now));
            PLACE(AT(pick), own);
            own_at = pick;
            known = own;
            known_at = own_at;
#ifdef NO_SECOND_LOOK
            goto commit
#else
            /* With a look of its own for an insert that meets nobody; settle's would come to the same. */
            goto again
#endif
#endif
        :: else -> goto again
        fi
    }

again:
    atomic {
        i = 0;
        for (j : 0 .. SLOTS - 1) { seen[j] = 0 }
        j = 0;
        pick = 0;
        word = 0;
        if
        :: solo -> looks++; assert(looks <= 5)
        :: true
        :: !solo -> verdict = CONTENDED; goto answered
        fi
    }
look:
    atomic {
        DIE;
        seen[i] = slot[AT(i)];
        i++;
#ifdef HOME_ONLY
        if
        :: i == PER_LINE -> i = SLOTS
        :: else
        fi;
#endif
        if
        :: i < SLOTS -> goto look
        :: else -> i = 0
        fi;
        /* LIVE of the key: the first in search order. */
        j = 0;
        do
        :: j < SLOTS && !LIVE_OF(seen[j], key) -> j++
        :: else -> break
        od;
        if
        :: j < SLOTS -> pick = j; j = 0; word = seen[pick]; goto charge
        :: else
        fi;
        /* Its lowest claim, by address. */
        j = 0;
        best = SLOTS;
        do
        :: j < SLOTS && CLAIM_OF(seen[j], key) && (best == SLOTS || AT(j) < AT(best)) -> best = j; j++
        :: j < SLOTS && !(CLAIM_OF(seen[j], key) && (best == SLOTS || AT(j) < AT(best))) -> j++
        :: else -> break
        od;
        j = 0;
        pick = best;
        best = 0;
        if
        :: pick < SLOTS ->
            if
#ifdef FOREIGN_ONCE
            :: known = seen[pick]; known_at = pick; goto conforms
#else
            :: known == seen[pick] && known_at == pick -> goto conforms
            :: else -> known = seen[pick]; known_at = pick; goto again
#endif
            fi
        :: else
        fi;
        /* Absent. */
        choose();
        if
        :: pick < SLOTS -> word = seen[pick]; goto claim
        :: else
        fi;
#ifdef INHERIT
        /* The least debt, of a LIVE word or kept by an EMPTY one. */
        j = 0;
        best = SLOTS;
        do
        :: j < SLOTS ->
            if
            :: !IS_CLAIM(seen[j]) && !(IS_EMPTY(seen[j]) && !ODD(seen[j])) &&
                    (best == SLOTS || LEAD(seen[j], now) < LEAD(seen[best], now)) -> best = j
            :: else
            fi;
            j++
        :: else -> break
        od;
        j = 0;
        pick = best;
        best = 0;
        if
        :: pick == SLOTS -> verdict = CONTENDED; goto answered
        :: else
        fi;
        word = (PAYLOAD(seen[pick]) + 1) | 1;
        lead = CLAIM_LEAD(word, now);
        word = 0;
        if
        :: lead + UNIT > LIMIT -> lead = 0; verdict = REFUSED; goto answered
        :: else -> lead = 0; word = seen[pick]; goto take
        fi
#else
        verdict = UNTRACKED;
        goto answered
#endif
    }

take: /* A claim on a debt: the smallest odd payload above it. */
    atomic {
        DIE;
        if
        :: slot[AT(pick)] == word ->
            own = CLAIM(key, (PAYLOAD(word) + 1) | 1);
            PLACE(AT(pick), own);
            own_at = pick;
            known = own;
            known_at = own_at
        :: else
        fi;
        goto again
    }

conforms:
    atomic {
        lead = CLAIM_LEAD(known, now);
        if
        :: lead + UNIT > LIMIT -> lead = 0; verdict = REFUSED; goto answered
        :: else -> lead = 0
        fi;
#ifdef NO_DROP
        goto commit
#endif
    }
drop_higher:
    atomic {
        if
        :: i < SLOTS && AT(i) <= AT(known_at) -> i++; goto drop_higher
        :: i == SLOTS -> i = 0; goto commit
        :: else
        fi
    }
    atomic {
        DIE;
        word = slot[AT(i)];
        if
        :: CLAIM_OF(word, key) -> goto drop_it
        :: LIVE_OF(word, key) -> goto again
        :: else -> word = 0; i++; goto drop_higher
        fi
    }
drop_it:
    atomic {
        DIE;
        if
        :: slot[AT(i)] == word -> PLACE(AT(i), DROPPED(word))
#ifndef DROP_IGNORED
        :: else -> goto again
#else
        :: else
#endif
        fi;
        word = 0;
        i++;
        goto drop_higher
    }

commit: /* Not below its claim, unless that took over a debt. */
    atomic {
        DIE;
        if
        :: slot[AT(known_at)] == known ->
            lead = CLAIM_LEAD(known, now) + UNIT;
            stored = UNIT;
#ifndef REFUND_WHOLE
            stored = MIN(UNIT, MAX(lead - LEAD(known, now), 0));
#endif
            if
            :: !ODD(known) -> lead = MAX(lead, LEAD(known, now))
            :: else
            fi;
            tat = now + lead;
            permit_at = known_at;
            PLACE(AT(known_at), LIVE(key, tat));
            own = 0;
            lead = 0;
            charged(UNIT);
            verdict = ADMITTED;
            goto answered
        :: else -> goto again
        fi
    }

charge:
    atomic {
        DIE;
        lead = LEAD(word, now);
        if
        :: lead + UNIT > LIMIT -> lead = 0; verdict = REFUSED; goto answered
#ifdef EQUAL_WORD
        :: lead + UNIT <= LIMIT && slot[AT(pick)] != word && slot[AT(pick)] == LIVE(key, now + lead + UNIT) ->
            lead = 0;
            charged(UNIT);
            verdict = ADMITTED;
            goto answered
#endif
#ifdef UNDO_UNCHARGED
        :: lead + UNIT <= LIMIT && slot[AT(pick)] != word && chained && lead > 0 ->
            before = word;
            tat = now + lead + UNIT;
            after_it = LIVE(key, tat);
            stored = UNIT;
            permit_at = pick;
            net[key] = net[key] + UNIT;
            lead = 0;
            verdict = ADMITTED;
            goto answered
#endif
#ifdef BLIND_CHARGE
        :: lead + UNIT <= LIMIT ->
#else
        :: lead + UNIT <= LIMIT && slot[AT(pick)] == word ->
#endif
            tat = now + lead + UNIT;
            stored = UNIT;
            permit_at = pick;
            if
#ifdef RESTORE_EXPIRED
            :: chained -> before = word; after_it = LIVE(key, tat)
#else
            :: chained && lead > 0 -> before = word; after_it = LIVE(key, tat)
#endif
            :: else
            fi;
            lead = 0;
            PLACE(AT(pick), LIVE(key, tat));
            charged(UNIT);
            verdict = ADMITTED;
            goto answered
        :: else ->
            lead = 0;
            word = slot[AT(pick)];
            if
            :: LIVE_OF(word, key) -> goto charge
            :: else -> goto again
            fi
        fi
    }

answered: /* An own claim that is not committed is dropped; whoever was faster is right. */
    atomic {
        i = 0;
        pick = 0;
        word = 0;
        known = 0;
        known_at = 0;
        for (j : 0 .. SLOTS - 1) { seen[j] = 0 }
        j = 0;
        if
        :: own == 0 -> goto after
        :: else
        fi
    }
    atomic {
        DIE;
        if
        :: slot[AT(own_at)] == own -> PLACE(AT(own_at), DROPPED(own))
        :: else
        fi;
        own = 0
    }

after:
    atomic {
        own_at = 0;
        if
        :: refunds && verdict == ADMITTED -> refunds = 0
        :: chained && verdict == ADMITTED -> chained = 0
        :: else -> goto done
        fi
    }
restore:
    atomic {
        DIE;
        if
#ifdef RESTORE_BLIND
        :: after_it != 0 ->
#else
        :: after_it != 0 && slot[AT(permit_at)] == after_it ->
#endif
            PLACE(AT(permit_at), before);
            before = 0;
            after_it = 0;
#ifndef RESTORE_TWICE
            net[key] = net[key] - UNIT;
            goto refunded
#endif
#ifdef RESTORE_ONLY
        :: after_it != 0 && slot[AT(permit_at)] != after_it ->
            net[key] = net[key] - UNIT;
            before = 0;
            after_it = 0;
            goto refunded
#endif
        :: else -> before = 0; after_it = 0
        fi
    }
refund_load:
    atomic {
        DIE;
        word = slot[AT(permit_at)];
        if
        :: !LIVE_OF(word, key) -> word = 0; goto refunded
        :: else
        fi
    }
refund_swap:
    atomic {
        DIE;
        lead = MIN(MIN(stored, MAX(tat - now, 0)), LEAD(word, now));
        if
        :: lead > 0 && slot[AT(permit_at)] == word ->
            PLACE(AT(permit_at), LIVE(key, now + LEAD(word, now) - lead));
            net[key] = net[key] - lead;
            lead = 0;
            word = 0
        :: lead == 0 -> word = 0
        :: else -> lead = 0; word = 0; goto refund_load
        fi
    }
refunded:
    atomic {
        tat = 0;
        stored = 0;
        permit_at = 0;
        if
        :: script == 2 -> script = 1; verdict = 0; goto begin
        :: else
        fi
    }

done:
    atomic {
        if
        :: solo && now >= LATE -> assert(verdict == ADMITTED)
        :: else
        fi
    }
dead:
    atomic {
        ended++;
        key = 0; now = 0; script = 0; home = 0; i = 0; j = 0; pick = 0; best = 0; looks = 0; verdict = 0;
        for (j : 0 .. SLOTS - 1) { seen[j] = 0 }
        j = 0;
        word = 0; lead = 0; own = 0; known = 0; own_at = 0; known_at = 0; tat = 0; stored = 0; permit_at = 0;
        refunds = 0; chained = 0; before = 0; after_it = 0
    }
}

/* A caller of the world. */
inline start(k, ahead, script) {
    if
    :: NOW + ahead < first -> first = NOW + ahead
    :: else
    fi;
    if
    :: NOW + ahead > last -> last = NOW + ahead
    :: else
    fi;
    run caller(k, NOW + ahead, script, 0)
}

#ifdef WORLD
#define IN(n) WORLD == n
#else
#define IN(n) true
#endif

init {
    short sum;
    byte k;
    atomic {
        if
#ifndef INHERIT
        :: IN(1) -> /* one key, a slot that expires between the clocks, refunds */
            slot[0] = LIVE(Z, NOW + 1);
            start(X, 0, 2); start(X, 2, 0); start(X, 2, 1)
        :: IN(2) -> /* two keys, whose homes differ, and two slots that expire at different instants */
            slot[0] = LIVE(Z, NOW + 1); slot[PER_LINE] = LIVE(Z, NOW + 2);
            start(X, 0, 0); start(X, 2, 1); start(Y, 1, 1)
        :: IN(3) -> /* claims that the dead have left, of both keys, one expired for one clock alone */
            slot[0] = CLAIM(Y, NOW + 2); slot[PER_LINE] = CLAIM(X, NOW + 4);
            start(X, 0, 0); start(X, 3, 1); start(Y, 3, 0)
        :: IN(4) -> /* the key's own expired word in the line that is not its home */
            slot[PER_LINE] = LIVE(X, NOW + 1);
            start(X, 0, 0); start(X, 2, 2); start(X, 1, 0)
#if UNITS > 2
        :: IN(8) -> /* a link of a chain that is taken back, beside a refund and a charge of its key */
            slot[0] = LIVE(X, NOW + 8); slot[PER_LINE] = LIVE(Z, NOW + 1);
            start(X, 0, 3); start(X, 2, 2); start(X, 9, 1)
        :: IN(10) -> /* the same, of a link whose word has expired for its clock alone */
            slot[0] = LIVE(X, NOW + 1); slot[PER_LINE] = LIVE(Z, NOW + 1);
            start(X, 2, 3); start(X, 0, 2); start(X, 2, 1)
#endif
#else
#if UNITS > 2
        :: IN(9) -> /* a link of a chain whose slot a stranger takes over */
            slot[0] = LIVE(X, NOW + 8); slot[PER_LINE] = LIVE(Z, NOW + 120);
            start(X, 0, 3); start(X, 0, 1); start(Y, 0, 1)
#endif
        :: IN(5) -> /* three keys' worth of debt for two callers of one key and one of another */
            slot[0] = LIVE(Z, NOW + 10); slot[PER_LINE] = LIVE(Z, NOW + 21);
            start(X, 0, 0); start(X, 0, 1); start(Y, 0, 0)
        :: IN(6) -> /* a debt that a takeover given up has left */
            slot[0] = LIVE(Z, NOW + 11); slot[PER_LINE] = NOW + 7;
            start(X, 0, 0); start(Y, 0, 1); start(Y, 0, 0)
        :: IN(7) -> /* clocks apart: a debt that is there for one of them and has drained for the others */
            slot[0] = LIVE(Z, NOW + 1); slot[PER_LINE] = LIVE(Z, NOW + 10);
            start(X, 0, 0); start(X, 2, 1); start(Y, 3, 0)
#endif
        fi;
        for (k : 0 .. SLOTS - 1) {
            owed = owed + LEAD(slot[k], NOW);
            highest[k] = PAYLOAD(slot[k]) * IS_CLAIM(slot[k])
        }
        k = 0
    }
    ended == 3;
    /* Every unit that was charged and not given back lies in a word. */
    atomic {
#ifndef INHERIT
        for (k : 0 .. SLOTS - 1) {
            sum = sum | (LIVE_OF(slot[k], X) && PAYLOAD(slot[k]) >= first + net[X]) << X;
            sum = sum | (LIVE_OF(slot[k], Y) && PAYLOAD(slot[k]) >= first + net[Y]) << Y
        }
        assert(net[X] == 0 || sum >> X & 1);
        assert(net[Y] == 0 || sum >> Y & 1);
        /* Nor does a word carry what was not charged, or what was given back. */
        for (k : 0 .. SLOTS - 1) {
            assert(!LIVE_OF(slot[k], X) || PAYLOAD(slot[k]) <= last + owed + net[X]);
            assert(!LIVE_OF(slot[k], Y) || PAYLOAD(slot[k]) <= last + owed + net[Y])
        }
#else
        for (k : 0 .. SLOTS - 1) { sum = sum + LEAD(slot[k], NOW) }
        /* A caller that is ahead may take a slot whose debt the one behind still counts: what drains in between. */
        assert(sum + SLOTS * (last - first) >= owed + net[X] + net[Y]);
#endif
        sum = 0;
        k = 0;
        run caller(X, last, 0, 1)
    }
    ended == 4;
    run caller(X, LATE, 0, 1);
    ended == 5;
    run caller(Y, LATE, 0, 1);
    ended == 6
}
