// SPDX-License-Identifier: MIT OR Apache-2.0
'use strict';

const fs = require('node:fs');
const { randomUUID } = require('node:crypto');
const { Limiter } = require('tatcell');

const SECOND = 1_000_000_000n;

/** A name for shared memory, which goes at the end of the test. */
function sharedName(t) {
  const name = `/tatcell-test-${randomUUID()}`;
  t.after(() => {
    for (const file of fs.existsSync('/dev/shm') ? fs.readdirSync('/dev/shm') : []) {
      if (`/${file}`.startsWith(name)) Limiter.unlink(`/${file}`);
    }
  });
  return name;
}

/** Random whole numbers below `end`, the same ones in each run (xorshift of 32 bits). */
function numbers(seed) {
  let state = seed;
  return (end) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % end;
  };
}

const times = (count, call) => Array.from({ length: count }, (_, i) => call(i));

module.exports = { SECOND, numbers, sharedName, times };
