// SPDX-License-Identifier: MIT OR Apache-2.0
// Limiter, Cell, Chain and Decision: the answers of the library arrive as they are.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { Cell, Chain, Limiter, network } = require('tatcell');
const { SECOND, numbers, times } = require('./common.js');

test('a burst passes, and then one unit per interval', () => {
  const limiter = new Limiter('10/s burst 3', { keys: 100 });
  const hit = (key, now) => limiter.hit(key, 1, { now });
  assert.deepEqual(times(5, () => hit('a', 0)), [true, true, true, false, false]);
  assert.equal(hit('a', SECOND / 10n - 1n), false);
  assert.equal(hit('a', SECOND / 10n), true);
  assert.equal(hit('a', Number(SECOND / 10n)), false);
  assert.equal(hit('b', 0), true);
});

test('the monotonic clock is the default', () => {
  const limiter = new Limiter('1/h burst 2', { keys: 100 });
  assert.deepEqual(times(3, () => limiter.hit('a')), [true, true, false]);
  const { retryAfter } = limiter.peek('a');
  assert.ok(retryAfter > 3590 && retryAfter <= 3600, `${retryAfter}`);
  // It is that of process.hrtime.
  assert.equal(limiter.test('a', 1, { now: process.hrtime.bigint() + 3500n * SECOND }), false);
  assert.equal(limiter.test('a', 1, { now: process.hrtime.bigint() + 3601n * SECOND }), true);
});

test('test and peek charge nothing, and check does', () => {
  const limiter = new Limiter('10/s burst 2', { keys: 100 });
  const now = { now: 0 };
  assert.ok(times(9, () => limiter.test('a', 1, now)).every(Boolean));
  assert.equal(limiter.peek('a', 1, now).remaining, 2);
  assert.equal(limiter.check('a', 1, now).remaining, 1);
  assert.equal(limiter.check('a', 1, now).remaining, 0);
  assert.equal(limiter.test('a', 1, now), false);
  const refused = limiter.check('a', 1, now);
  assert.deepEqual({ ...refused }, {
    passes: false, verdict: 'refused', cost: 1, burst: 2, remaining: 0, retryAfter: 0.1, resetAfter: 0.2,
    tracked: true, link: 0,
  });
});

test('a cost above the burst never passes', () => {
  const decision = new Limiter('10/s burst 5', { keys: 100 }).check('a', 6, { now: 0 });
  assert.deepEqual([decision.verdict, decision.retryAfter, decision.remaining], ['never', Infinity, 5]);
});

test('reset gives the burst back', () => {
  const limiter = new Limiter('10/s burst 3', { keys: 100 });
  const now = { now: SECOND };
  assert.ok(limiter.hit('a', 3, now) && !limiter.hit('a', 1, now));
  assert.equal(limiter.reset('a', now), true);
  assert.ok(limiter.hit('a', 3, now));
});

test('keys of one spelling are one key', () => {
  const limiter = new Limiter('1/h burst 1', { keys: 1000 });
  const hit = (key) => limiter.hit(key, 1, { now: 0 });
  const long = 'ä'.repeat(30);
  const word = Buffer.alloc(8);
  new BigUint64Array(word.buffer, word.byteOffset, 1)[0] = 7n;
  const pairs = [
    ...['a', 'ä', '日本', '😀'].map((key) => [key, Buffer.from(key)]),
    [long, Buffer.from(long)], ['x'.repeat(47), Buffer.from('x'.repeat(47))], [7, word], [-1, 2n ** 64n - 1n],
    [-5, -5n], [2 ** 53 - 1, 2n ** 53n - 1n], [-(2 ** 53) + 1, -(2n ** 53n) + 1n], [2 ** 32, 2n ** 32n], [8, 8n],
    ['\ud800', '\ufffd'],
  ];
  for (const [first, second] of pairs) assert.deepEqual([hit(first), hit(second)], [true, false], String(first));
  assert.deepEqual([hit(''), hit(Buffer.alloc(0)), hit(new Uint8Array(0))], [true, false, false]);
  assert.deepEqual([hit('7'), hit('x'.repeat(48)), hit('x'.repeat(46)), hit('a\0'), hit('\0')], times(5, () => true));
  assert.ok(hit(new Uint8Array([1, 2, 3, 4]).subarray(1, 3)) && !hit(Buffer.from([2, 3])));
});

