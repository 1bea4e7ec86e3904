// SPDX-License-Identifier: MIT OR Apache-2.0
'use strict';

const native = require('./native.js');
const { answer, describe, putAnswer, scratch } = require('./scratch.js');

const VERDICTS = ['pass', 'refused', 'never', 'contended'];
const TRACKED = 1;

// The full answer to one request. Times are seconds; index.d.ts describes the fields.
class Decision {
  #limits; // the objects that have the limits
  #flags;
  #retryAfter; // in nanoseconds, because the header fields round them up
  #resetAfter;
  #each; // of a chain, the decisions of its links

  // Reads an answer of the addon.
  constructor(limits, index, each) {
    const verdict = answer(index, 0);
    this.#limits = limits;
    this.#each = each;
    this.#flags = answer(index, 1);
    this.#retryAfter = answer(index, 6);
    this.#resetAfter = answer(index, 7);
    this.passes = verdict === 0;
    this.verdict = VERDICTS[verdict];
    this.cost = answer(index, 3);
    this.burst = answer(index, 4);
    this.remaining = answer(index, 5);
    this.retryAfter = this.#retryAfter / 1e9;
    this.resetAfter = this.#resetAfter / 1e9;
    this.tracked = (this.#flags & TRACKED) !== 0;
    this.link = answer(index, 2);
  }

  // Returns the numbers as the addon stored them.
  #numbers() {
    const verdict = VERDICTS.indexOf(this.verdict);
    const units = [this.cost, this.burst, this.remaining];
    return [verdict, this.#flags, this.link, ...units, this.#retryAfter, this.#resetAfter];
  }

  headers({ names, legacy = false } = {}) {
    const each = this.#each ?? [this];
    const given = names ?? (each.length === 1 ? ['default'] : each.map((_, i) => `limit-${i + 1}`));
    if (!Array.isArray(given)) throw new TypeError(`names are an array of strings, not ${describe(given)}`);
    if (given.length !== each.length) {
      throw new RangeError(`${given.length} names for ${each.length} limits: pass one for each, or none`);
    }
    for (const name of given) {
      if (typeof name !== 'string') throw new TypeError(`a name is a string, not ${describe(name)}`);
      if (name === '') throw new RangeError('a name must not be empty');
    }
    each.forEach((decision, i) => putAnswer(i + 1, decision.#numbers()));
    const fields = native.fields(scratch, this.#limits.map(({ handle }) => handle), given, Boolean(legacy));
    const headers = {};
    for (let i = 0; i < fields.length; i += 2) headers[fields[i]] = fields[i + 1];
    return headers;
  }
}

module.exports = { Decision };
