// SPDX-License-Identifier: MIT OR Apache-2.0
// Times tatcell and other limiters of npm, and prints a table in Markdown, then the version of Node.
//
// Every limiter gets the same limit, 10 a second and 20 at once, and the same keys, 100 000 addresses as strings. Where
// a limiter has no burst of its own, it is its kind's nearest: 20 in 2 seconds. Each runs in a process of its own:
//
// 1. one key     one key asked again and again, so most requests are refused
// 2. all keys    each key once, twice over: the keys are in memory by the second time
// 3. bytes       what the process grew by, for a key: all keys had their first request, and all state is still needed
//
// A time is the least of five runs, and their median. What returns a promise is awaited, as a server does.
'use strict';

const { spawnSync } = require('node:child_process');
const { readFileSync } = require('node:fs');
const path = require('node:path');

const KEYS = 100_000;
const RUNS = 5;
const addresses = () => Array.from({ length: KEYS }, (_, n) => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);

const limiter = () => new (require('tatcell').Limiter)('10/s burst 20', { keys: KEYS });

function hits() {
  const one = limiter();
  return (key) => one.hit(key);
}

function checks() {
  const one = limiter();
  return (key) => one.check(key);
}

function flexible(kind) {
  const { BurstyRateLimiter, RateLimiterMemory } = require('rate-limiter-flexible');
  const memory = (points, duration, keyPrefix) => new RateLimiterMemory({ points, duration, keyPrefix });
  const one = kind === 'bursty' ? new BurstyRateLimiter(memory(10, 1), memory(10, 2, 'burst')) : memory(20, 2);
  return async (key) => {
    try {
      await one.consume(key);
      return true;
    } catch {
      return false;
    }
  };
}

function express() {
  const { MemoryStore } = require('express-rate-limit');
  const store = new MemoryStore();
  store.init({ windowMs: 2000 });
  return async (key) => (await store.increment(key)).totalHits <= 20;
}

function buckets() {
  const { TokenBucket } = require('limiter');
  const all = new Map();
  return (key) => {
    let bucket = all.get(key);
    if (bucket === undefined) {
      bucket = new TokenBucket({ bucketSize: 20, tokensPerInterval: 10, interval: 'second' });
      bucket.content = 20; // it starts empty
      all.set(key, bucket);
    }
    return bucket.tryRemoveTokens(1);
  };
}

// Name, package, what it decides by, how it is made, whether it is awaited.
const LIMITERS = [
  ['tatcell, `hit`', 'tatcell', 'GCRA', hits, false],
  ['tatcell, `hit`, keys as Buffers', 'tatcell', 'GCRA', hits, false, Buffer.from],
  ['tatcell, `check` (all numbers)', 'tatcell', 'GCRA', checks, false],
  ['rate-limiter-flexible', 'rate-limiter-flexible', 'fixed window', () => flexible('memory'), true],
  ['rate-limiter-flexible, bursty', 'rate-limiter-flexible', 'two fixed windows', () => flexible('bursty'), true],
  ['express-rate-limit', 'express-rate-limit', 'fixed window', express, true],
  ['limiter in a Map', 'limiter', 'token bucket, one object a key', buckets, false],
];

// The least of the times of a call, and their median, in nanoseconds.
async function timed(work, calls) {
  const times = [];
  for (let run = 0; run < RUNS; run++) {
    const start = process.hrtime.bigint();
    await work();
    times.push(Number(process.hrtime.bigint() - start) / calls);
  }
  times.sort((a, b) => a - b);
  return `${times[0].toFixed(0)} (${times[RUNS >> 1].toFixed(0)})`;
}

// In a process of its own. Loops that await and loops that do not are different functions.
async function measure(index) {
  const [, , , make, awaited, spell = String] = LIMITERS[index];
  const keys = addresses().map((key) => spell(key));
  make()(keys[0]);
  global.gc();
  const before = process.memoryUsage().rss;
  const hit = make();
  const every = awaited
    ? async () => { for (let i = 0; i < KEYS; i++) await hit(keys[i]); }
    : () => { for (let i = 0; i < KEYS; i++) hit(keys[i]); };
  const one = awaited
    ? async () => { for (let i = 0; i < 20_000; i++) await hit(keys[0]); }
    : () => { for (let i = 0; i < 20_000; i++) hit(keys[0]); };
  await every();
  global.gc();
  const bytes = (process.memoryUsage().rss - before) / KEYS;
  const all = await timed(every, KEYS);
  console.log(JSON.stringify({ bytes, all, one: await timed(one, 20_000) }));
  process.exit();
}

async function bursts() {
  const one = limiter();
  const keys = addresses();
  const numbers = BigUint64Array.from(keys, (_, n) => BigInt(n));
  const rows = Buffer.concat(keys.map((key) => Buffer.from(key.split('.').map(Number))));
  for (const [name, work] of [
    ['an array of strings', () => one.hitMany(keys)],
    ['a BigUint64Array', () => one.hitMany(numbers)],
    ['a Uint32Array', (numbers32 => () => one.hitMany(numbers32))(Uint32Array.from(keys, (_, n) => n))],
    ['a Buffer of 4 bytes a key', () => one.hitMany(rows, 1, { keyLength: 4 })],
  ]) {
    work();
    console.log(`| tatcell, \`hitMany\`, ${name} | GCRA | | ${await timed(work, KEYS)} | the same |`);
  }
}

function version(name) {
  return JSON.parse(readFileSync(path.join(__dirname, 'node_modules', name, 'package.json'), 'utf8')).version;
}

async function main() {
  if (process.argv[2] !== undefined) return measure(Number(process.argv[2]));
  console.log('| Limiter | Decides by | one key, ns | each of 100 000 keys, ns | bytes a key |\n|---|---|---|---|---|');
  LIMITERS.forEach(([name, from, kind], index) => {
    const args = ['--expose-gc', __filename, index];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`${name}: ${stderr}`);
    const row = JSON.parse(stdout);
    const [title, rest] = name.split(/(?=,)/);
    const shown = from === 'tatcell' ? name : `${title.replace(from, `${from} ${version(from)}`)}${rest ?? ''}`;
    // The growth of the process includes objects that are garbage by then.
    const bytes = name.startsWith('tatcell,') && index > 0 ? 'the same' : row.bytes.toFixed(0);
    console.log(`| ${shown} | ${kind} | ${row.one} | ${row.all} | ${bytes} |`);
  });
  await bursts();
  console.log(`\nNode ${process.versions.node}`);
}

main();