test('a string key has any length', () => {
  const limiter = new Limiter('1/h burst 1', { keys: 1000 });
  for (const length of [48, 49, 1000, 31743, 31744, 31745, 40000, 2_000_000, 100]) {
    for (const letter of ['k', 'ü', '日']) {
      const key = letter.repeat(length);
      assert.ok(limiter.hit(key), `${length} ${letter}`);
      assert.ok(!limiter.hit(Buffer.from(key)) && !limiter.hit(key), `${length} ${letter}, as bytes`);
      assert.ok(limiter.hit(`${key.slice(0, -1)}.`), `${length} ${letter}, another last one`);
    }
  }
});

for (const algorithm of ['gcra', 'fixed-window', 'sliding-counter', 'quota-linear', 'decay']) {
  test(`${algorithm} admits its units`, () => {
    const eleven = [...times(10, () => true), false];
    const limiter = new Limiter('10/min', { keys: 100, algorithm, full: 'deny' });
    assert.deepEqual(times(11, () => limiter.hit('a', 1, { now: SECOND })), eleven);
    const cell = new Cell('10/min', { algorithm });
    assert.deepEqual(times(11, () => cell.hit(1, { now: SECOND })), eleven);
  });
}

test('a key stays free when its word would wrap', () => {
  const limiter = new Limiter('10/s burst 20', { keys: 1000 });
  const chain = new Chain(limiter);
  const at = (second) => ({ now: BigInt(second) * SECOND });
  assert.ok(limiter.hit('a', 20, at(1)));
  // Words of this table wrap after 2.4 hours.
  for (let second = 10; second < 30_000; second += 3) {
    assert.ok(limiter.hit('b', 1, at(second)) && limiter.test('a', 20, at(second)), `${second}`);
  }
  assert.ok(limiter.hit('a', 20, at(30_000)));
  for (let second = 30_010; second < 60_000; second += 3) {
    assert.ok(chain.hit('b', 1, at(second)) && chain.test('a', 20, at(second)), `${second}`);
  }
  assert.ok(limiter.hit('a', 20, at(60_000)));
  for (let second = 60_010; second < 90_000; second += 3) assert.ok(limiter.hitMany(['b'], 1, at(second))[0]);
  for (let second = 8790; second < 8800; second++) assert.ok(limiter.peek('a', 20, at(60_000 + second)).passes);
});

test('a quiet table is swept in time', () => {
  const limiter = new Limiter('5/15min');
  const random = numbers(29);
  // One call in ten minutes: no key can be over the limit. Each comes back after hours or days.
  for (let call = 0; call < 6000; call++) {
    assert.ok(limiter.hit(random(150), 1, { now: BigInt(call * 600) * SECOND }), `call ${call}`);
  }
});

const HOUR = 3600n * SECOND;
// Just before words of nanoseconds wrap, so that old debts count once more, some times; and long silences.
const SILENCES = [1n, 2n, 3n, 14n, 982n].map((k) => k * 2n ** 43n - SECOND)
  .concat([1n, 3n, 36n, 2400n].map((hours) => hours * HOUR));

for (const limit of ['10/s burst 20', '5/15min', '7/3s burst 20', '1000000/s burst 20', '1/h burst 2']) {
  test(`nobody waits for an old debt after a silence: ${limit}`, () => {
    const limiter = new Limiter(limit, { keys: 1000 });
    const chain = new Chain(limiter);
    let now = SECOND;
    const { burst } = limiter.check('first', 1, { now });
    const asks = [limiter, chain].flatMap((one) => [
      (key) => one.test(key, burst, { now }), (key) => one.peek(key, burst, { now }).passes,
      (key) => one.hit(key, burst, { now }), (key) => one.check(key, burst, { now }).passes,
    ]);
    asks.push((key) => limiter.hitMany([key], burst, { now })[0]);
    const least = limit === '1/h burst 2' ? 2n * HOUR : HOUR;
    for (const silence of SILENCES) {
      asks.forEach((ask, i) => {
        for (let key = 0; key < 30; key++) limiter.hit(key, burst, { now });
        now += silence > least ? silence : least;
        assert.ok(ask(7), `${silence} ${i}`);
        assert.ok(limiter.hit(8, burst, { now }) && !limiter.hit(8, 1, { now }), `${silence} ${i}`);
      });
    }
  });
}

test('a look at another time forgets no debt', () => {
  const limiter = new Limiter('1/h burst 2', { keys: 100 });
  const chain = new Chain(limiter);
  const start = 1_000_000n * SECOND;
  const day = 24n * 3600n * SECOND;
  const looks = [limiter, chain].flatMap((one) => [one.test.bind(one), one.peek.bind(one)]);
  looks.forEach((look, key) => {
    assert.ok(limiter.hit(key, 2, { now: start }));
    for (const now of [start + day, 0, start - day]) {
      look('other', 1, { now });
      assert.equal(limiter.test(key, 1, { now: start }), false);
    }
  });
  // Nor does a charge by an older clock.
  const old = { now: start - 10n * day };
  limiter.hit('other', 1, old);
  limiter.check('other', 1, old);
  chain.hit('other', 1, old);
  limiter.reset('other', old);
  limiter.hitMany(['other'], 1, old);
  assert.equal(limiter.peek(0, 1, { now: start }).remaining, 0);
});

