// SPDX-License-Identifier: MIT OR Apache-2.0
// Wrong arguments throw a RangeError or a TypeError that says what to change; nothing crashes.
'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');
const { Cell, Chain, Decision, Limiter } = require('tatcell');
const { numbers, times } = require('./common.js');

test('a wrong limit says where', () => {
  for (const [limit, says] of [
    ['', /byte 0: a number is missing/], ['10', /byte 2: "\/" and a time/], ['10/parsec', /byte 3: not a unit of time/],
    ['/s', /byte 0/], ['10/s burst', /byte 10/], ['99999999999999999999/s', /byte 0: the number is too large/],
    ['0/s', /byte 0: the number is 0/], ['1/0s', /byte 2/], ['1/s burst 0', /byte 10: the number is 0/],
    ['1/s burst 1000000000000', /make its burst smaller/], ['10/s\0', /byte 4/], ['1000000000000/s', /rate|burst/],
  ]) {
    assert.throws(() => new Limiter(limit, { keys: 10 }), { name: 'RangeError', message: says }, limit);
  }
  assert.throws(() => new Cell('10/parsec'), { name: 'RangeError', message: /^limit "10\/parsec": byte 3/ });
});

test('wrong options list the right ones', () => {
  for (const [options, name, says] of [
    [{ algorithm: 'x' }, 'RangeError', /'gcra', 'fixed-window'/],
    [{ full: 'x' }, 'RangeError', /full is 'x': choose one of 'admit', 'inherit'/],
    [{ keys: 0 }, 'RangeError', /keys is 0/], [{ keys: -1 }, 'RangeError', /keys is -1/],
    [{ keys: 1.5 }, 'RangeError', /keys is 1.5/], [{ keys: NaN }, 'RangeError', /keys is NaN/],
    [{ keys: 2 ** 52 }, 'RangeError', /no table is large enough/], [{ keys: 2 ** 70 }, 'RangeError', /keys is/],
    [{ keys: '5' }, 'TypeError', /keys is a number/], [{ keys: 5n }, 'TypeError', /keys is a number, not bigint/],
    [{ huge: 1 }, 'TypeError', /'huge'/], [{ algorithm: 1 }, 'TypeError', /algorithm is a string/],
    [{ name: 5 }, 'TypeError', /name is a string/], [5, 'TypeError', /options/], [null, 'TypeError', /options/],
    [{ algorithm: 'fixed-window', full: 'inherit' }, 'RangeError', /cannot be inherited: choose "admit"/],
  ]) {
    assert.throws(() => new Limiter('10/s', options), { name, message: says });
  }
  const decay = () => new Limiter('10/s burst 20', { algorithm: 'decay' });
  assert.throws(decay, { name: 'RangeError', message: /only "gcra"/ });
  const parts = (Kind) => new Kind('1.5/s', { algorithm: 'decay' });
  for (const Kind of [Limiter, Cell]) {
    assert.throws(() => parts(Kind), { name: 'RangeError', message: /whole units, such as "3\/2s"/ });
  }
  for (const limit of [undefined, 1, null, Buffer.from('10/s')]) assert.throws(() => new Limiter(limit), TypeError);
  assert.throws(() => Limiter('10/s'), TypeError);
});

test('a limit that does not fit says what to change', () => {
  for (const [Kind, limit, algorithm, says] of [
    [Cell, '1000000000000/s', 'decay', /use larger units$/], [Limiter, '1000000000000/s', 'decay', /use larger units$/],
    [Cell, '5/s burst 1000000000000', 'gcra', /burst too large: make it smaller$/],
    [Limiter, '1000000000/s', 'decay', /burst too large: make it smaller$/],
    [Cell, '1/5000w', 'decay', /make it shorter or smaller$/],
    [Limiter, '1/5000w', 'decay', /make it shorter or smaller$/],
    [Limiter, '1000000000/s', 'gcra', /it needs 2000 ms of horizon, and a table has 1073 ms at this rate/],
  ]) {
    assert.throws(() => new Kind(limit, { algorithm }), { name: 'RangeError', message: says }, `${Kind.name} ${limit}`);
  }
});

