// SPDX-License-Identifier: MIT OR Apache-2.0
// Threads and processes: together they admit exactly the burst.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { spawn, spawnSync } = require('node:child_process');
const { Worker } = require('node:worker_threads');
const { Limiter } = require('tatcell');
const { SECOND, numbers, sharedName } = require('./common.js');

const WORK = `
const { Limiter } = require('tatcell');
const work = (name) => {
  const limiter = new Limiter('1/h burst 1000', { keys: 100, name });
  let passed = 0;
  for (let i = 0; i < 2000; i++) passed += limiter.hit('one', 1, { now: 10 ** 9 });
  return passed;
};
`;

const sum = (counts) => counts.reduce((all, count) => all + count, 0);

test('processes that open one name admit exactly the burst', async (t) => {
  const name = sharedName(t);
  const counts = await Promise.all([1, 2, 3, 4].map(() => new Promise((done, failed) => {
    const child = spawn(process.execPath, ['-e', `${WORK}process.stdin.once('data', () => {
      console.log(work(${JSON.stringify(name)})); process.exit(); });`], { stdio: ['pipe', 'pipe', 'inherit'] });
    let said = '';
    child.stdout.on('data', (text) => { said += text; });
    child.on('close', () => done(Number(said)));
    child.on('error', failed);
    child.stdin.write('x');
  })));
  assert.equal(sum(counts), 1000);
  const again = new Limiter('1/h burst 1000', { keys: 100, name });
  assert.equal(again.hit('one', 1, { now: 10 ** 9 }), false);
  assert.equal(again.name, name);
});

test('worker threads that open one name admit exactly the burst, and end', async (t) => {
  const name = sharedName(t);
  const counts = await Promise.all([1, 2, 3, 4].map(() => new Promise((done, failed) => {
    const program = `${WORK}require('node:worker_threads').parentPort.postMessage(work(${JSON.stringify(name)}));`;
    const worker = new Worker(program, { eval: true });
    let count;
    worker.on('message', (value) => { count = value; });
    worker.on('exit', (code) => (code === 0 ? done(count) : failed(new Error(`it ended with ${code}`))));
    worker.on('error', failed);
  })));
  assert.equal(sum(counts), 1000);
});

test('a worker that is terminated leaves a table that works', async (t) => {
  const name = sharedName(t);
  const worker = new Worker(`
    const { Limiter } = require('tatcell');
    const limiter = new Limiter('10/s burst 20', { keys: 1000, name: ${JSON.stringify(name)} });
    require('node:worker_threads').parentPort.postMessage('up');
    for (let i = 0; ; i++) limiter.hitMany(new Uint32Array(10000).fill(i % 500));
  `, { eval: true });
  await new Promise((up) => { worker.once('message', up); });
  assert.equal(await worker.terminate(), 1);
  const limiter = new Limiter('10/s burst 20', { keys: 1000, name });
  assert.ok(limiter.hit('fresh', 20) && !limiter.hit('fresh', 20));
});

test('a name keeps its limit, its size and its policy', (t) => {
  const name = sharedName(t);
  const open = (limit, options) => new Limiter(limit, { name, ...options });
  const first = open('10/s burst 20', { keys: 1000 });
  for (const [limit, options, says] of [
    ['10/s burst 21', { keys: 1000 }, /another limit/], ['1/min burst 20', { keys: 1000 }, /another limit/],
    ['20/2s', { keys: 1000, algorithm: 'fixed-window' }, /another limit/],
    ['10/s burst 20', { keys: 1000, full: 'deny' }, /another limit/],
    ['10/s burst 20', { keys: 2000 }, /another number of keys/],
  ]) {
    assert.throws(() => open(limit, options), { name: 'RangeError', message: says });
  }
  assert.ok(first.hit('a', 20) && !open('10/s burst 20', { keys: 1000 }).hit('a', 20));
  Limiter.unlink(name);
  assert.ok(!first.hit('a', 20) && open('1/s', { keys: 10 }).hit('a'));
});

test('processes that come and go sweep a name', (t) => {
  const name = sharedName(t);
  const random = numbers(29);
  // Each opens the name for one call, in ten minutes. No key can be over the limit.
  for (let call = 0; call < 1500; call++) {
    const limiter = new Limiter('5/15min', { name });
    assert.ok(limiter.hit(random(50), 1, { now: BigInt(call * 600) * SECOND }), `call ${call}`);
    limiter.close();
  }
});

test('threads and processes that were all silent find no old debt', (t) => {
  const name = sharedName(t);
  const [a, b] = [1, 2].map(() => new Limiter('10/s burst 20', { keys: 1000, name }));
  let now = SECOND;
  for (const silence of [2n ** 43n - SECOND, 10n ** 16n, 2n ** 50n - SECOND]) {
    for (const [one, other] of [[a, b], [b, a], [a, a]]) {
      assert.ok(one.hit('a', 20, { now }) && !other.hit('a', 1, { now }));
      now += silence;
      assert.ok(other.test('a', 20, { now }) && one.peek('a', 20, { now }).passes);
    }
    // One was silent while the other charged: no debt is forgotten.
    for (let call = 0; call < 40; call++) {
      now += 300n * SECOND;
      assert.ok(a.hit('b', 20, { now }));
    }
    assert.ok(!b.hit('b', 1, { now }));
    now += silence;
  }
});

test('wrong names are refused', (t) => {
  const name = sharedName(t);
  for (const bad of ['', 'x', '/', '/..', '//a', `/${'n'.repeat(300)}`, '/a\0b', '/no/such/folder/x']) {
    assert.throws(() => new Limiter('1/s', { keys: 10, name: bad }), RangeError, bad);
  }
  assert.throws(() => Limiter.unlink(name), { name: 'Error', code: 'ENOENT' });
  assert.throws(() => Limiter.unlink(`${name}\0b`), { name: 'RangeError', message: /NUL/ });
  assert.throws(() => Limiter.unlink(5), TypeError);
  assert.throws(() => new Limiter('1/s burst 1000000000000000000', { keys: 10, name }), RangeError);
  assert.equal(fs.existsSync(`/dev/shm${name}`), false);
});

const names = fs.existsSync('/dev/shm') ? {} : { skip: 'names are not files in /dev/shm here' };

test('memory that nobody finishes is named', names, (t) => {
  const name = sharedName(t);
  const limiter = new Limiter('1/s', { keys: 10, name });
  const bytes = limiter.memory;
  Limiter.unlink(name);
  fs.writeFileSync(`/dev/shm${name}`, Buffer.alloc(bytes));
  assert.throws(() => new Limiter('1/s', { keys: 10, name }), { name: 'RangeError', message: /unlink/ });
});

test('the system says why it gives no memory', (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tatcell-'));
  t.after(() => fs.rmdirSync(folder));
  assert.throws(() => new Limiter('1/s', { keys: 10, name: folder }), { name: 'Error', code: 'EISDIR' });
});

test('another context of the same thread has keys of its own', () => {
  // The module a second time, as bundlers and test runners load it.
  const program = `
    const first = require('tatcell');
    for (const file of Object.keys(require.cache)) if (!file.endsWith('.node')) delete require.cache[file];
    const second = require('tatcell');
    if (first.Limiter === second.Limiter) throw new Error('it is the same module');
    const [a, b] = [first, second].map(({ Limiter }) => new Limiter('1/h burst 1'));
    console.log(a.hit('x'), b.hit('x'), a.hit('yy'), b.hit('yy'), a.hit('x'), b.hit('x'));
  `;
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' });
  assert.equal(stdout, 'true true true true false false\n', stderr);
});