test('a clock that jumps back refuses nobody for longer than it jumped', () => {
  const start = 1_000_000n * SECOND;
  for (const back of [SECOND / 10n, SECOND, 60n * SECOND, 3600n * SECOND, 86_400n * SECOND]) {
    const limiter = new Limiter('10/s burst 2', { keys: 100 });
    assert.ok(limiter.hit('a', 2, { now: start }));
    const now = start - back;
    assert.ok(limiter.hit('b', 2, { now }), 'a fresh key');
    assert.ok(limiter.peek('a', 2, { now }).retryAfter <= Number(back) / 1e9 + 0.2, `${back}`);
    assert.ok(limiter.hit('a', 2, { now: start + SECOND / 5n }));
  }
});

test('a full table asks its policy', () => {
  const answers = {};
  for (const full of ['admit', 'deny']) {
    const limiter = new Limiter('1/h burst 1', { keys: 1, full });
    answers[full] = times(2000, (i) => limiter.check(i, 1, { now: 0 }));
  }
  // A few keys may share the state of a key that has a slot.
  assert.ok(answers.admit.filter(({ passes }) => passes).length > 1990);
  assert.ok(!answers.admit.every(({ tracked }) => tracked));
  assert.ok(!answers.deny.every(({ passes }) => passes));
});

test('a cell is a limiter with one key', () => {
  const cell = new Cell('2/s burst 2');
  const now = { now: 0 };
  assert.deepEqual([cell.hit(1, now), cell.test(1, now), cell.check(1, now).passes, cell.hit(1, now)],
    [true, true, true, false]);
  assert.equal(cell.peek(1, now).retryAfter, 0.5);
  cell.reset();
  assert.ok(cell.hit(2n, now));
});

test('a chain charges all or none', () => {
  const address = new Limiter('10/s burst 2', { keys: 100 });
  const user = new Limiter('10/s burst 9', { keys: 100 });
  const everybody = new Cell('10/s burst 9');
  const chain = new Chain(address, user, everybody);
  const now = { now: 0 };
  assert.deepEqual(times(3, () => chain.hit(['192.0.2.1', 7], 1, now)), [true, true, false]);
  assert.deepEqual([user.peek(7, 1, now).remaining, everybody.peek(1, now).remaining], [7, 7]);
  const refused = chain.check(['192.0.2.1', 7], 1, now);
  assert.deepEqual([refused.verdict, refused.link], ['refused', 0]);
  assert.ok(chain.test(['192.0.2.2', 7], 1, now) && chain.peek(['192.0.2.2', 7], 1, now).link === 0);
  assert.equal(chain.check(['192.0.2.2', 7], 10, now).verdict, 'never');
  assert.equal(user.peek(7, 1, now).remaining, 7);
});

test('a chain keeps its limits alive', () => {
  const chain = new Chain(new Limiter('10/s burst 2', { keys: 100 }), new Cell('10/s burst 9'));
  const now = { now: 0 };
  global.gc();
  assert.deepEqual(times(3, () => chain.hit('a', 1, now)), [true, true, false]);
  assert.match(chain.check(['b'], 1, now).headers()['RateLimit-Policy'], /q=2;w=1, "limit-2";q=9;w=1$/);
});

test('header fields come from the library', () => {
  const limiter = new Limiter('10/s burst 3', { keys: 100 });
  const now = { now: 0 };
  assert.deepEqual(limiter.check('a', 1, now).headers(), {
    'RateLimit-Policy': '"default";q=3;w=1',
    RateLimit: '"default";r=2;t=1',
  });
  assert.deepEqual(limiter.check('a', 3, now).headers({ names: ['say "hi"'], legacy: true }), {
    'RateLimit-Policy': '"say \\"hi\\"";q=3;w=1',
    RateLimit: '"say \\"hi\\"";r=2;t=1',
    'Retry-After': '1',
    'X-RateLimit-Limit': '3',
    'X-RateLimit-Remaining': '2',
    'X-RateLimit-Reset': '1',
  });
  const chain = new Chain(limiter, new Cell('1/min burst 1'));
  const both = chain.check('b', 1, now);
  assert.equal(both.headers({ names: ['address', 'all'] }).RateLimit, '"address";r=2;t=1, "all";r=0;t=60');
  assert.equal(both.headers().RateLimit, '"limit-1";r=2;t=1, "limit-2";r=0;t=60');
  const long = 'n'.repeat(1024);
  assert.equal(limiter.check('c', 1, now).headers({ names: [long] }).RateLimit, `"${long}";r=2;t=1`);
  for (const [names, error] of [[[''], RangeError], [['ä'], RangeError], [['a', 'b'], RangeError], [[1], TypeError],
    ['a', TypeError]]) {
    assert.throws(() => limiter.check('d', 1, now).headers({ names }), error);
  }
});