test('wrong calls say what there is, and charge nothing', () => {
  const limiter = new Limiter('10/s burst 20', { keys: 100 });
  const chain = new Chain(limiter);
  const cell = new Cell('10/s burst 20');
  const calls = ['hit', 'test', 'check', 'peek'];
  for (const [key, name, says] of [
    [undefined, 'TypeError', /a key is a string/], [null, 'TypeError', /not null/], [1.5, 'RangeError', /whole/],
    [NaN, 'RangeError', /NaN/], [Infinity, 'RangeError', /Infinity/], [2 ** 53, 'RangeError', /2\*\*53 - 1/],
    [2n ** 64n, 'RangeError', /64 bits/], [-(2n ** 63n) - 1n, 'RangeError', /64 bits/], [{}, 'TypeError', /Object/],
    [['a'], 'TypeError', /Array/], [true, 'TypeError', /boolean/], [Symbol('a'), 'TypeError', /symbol/],
    [new Uint16Array(3), 'TypeError', /Uint16Array/], [new ArrayBuffer(3), 'TypeError', /ArrayBuffer/],
    [new Proxy(Buffer.from('a'), {}), 'TypeError', /a key is/],
  ]) {
    for (const call of calls) {
      assert.throws(() => limiter[call](key), { name, message: says }, `${call} ${says}`);
      if (key !== undefined && !Array.isArray(key)) assert.throws(() => chain[call]([key]), { name, message: says });
    }
    assert.throws(() => limiter.reset(key), { name });
  }
  for (const [cost, name, says] of [
    [-1, 'RangeError', /cost is 0 to/], [1.5, 'RangeError', /whole/], [NaN, 'RangeError', /NaN/],
    [2 ** 53, 'RangeError', /cost .* above 2\*\*53 - 1: pass a bigint/], [2n ** 64n, 'RangeError', /cost is 0 to/],
    [-1n, 'RangeError', /0 to/],
    ['1', 'TypeError', /not string/], [null, 'TypeError', /not null/], [{ now: 1 }, 'TypeError', /not Object/],
  ]) {
    for (const call of calls) {
      assert.throws(() => limiter[call]('a', cost), { name, message: says }, `${call} ${says}`);
      assert.throws(() => cell[call](cost), { name, message: says });
      assert.throws(() => chain[call]('a', cost), { name, message: says });
    }
    assert.throws(() => limiter.hitMany(['a'], cost), { name, message: says });
  }
  for (const [options, name, says] of [
    [{ now: -1 }, 'RangeError', /now is 0 to/], [{ now: 1.5 }, 'RangeError', /now is a whole/],
    [{ now: 2n ** 64n }, 'RangeError', /now/], [{ now: 'x' }, 'TypeError', /now/], [5, 'TypeError', /options/],
    [null, 'TypeError', /options/], [{ now: null }, 'TypeError', /now/],
    [{ now: Date.now() * 1e6 }, 'RangeError', /now .* above 2\*\*53 - 1: pass a bigint/],
    [{ now: -(2 ** 60) }, 'RangeError', /now is 0 to/],
    [{ Now: 5 }, 'TypeError', /there is no option 'Now': there is now/], [{ cost: 5 }, 'TypeError', /'cost'/],
    [{ now: 5, keyLength: 4 }, 'TypeError', /'keyLength'/],
  ]) {
    for (const call of calls) {
      assert.throws(() => limiter[call]('a', 1, options), { name, message: says });
      assert.throws(() => cell[call](1, options), { name, message: says });
    }
    assert.throws(() => limiter.reset('a', options), { name });
    assert.throws(() => limiter.hitMany(['a'], 1, options), { name });
  }
  assert.equal(limiter.peek('a').remaining, 20);
  assert.equal(cell.peek().remaining, 20);
});

test('costs are numbers or bigints', () => {
  const limiter = new Limiter('1GB/s burst 64kB', { keys: 100 });
  const now = { now: 0 };
  assert.ok(limiter.hit('a', 32_000, now) && limiter.hit('a', 32_000n, now) && !limiter.hit('a', 1n, now));
  assert.equal(limiter.check('a', 2n ** 64n - 1n, now).verdict, 'never');
  assert.ok(limiter.check('a', 2n ** 64n - 1n, now).cost <= 2 ** 64);
  assert.ok(limiter.hit('a', 0, { now: 10 }) && limiter.hit('b', undefined, now));
});

