// SPDX-License-Identifier: MIT OR Apache-2.0
// Limiter, Cell and Chain.
'use strict';

const native = require('./native.js');
const { Decision } = require('./decision.js');
const { FULL, PEEK, describe, load, loadAll, loadCall, scratch, verdicts } = require('./scratch.js');

// In the order of the library.
const ALGORITHMS = ['gcra', 'fixed-window', 'sliding-counter', 'quota-linear', 'decay'];
const POLICIES = ['admit', 'inherit', 'deny', 'sampled'];
const BURST = 64;

function choice(what, choices, value) {
  const at = choices.indexOf(value);
  if (at >= 0) return at;
  if (typeof value !== 'string') throw new TypeError(`${what} is a string, not ${describe(value)}`);
  throw new RangeError(`${what} is '${value}': choose one of '${choices.join("', '")}'`);
}

function text(what, value) {
  if (typeof value === 'string') return value;
  throw new TypeError(`${what} is a string, not ${describe(value)}`);
}

function options(given, known) {
  if (given === null || typeof given !== 'object') {
    throw new TypeError(`options are an object such as { ${known[0]} }, not ${describe(given)}`);
  }
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) throw new TypeError(`there is no option '${name}': there are ${known.join(', ')}`);
  }
  return given;
}

// The addon drops what it has for an object when the object is collected.
const collected = new FinalizationRegistry((handle) => native.forget(handle));

// The number that the addon knows a limiter, a cell or a chain by. Decisions and chains keep it, and so the limit.
class Owned {
  constructor(handle) {
    this.handle = handle;
    collected.register(this, handle);
  }
}

// For each class, a function that reads the private list of what the addon has for the limits of an object.
const ownedOf = new Map();
const ownedBy = (limit) => [...ownedOf].find(([kind]) => limit instanceof kind)[1](limit);

class Limiter {
  #owned;
  #handle;
  #limits;
  #keys;
  #name;