test('header fields of what never passes, of a peek of nothing, and of long times', () => {
  const limiter = new Limiter('10/s burst 3', { keys: 100 });
  assert.equal(limiter.check('a', 4, { now: 0 }).headers()['Retry-After'], undefined);
  assert.ok(limiter.hit('a', 3, { now: 0 }));
  assert.equal(limiter.peek('a', 0, { now: 0 }).headers()['Retry-After'], undefined);
  const year = new Cell('1/300d burst 9', {});
  assert.ok(year.hit(9, { now: 0 }));
  const later = year.check(1, { now: 1 });
  // A nanosecond less than 300 days, rounded up to whole seconds.
  assert.equal(later.headers()['Retry-After'], String(300 * 86400));
  assert.equal(year.check(1, { now: 300n * 86400n * SECOND - 1n }).headers()['Retry-After'], '1');
});

test('networks of one prefix are one key', () => {
  const same = (a, b) => a.equals(b);
  assert.ok(!same(network('192.0.2.1'), network('192.0.2.2')));
  assert.ok(same(network('192.0.2.1', 24), network('192.0.2.2', 24)));
  assert.ok(same(network('2001:db8::1'), network('2001:db8::2')));
  assert.ok(!same(network('2001:db8::1'), network('2001:db8:0:1::1')));
  assert.ok(same(network('::ffff:192.0.2.1'), network('192.0.2.1')));
  assert.deepEqual([...network('192.0.2.1', 24)], [4, 24, 192, 0, 2]);
  for (const text of ['', '192.0.2', '192.0.2.1/24', 'fe80::1%eth0', 'host', 'ä']) {
    assert.throws(() => network(text), { name: 'RangeError', message: /no address/ });
  }
  assert.throws(() => network('192.0.2.1', 33), { name: 'RangeError', message: /v4Bits/ });
  assert.throws(() => network('192.0.2.1', 32, 129), { name: 'RangeError', message: /v6Bits/ });
  assert.throws(() => network(5), TypeError);
});

test('objects say what they are', () => {
  const limiter = new Limiter('1.5k/min burst 20', { keys: 100 });
  assert.deepEqual([limiter.limit, limiter.keys, limiter.name], ['1500/60s burst 20', 100, undefined]);
  assert.equal(limiter.closed, false);
  assert.ok(limiter.memory > 800 && limiter.memory < 10_000);
  limiter.close();
  assert.ok(limiter.closed && limiter.memory === 0 && limiter.limit === '1500/60s burst 20');
  assert.equal(new Cell('1/3ms').limit, '1/3000000ns burst 1');
  assert.ok(new Limiter('1/s').memory > 2 ** 21 && new Limiter('1/s').keys === 100_000);
});

test('the vectors of other projects, byte for byte', () => {
  const file = path.join(__dirname, 'vectors.tsv');
  const rows = fs.readFileSync(file, 'utf8').split('\n').filter((line) => line && !line.startsWith('#'));
  const cells = new Map();
  const verdicts = { pass: 'ok', refused: 'deny', never: 'never' };
  const ns = (seconds) => String(Math.round(seconds * 1e9));
  for (const row of rows) {
    const [vector, interval, burst, step, now, cost, , , , , ...rest] = row.split('\t');
    const limit = `1/${interval}ns burst ${burst}`;
    const name = vector + limit;
    if (!cells.has(name)) cells.set(name, [new Cell(limit), new Limiter(limit, { keys: 10 })]);
    const [cell, limiter] = cells.get(name);
    const call = [BigInt(cost), { now: BigInt(now) }];
    const answers = [cell.check(...call)];
    // Some intervals are too short for a table.
    if (Number(interval) >= 1000) answers.push(limiter.check(vector, ...call));
    for (const { verdict, remaining, resetAfter, retryAfter } of answers) {
      const retry = { pass: '', refused: ns(retryAfter), never: 'never' }[verdict];
      const made = [verdicts[verdict], remaining, ns(resetAfter), retry];
      assert.equal([vector, interval, burst, step, now, cost, ...made, ...rest].join('\t'), row);
    }
  }
  assert.ok(rows.length > 30);
});
