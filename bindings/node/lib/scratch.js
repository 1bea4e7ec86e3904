// SPDX-License-Identifier: MIT OR Apache-2.0
// The buffer in which keys go to the addon and answers come back: src/scratch.rs has the same numbers.
'use strict';

const { endianness } = require('node:os');
const { isUint8Array } = require('node:util/types');
const native = require('./native.js');

const ANSWERS = 16 / 8; // places of the views below
const ANSWER = 8;
const LENGTHS = 592 / 4;
const VERDICTS = 848 / 4;
const KEYS = 1024;
// The low half of a number of 64 bits.
const LOW = endianness() === 'LE' ? 0 : 1;

// Bits of `how`.
const PEEK = 1;
const COST = 2;
const NOW = 4;
const FULL = 8;

// Keys up to this length are copied by a loop, which is faster than a call of Node.
const SHORT = 48;

// Offsets stay below 2**31, so that operators of 32 bits are exact.
const MOST = 2 ** 30;

// A buffer that is larger goes back after the call that needed it.
const KEPT = 2 ** 20;

// The length of an array. A subclass may have a `length` of its own, which may run code of the program.
const lengthOf = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), 'length').get;

let bytes, halves, floats, longs;

// Takes a buffer that the addon has.
function take(buffer) {
  bytes = buffer;
  halves = new Uint32Array(bytes.buffer);
  floats = new Float64Array(bytes.buffer);
  longs = new BigUint64Array(bytes.buffer);
}
const first = Buffer.from(new ArrayBuffer(1 << 15));
const scratch = native.scratch(first);
take(first);

let shrinks = false;
// Nothing in the buffer is for a later call.
function shrink() {
  shrinks = false;
  native.replace(scratch, first);
  take(first);
}

// Makes room for a key that begins at `at`. The addon points into the old buffer until it has the new one, so nothing
// that can throw stands between `replace` and `take`.
function room(at, length) {
  if (at + length <= bytes.length) return;
  if (at + length > MOST) throw new RangeError('the keys of one call take at most 2**30 bytes: hash a long one');
  const larger = Buffer.from(new ArrayBuffer((at + length + 0xffff) & ~0xffff));
  larger.set(bytes);
  native.replace(scratch, larger);
  take(larger);
  if (larger.length > KEPT && !shrinks) {
    shrinks = true;
    setImmediate(shrink).unref();
  }
}

function describe(value) {
  if (value === null) return 'null';
  if (typeof value === 'number') return `${value}`;
  if (typeof value === 'object' || typeof value === 'function') return value.constructor?.name ?? typeof value;
  return typeof value;
}

// Puts any other key than a short ASCII string at byte `at`, and returns its length.
function other(key, at) {
  if (typeof key === 'string') {
    const most = 3 * key.length;
    room(at, most <= 4096 ? most : Buffer.byteLength(key));
    return bytes.write(key, at, 'utf8');
  }
  if (isUint8Array(key)) {
    const length = lengthOf.call(key);
    room(at, length);
    if (length <= SHORT) for (let i = 0; i < length; i++) bytes[at + i] = key[i];
    else bytes.set(key, at);
    return length;
  }
  if (typeof key === 'number') {
    if (!Number.isSafeInteger(key)) {
      throw new RangeError(`a number as key is whole, and its size at most 2**53 - 1, not ${key}`);
    }
    halves[at / 4 + LOW] = key;
    halves[at / 4 + 1 - LOW] = Math.floor(key / 2 ** 32);
    return 8;
  }
  if (typeof key === 'bigint') {
    if (BigInt.asUintN(64, key) !== key && BigInt.asIntN(64, key) !== key) {
      throw new RangeError('a bigint as key has at most 64 bits, -(2n**63n) to 2n**64n - 1n: pass its bytes');
    }
    longs[at / 8] = BigInt.asUintN(64, key);
    return 8;
  }
  throw new TypeError(`a key is a string, a Buffer, a whole number or a bigint, not ${describe(key)}`);
}

// Puts a key at byte `at`, a multiple of 8 with room for a short one, and returns its length.
function put(key, at) {
  if (typeof key === 'string') {
    const length = key.length;
    if (length <= SHORT) {
      let i = 0;
      for (; i < length; i++) {
        const code = key.charCodeAt(i);
        if (code > 127) return other(key, at);
        bytes[at + i] = code;
      }
      return length;
    }
  }
  return other(key, at);
}

// Puts the only key of a call.
const load = (key) => put(key, KEYS);

// Puts several keys one after the other, and their lengths.
function loadAll(keys, from, count) {
  let at = KEYS;
  for (let i = 0; i < count; i++) {
    if (at + SHORT > bytes.length) room(at, SHORT);
    const length = put(keys[from + i], at);
    halves[LENGTHS + i] = length;
    at = (at + length + 7) & ~7;
  }
}

function unsigned(name, value) {
  const type = typeof value;
  if (type === 'number') {
    if (!Number.isInteger(value)) throw new RangeError(`${name} is a whole number, not ${value}`);
    if (value > Number.MAX_SAFE_INTEGER) throw new RangeError(`${name} is ${value}, above 2**53 - 1: pass a bigint`);
  } else if (type !== 'bigint') {
    throw new TypeError(`${name} is a whole number or a bigint, not ${describe(value)}`);
  }
  const big = BigInt(value);
  if (big < 0n || big >= 1n << 64n) throw new RangeError(`${name} is 0 to 2**64 - 1, not ${value}`);
  return big;
}

// Puts cost and clock of a call, and returns its bits. Options may run code of the program, so they are read first.
// `other` is the name of an option that the caller reads.
function loadCall(cost, options, other) {
  if (options !== undefined && (options === null || typeof options !== 'object')) {
    throw new TypeError(`options are an object such as { now }, not ${describe(options)}`);
  }
  for (const name in options) {
    if (name !== 'now' && name !== other) {
      throw new TypeError(`there is no option '${name}': there ${other ? `are now and ${other}` : 'is now'}`);
    }
  }
  const given = options?.now;
  const now = given === undefined ? undefined : unsigned('now', given);
  if (now !== undefined) longs[1] = now;
  if (cost === undefined) return now === undefined ? 0 : NOW;
  longs[0] = unsigned('cost', cost);
  return now === undefined ? COST : COST | NOW;
}

// One of the 8 numbers of answer 0 to 8.
const answer = (index, place) => floats[ANSWERS + ANSWER * index + place];

// Puts an answer back.
const putAnswer = (index, numbers) => floats.set(numbers, ANSWERS + ANSWER * index);

// Copies the verdicts of a burst.
function verdicts(out, from, count) {
  const low = halves[VERDICTS + LOW];
  const high = halves[VERDICTS + 1 - LOW];
  for (let i = 0; i < count; i++) out[from + i] = ((i < 32 ? low >>> i : high >>> (i - 32)) & 1) === 1;
}

// Reads the text of an address as a key, and returns the key of its network; undefined if it is none.
function network(address, v4Bits, v6Bits) {
  const length = native.network(scratch, load(address), v4Bits, v6Bits);
  return length === 0 ? undefined : Buffer.from(bytes.subarray(KEYS, KEYS + length));
}

module.exports = {
  PEEK, FULL, answer, describe, load, loadAll, loadCall, network, putAnswer, scratch, verdicts,
};