test('closed objects throw', () => {
  const limiter = new Limiter('10/s', { keys: 10 });
  const chain = new Chain(limiter);
  const decision = limiter.check('a');
  limiter.close();
  limiter.close();
  for (const call of [
    () => limiter.hit('a'), () => limiter.test('a'), () => limiter.peek('a'), () => limiter.check('a'),
    () => limiter.reset('a'), () => limiter.hitMany(['a']), () => limiter.hitMany(new Uint32Array(3)),
    () => chain.hit('a'), () => chain.peek('a'), () => new Chain(limiter),
  ]) {
    assert.throws(call, { name: 'Error', message: /closed: make a new one/ });
  }
  assert.match(decision.headers().RateLimit, /r=9/);
});

test('chains take what they say', () => {
  const limiter = new Limiter('10/s', { keys: 10 });
  const cell = new Cell('1/s');
  assert.throws(() => new Chain(), RangeError);
  assert.throws(() => new Chain(...times(9, () => cell)), { name: 'RangeError', message: /1 to 8 limits, not 9/ });
  for (const other of [5, null, undefined, {}, new Chain(cell)]) {
    assert.throws(() => new Chain(limiter, other), TypeError);
  }
  const chain = new Chain(limiter, cell);
  for (const keys of [[], ['a', 'b'], undefined]) {
    assert.throws(() => chain.hit(keys), { name: 'TypeError', message: /one key for each Limiter/ });
  }
  // One cell twice is one charge of both costs.
  assert.equal(new Chain(cell, cell).hit([], 1, { now: 0 }), false);
  assert.ok(new Chain(cell).hit(undefined, 1, { now: 0 }));
});

test('methods of one class do not take another, nor can a Decision be made', () => {
  assert.throws(() => Limiter.prototype.hit.call(new Cell('1/s'), 'a'), TypeError);
  assert.throws(() => new Decision().headers(), Error);
});

test('code that runs while arguments are read does no harm', () => {
  const limiter = new Limiter('10/s burst 9', { keys: 100 });
  const other = new Limiter('10/s burst 5', { keys: 100 });
  const options = {
    get now() {
      other.check('inner', 5, { now: 1_000_000 });
      return 0;
    },
  };
  assert.equal(limiter.check('outer', 2, options).remaining, 7);
  function* keys() {
    for (let i = 0; i < 100; i++) {
      other.hit(`inner ${i}`);
      yield `outer ${i}`;
    }
  }
  assert.equal(limiter.hitMany(keys(), 9, { now: 0 }).filter(Boolean).length, 100);
  const array = times(100, (i) => `more ${i}`);
  Object.defineProperty(array, 70, { get() { array.length = 0; limiter.close(); return 'gone'; } });
  assert.throws(() => limiter.hitMany(array), /closed/);
});

test('arrays that lie about their length are keys of the length that they have', () => {
  class Liar extends Uint8Array {
    get length() { return this.said; }
  }
  const limiter = new Limiter('1/w', { keys: 100 });
  const now = { now: 0 };
  // The buffer of the keys grows first, so that it is not the one of the start.
  limiter.hit(Buffer.alloc(100_000), 1, now);
  [0, 1, -1, NaN, 2 ** 32, 2 ** 53, Infinity, 'x', undefined].forEach((said, i) => {
    for (const length of [4, 200]) {
      const key = Object.assign(new Liar(length).fill(i + 1), { said });
      assert.ok(limiter.hit(key, 1, now), `${said}`);
      assert.ok(!limiter.hit(Buffer.alloc(length, i + 1), 1, now), `${said}`);
    }
  });
  // Code that runs while a list is read would overwrite the keys before it.
  const nested = new Liar(1);
  Object.defineProperty(nested, 'length', { get() { return limiter.hit('other', 1, now) ? 1 : 1; } });
  assert.deepEqual(limiter.hitMany(['mine', nested], 1, now), [true, true]);
  assert.deepEqual([limiter.hit('mine', 1, now), limiter.hit('other', 1, now)], [false, true]);
});