  constructor(limit, given = {}) {
    const { keys, name, algorithm, full } = options(given, ['keys', 'name', 'algorithm', 'full']);
    this.#keys = keys ?? 100_000;
    if (typeof this.#keys !== 'number') throw new TypeError(`keys is a number, not ${describe(keys)}`);
    if (!Number.isSafeInteger(this.#keys) || this.#keys < 1) {
      throw new RangeError(`keys is ${keys}: pass how many keys are over idle at the same time`);
    }
    this.#name = name;
    if (name !== undefined && text('name', name) === '') throw new RangeError("name is empty: pass one such as '/api'");
    this.#handle = native.limiter(
      scratch,
      text('limit', limit),
      choice('algorithm', ALGORITHMS, algorithm ?? 'gcra'),
      this.#keys,
      name ?? '',
      choice('full', POLICIES, full ?? 'admit'),
    );
    this.#owned = new Owned(this.#handle);
    this.#limits = [this.#owned];
  }

  hit(key, cost, given) {
    if (cost === undefined && given === undefined) return native.decide(this.#handle, 0, load(key)) === 0;
    const how = loadCall(cost, given);
    return native.decide(this.#handle, how, load(key)) === 0;
  }

  test(key, cost, given) {
    const how = loadCall(cost, given) | PEEK;
    return native.decide(this.#handle, how, load(key)) === 0;
  }

  check(key, cost, given) {
    const how = loadCall(cost, given) | FULL;
    native.decide(this.#handle, how, load(key));
    return new Decision(this.#limits, 0);
  }

  peek(key, cost, given) {
    const how = loadCall(cost, given) | PEEK;
    native.decide(this.#handle, how, load(key));
    return new Decision(this.#limits, 0);
  }

  reset(key, given) {
    const how = loadCall(undefined, given);
    return native.reset(this.#handle, how, load(key));
  }

  hitMany(keys, cost, given) {
    if (ArrayBuffer.isView(keys)) return this.#hitArray(keys, cost, given);
    if (keys === null || typeof keys !== 'object' || !(Symbol.iterator in keys)) {
      throw new TypeError(`hitMany takes an array of keys, not ${describe(keys)}; hit takes one key`);
    }
    // Getters and iterators of the program run now, and not between two keys.
    const all = [...keys];
    const passed = new Array(all.length);
    const how = loadCall(cost, given);
    for (let from = 0; from < all.length; from += BURST) {
      const count = Math.min(BURST, all.length - from);
      loadAll(all, from, count);
      native.burst(this.#handle, how, count);
      verdicts(passed, from, count);
    }
    return passed;
  }

  #hitArray(keys, cost, given) {
    const [width, kind] = rows(keys, given?.keyLength);
    const how = loadCall(cost, given, 'keyLength');
    const view = new Uint8Array(keys.buffer, keys.byteOffset, keys.byteLength);
    // The addon takes no memory that other threads may change.
    const bytes = view.buffer instanceof ArrayBuffer ? view : new Uint8Array(view);
    const passed = new Uint8Array(bytes.length / width);
    native.rows(this.#handle, how, bytes, width, kind, passed);
    return passed;
  }

  close() {
    native.close(this.#handle);
  }

  static unlink(name) {
    native.unlink(text('name', name));
  }

  get limit() {
    return native.limit(this.#handle);
  }

  get keys() {
    return this.#keys;
  }

  get name() {
    return this.#name;
  }

  get memory() {
    return native.memory(this.#handle);
  }

  get closed() {
    return this.memory === 0;
  }

  static {
    ownedOf.set(Limiter, (limiter) => limiter.#limits);
  }
}

// Returns the bytes of a key in an array, and how the addon reads them.
function rows(keys, keyLength) {
  if (keys instanceof Uint8Array || keys instanceof Uint8ClampedArray) {
    if (!Number.isSafeInteger(keyLength) || keyLength < 1) {
      throw new TypeError('hitMany takes a Buffer of keys of one length: pass { keyLength }; hit takes one key');
    }
    if (keys.length % keyLength !== 0) {
      throw new RangeError(`${keys.length} bytes are no whole number of keys of ${keyLength} bytes`);
    }
    return [keyLength, 0];
  }
  if (keyLength !== undefined) throw new TypeError('keyLength is for a Buffer: an array of numbers has a key in each');
  const kind = NUMBERS.get(Object.prototype.toString.call(keys).slice(8, -1));
  if (kind === undefined) {
    throw new TypeError(`an array of keys has whole numbers of 16 to 64 bits, or bytes, not ${describe(keys)}`);
  }
  return [keys.BYTES_PER_ELEMENT, kind];
}

// 1: numbers without a sign; 2: with one.
const NUMBERS = new Map([
  ['BigUint64Array', 1], ['BigInt64Array', 2], ['Uint32Array', 1], ['Int32Array', 2], ['Uint16Array', 1],
  ['Int16Array', 2],
]);

class Cell {
  #owned;
  #handle;
  #limits;

  constructor(limit, given = {}) {
    const { algorithm } = options(given, ['algorithm']);
    this.#handle = native.cell(scratch, text('limit', limit), choice('algorithm', ALGORITHMS, algorithm ?? 'gcra'));
    this.#owned = new Owned(this.#handle);
    this.#limits = [this.#owned];
  }

  hit(cost, given) {
    return native.decide(this.#handle, loadCall(cost, given), 0) === 0;
  }

  test(cost, given) {
    return native.decide(this.#handle, loadCall(cost, given) | PEEK, 0) === 0;
  }

  check(cost, given) {
    native.decide(this.#handle, loadCall(cost, given) | FULL, 0);
    return new Decision(this.#limits, 0);
  }

  peek(cost, given) {
    native.decide(this.#handle, loadCall(cost, given) | PEEK, 0);
    return new Decision(this.#limits, 0);
  }

  reset() {
    native.reset(this.#handle, 0, 0);
  }

  get limit() {
    return native.limit(this.#handle);
  }

  static {
    ownedOf.set(Cell, (cell) => cell.#limits);
  }
}

class Chain {
  #owned;
  #handle;
  #limits;
  #keys;

  constructor(...limits) {
    if (limits.length < 1 || limits.length > 8) {
      throw new RangeError(`a chain has 1 to 8 limits, not ${limits.length}`);
    }
    this.#limits = limits.map((limit) => {
      if (limit instanceof Limiter || limit instanceof Cell) return ownedBy(limit)[0];
      throw new TypeError(`a chain takes Limiter and Cell objects, not ${describe(limit)}`);
    });
    this.#keys = limits.filter((limit) => limit instanceof Limiter).length;
    this.#handle = native.chain(scratch, this.#limits.map(({ handle }) => handle));
    this.#owned = new Owned(this.#handle);
  }

  #ask(bits, keys, cost, given) {
    const all = Array.isArray(keys) ? [...keys] : keys === undefined ? [] : [keys];
    if (all.length !== this.#keys) {
      throw new TypeError(
        `${all.length} keys for ${this.#keys} limiters: pass an array with one key for each Limiter, none for a Cell`,
      );
    }
    const how = loadCall(cost, given) | bits;
    loadAll(all, 0, all.length);
    return native.decide(this.#handle, how, 0);
  }

  #decision() {
    return wholeAnswer(this.#limits);
  }

  hit(keys, cost, given) {
    return this.#ask(0, keys, cost, given) === 0;
  }

  test(keys, cost, given) {
    return this.#ask(PEEK, keys, cost, given) === 0;
  }

  check(keys, cost, given) {
    this.#ask(FULL, keys, cost, given);
    return this.#decision();
  }

  peek(keys, cost, given) {
    this.#ask(PEEK, keys, cost, given);
    return this.#decision();
  }

  get limiters() {
    return this.#keys;
  }

  static {
    ownedOf.set(Chain, (chain) => chain.#limits);
  }
}

// Reads the answer of a chain, and those of its limits.
const wholeAnswer = (limits) => new Decision(limits, 0, limits.map((limit, i) => new Decision([limit], i + 1)));

// Throws if the limits of an object cannot have these names in header fields. It makes the fields of whatever answer is
// in the scratch.
function checkNames(limit, names) {
  wholeAnswer(ownedBy(limit)).headers({ names });
}

module.exports = { Cell, Chain, Limiter, checkNames, options };
