// SPDX-License-Identifier: MIT OR Apache-2.0
// hitMany: the answers of single calls, from lists and from arrays.
'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');
const { Limiter } = require('tatcell');
const { SECOND, numbers, times } = require('./common.js');

const random = numbers(29);

/** Whether two tables gave the same answers. Two of thousands of keys may share a state, by the seed of a table. */
function same(one, other) {
  assert.equal(one.length, other.length);
  return one.filter((passes, i) => passes !== other[i]).length <= 4;
}

function spelled(number, form) {
  return [`user${number}`, number, Buffer.from(`raw${number}`), BigInt(number), `ü${number}`.repeat(20)][form];
}

for (const count of [0, 1, 63, 64, 65, 128, 1000]) {
  test(`a list of ${count} is decided as single calls are`, () => {
    const many = new Limiter('10/s burst 3', { keys: 1000 });
    const single = new Limiter('10/s burst 3', { keys: 1000 });
    for (let now = 0n; now < SECOND; now += SECOND / 7n) {
      const keys = times(count, () => spelled(random(50), random(5)));
      assert.deepEqual(many.hitMany(keys, 1, { now }), keys.map((key) => single.hit(key, 1, { now })));
      const set = new Set(keys);
      assert.deepEqual(many.hitMany(set, 2, { now }), [...set].map((key) => single.hit(key, 2, { now })));
    }
  });
}

for (const Numbers of [BigUint64Array, BigInt64Array, Uint32Array, Int32Array, Uint16Array, Int16Array]) {
  test(`a ${Numbers.name} has the keys of numbers`, () => {
    const low = Numbers.name.includes('U') ? 0 : -100;
    for (const count of [0, 1, 63, 64, 65, 10_000]) {
      const values = times(count, () => low + random(5000));
      const keys = Numbers.from(values, Numbers.name.startsWith('Big') ? BigInt : Number);
      const many = new Limiter('10/s burst 1', { keys: 10_000 });
      const single = new Limiter('10/s burst 1', { keys: 10_000 });
      const passed = many.hitMany(keys, 1, { now: 0 });
      assert.ok(passed instanceof Uint8Array);
      assert.ok(same([...passed].map(Boolean), Array.from(keys, (key) => single.hit(Number(key), 1, { now: 0 }))));
      const part = keys.subarray(1, count - 1);
      const again = many.hitMany(part, 1, { now: SECOND });
      assert.ok(same([...again].map(Boolean), Array.from(part, (key) => single.hit(Number(key), 1, { now: SECOND }))));
      const shared = new Numbers(new SharedArrayBuffer(keys.byteLength));
      shared.set(keys);
      assert.ok(same([...many.hitMany(shared, 1, { now: 2n * SECOND })].map(Boolean),
        Array.from(keys, (key) => single.hit(Number(key), 1, { now: 2n * SECOND }))));
    }
  });
}

test('rows of bytes are keys', () => {
  for (const keyLength of [1, 4, 8, 16, 33]) {
    const rows = times(1000, () => Buffer.alloc(keyLength).fill(random(100)));
    const many = new Limiter('10/s burst 2', { keys: 1000 });
    const single = new Limiter('10/s burst 2', { keys: 1000 });
    const passed = many.hitMany(Buffer.concat(rows), 1, { now: 0, keyLength });
    assert.deepEqual([...passed].map(Boolean), rows.map((row) => single.hit(row, 1, { now: 0 })));
    assert.deepEqual([...many.hitMany(Buffer.concat(rows), 2, { now: SECOND, keyLength })].map(Boolean),
      rows.map((row) => single.hit(row, 2, { now: SECOND })));
  }
});

test('memory that threads share has keys, too', () => {
  const limiter = new Limiter('10/s burst 1', { keys: 1000 });
  const shared = Buffer.from(new SharedArrayBuffer(8)).fill('abcdabcd');
  assert.deepEqual([...limiter.hitMany(shared, 1, { now: 0, keyLength: 4 })], [1, 0]);
  assert.equal(limiter.hit(shared.subarray(0, 4), 1, { now: 0 }), false);
});

test('a cost is that of each key', () => {
  const limiter = new Limiter('10/s burst 9', { keys: 1000 });
  const now = { now: 0 };
  assert.deepEqual(limiter.hitMany(['a', 'a', 'b'], 5, now), [true, false, true]);
  assert.deepEqual([...limiter.hitMany(new Uint32Array([1, 1, 2]), 5n, now)], [1, 0, 1]);
  assert.deepEqual(limiter.hitMany(times(130, (i) => `x${i % 65}`), 5, now), times(130, (i) => i < 65));
  for (const keys of [['a'], new Uint32Array(1)]) {
    assert.throws(() => limiter.hitMany(keys, 2 ** 32), { name: 'RangeError', message: /4294967295/ });
  }
});

test('long keys stand next to each other', () => {
  const limiter = new Limiter('10/s burst 1', { keys: 1000 });
  const keys = times(200, (i) => `${'k'.repeat(i * 50)}${i}`);
  assert.deepEqual(limiter.hitMany(keys, 1, { now: 0 }), times(200, () => true));
  assert.ok(keys.every((key) => !limiter.hit(Buffer.from(key), 1, { now: 0 })));
});

test('what is no list of keys is named', () => {
  const limiter = new Limiter('10/s burst 2', { keys: 100 });
  for (const bad of [1.5, null, [], {}, true]) {
    assert.throws(() => limiter.hitMany([...times(200, () => 'a'), bad]), /a key is|a number as key/);
  }
  for (const bad of ['abc', 5, null, undefined, {}]) {
    assert.throws(() => limiter.hitMany(bad), { name: 'TypeError', message: /hit takes one key/ });
  }
  for (const bad of [new Float64Array(3), new Int8Array(3), new DataView(new ArrayBuffer(8))]) {
    assert.throws(() => limiter.hitMany(bad), { name: 'TypeError', message: /whole numbers of 16 to 64 bits/ });
  }
  for (const keyLength of [undefined, 0, -1, 1.5, '4', NaN]) {
    const call = () => limiter.hitMany(Buffer.alloc(8), 1, { keyLength });
    assert.throws(call, { name: 'TypeError', message: /keyLength/ });
  }
  const odd = () => limiter.hitMany(Buffer.alloc(9), 1, { keyLength: 4 });
  assert.throws(odd, { name: 'RangeError', message: /9 bytes/ });
  assert.throws(() => limiter.hitMany(new Uint32Array(2), 1, { keyLength: 4 }), TypeError);
  const moved = new Uint32Array(4);
  structuredClone(moved.buffer, { transfer: [moved.buffer] });
  assert.throws(() => limiter.hitMany(moved), TypeError);
});