test('a key that is too long leaves the buffer of the keys as it was', () => {
  const limiter = new Limiter('1/w', { keys: 100 });
  const now = { now: 0 };
  limiter.hit(Buffer.alloc(100_000), 1, now);
  // Pages that nobody writes take no memory.
  for (const length of [2 ** 30, 2 ** 32 - 65536, 2 ** 32]) {
    let key;
    try {
      key = new Uint8Array(length);
    } catch {
      continue; // an older Node has no array as long
    }
    assert.throws(() => limiter.hit(key, 1, now), { name: 'RangeError', message: /2\*\*30 bytes/ });
    assert.throws(() => limiter.hitMany(['first', key], 1, now), { name: 'RangeError', message: /2\*\*30 bytes/ });
    const name = `after ${length}`;
    assert.deepEqual([limiter.hit(name, 1, now), limiter.hit(name, 1, now)], [true, false]);
    assert.ok(limiter.hit(`more ${length}`, 1, now));
  }
});

test('a long key does not keep its memory', async () => {
  const resident = () => process.memoryUsage().rss;
  const limiter = new Limiter('1/w', { keys: 100 });
  const long = () => limiter.hit('x'.repeat(100e6), 1, { now: 0 });
  const settle = async () => {
    for (let i = 0; i < 5; i++) {
      global.gc();
      await new Promise(setImmediate);
    }
  };
  await settle();
  const before = resident();
  assert.ok(long());
  await settle();
  assert.ok(resident() - before < 50e6, `${(resident() - before) / 1e6} MB`);
  // It is the same key as before, and others are what they were.
  assert.ok(!long() && limiter.hit('short', 1, { now: 0 }) && !limiter.hit('short', 1, { now: 0 }));
  await settle();
  assert.ok(!limiter.hit('short', 1, { now: 0 }) && limiter.peek('other', 1, { now: 0 }).passes);
});

test('random calls throw or answer', () => {
  const random = numbers(29);
  const one = (list) => list[random(list.length)];
  const values = [
    () => 'key', () => Buffer.alloc(random(300), 'k'), () => random(2 ** 32) - 2 ** 31, () => null, () => 1.5,
    () => times(random(200), () => one(values.slice(0, 4))()), () => new BigUint64Array(8), () => new Float64Array(3),
    () => undefined, () => ({}), () => 2n ** BigInt(random(70)), () => 'ü'.repeat(random(40_000)), () => '\ud800',
    () => true, () => new Map([[1, 2]]), () => ({ now: random(2 ** 31) }), () => ({ keyLength: random(9) }),
  ];
  const limits = ['10/s burst 20', '1/ns', '7/w', '1GB/s burst 64kB', '1/1000w', '5/17ms burst 3'];
  const names = ['hit', 'test', 'check', 'peek', 'reset', 'hitMany', 'close', 'limit', 'nothing'];
  let things = [];
  let answered = 0;
  let threw = 0;
  for (let turn = 0; turn < 10_000; turn++) {
    try {
      if (turn % 100 === 0) {
        things = [new Cell(one(limits))];
        things.push(new Limiter(one(limits), { keys: one([1, 10, 1000]) }));
        things.push(new Chain(...times(1 + random(8), () => one(things))));
      }
      const thing = one(things);
      thing[one(names)](...times(random(4), () => one(values)()));
      answered++;
    } catch (error) {
      assert.ok(error instanceof Error && error.message, String(error));
      threw++;
    }
  }
  assert.ok(answered > 500 && threw > 500, `${answered} answered, ${threw} threw`);
});

test('what JavaScript has no more is forgotten', async () => {
  const resident = () => process.memoryUsage().rss;
  // Some megabytes each, all of them used.
  const round = async () => {
    for (let i = 0; i < 20; i++) {
      const limiter = new Limiter('10/s burst 20', { keys: 50_000 });
      limiter.hitMany(new Uint32Array(100_000).map((_, at) => at));
      new Chain(limiter, new Cell('1/s')).check('a').headers();
    }
    for (let i = 0; i < 5; i++) {
      global.gc();
      await new Promise(setImmediate);
    }
  };
  await round();
  const before = resident();
  for (let i = 0; i < 5; i++) await round();
  // Limiters that stayed would be 200 MB.
  assert.ok(resident() - before < 100e6, `${(resident() - before) / 1e6} MB`);
});
