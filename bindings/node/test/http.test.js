// SPDX-License-Identifier: MIT OR Apache-2.0
// The middleware in servers of express, of fastify and of node:http.
'use strict';

const assert = require('node:assert/strict');
const http = require('node:http');
const test = require('node:test');
const express = require('express');
const fastify = require('fastify');
const { Cell, Chain, Limiter, network } = require('tatcell');
const ofExpress = require('tatcell/express');
const ofFastify = require('tatcell/fastify');

/** Asks a server; resolves to status, header fields and text. */
function get(port, headers = {}, url = '/') {
  return new Promise((done, failed) => {
    http.get({ host: '127.0.0.1', port, headers, path: url, agent: false }, (response) => {
      let text = '';
      response.on('data', (part) => { text += part; });
      response.on('end', () => done({ status: response.statusCode, headers: response.headers, text }));
    }).on('error', failed);
  });
}

async function listening(t, server) {
  await new Promise((up) => { server.listen(0, '127.0.0.1', up); });
  t.after(() => server.close());
  return server.address().port;
}

const servers = {
  express: async (t, limit, options) => {
    const app = express();
    app.use(ofExpress.rateLimit(limit, options));
    app.get('/', (request, response) => response.set('X-App', '1').send('hello'));
    return listening(t, http.createServer(app));
  },
  fastify: async (t, limit, options) => {
    const app = fastify();
    await app.register(ofFastify.rateLimit, { limit, ...options });
    app.get('/', async (request, reply) => {
      reply.header('X-App', '1');
      return 'hello';
    });
    await app.listen({ port: 0, host: '127.0.0.1' });
    t.after(() => app.close());
    return app.server.address().port;
  },
  'node:http': async (t, limit, options) => {
    const limited = ofExpress.rateLimit(limit, options);
    return listening(t, http.createServer((request, response) => limited(request, response, (error) => {
      response.statusCode = error ? 500 : 200;
      response.setHeader('X-App', '1');
      response.end(error ? error.message : 'hello');
    })));
  },
};

for (const [name, serve] of Object.entries(servers)) {
  test(`${name} answers 429 with the fields`, async (t) => {
    const port = await serve(t, new Limiter('1/w burst 2', { keys: 100 }));
    const first = await get(port);
    assert.deepEqual([first.status, first.text, first.headers['x-app']], [200, 'hello', '1']);
    assert.equal(first.headers['ratelimit-policy'], '"default";q=2;w=1209600');
    assert.match(first.headers.ratelimit, /^"default";r=1;t=60(4800|47..)$/);
    assert.equal(first.headers['retry-after'], undefined);
    assert.equal((await get(port)).status, 200);
    const refused = await get(port);
    assert.deepEqual([refused.status, refused.headers['x-app']], [429, undefined]);
    assert.match(refused.headers['retry-after'], /^60(4800|47..)$/);
    assert.equal(refused.headers.ratelimit, `"default";r=0;t=${refused.headers['retry-after']}`);
    assert.match(refused.headers['content-type'], /^text\/plain/);
    assert.match(refused.text, /^Too many requests: retry after 60\d{4}\.\d s\.\n$/);
  });

  test(`${name} leaves alone what has no key`, async (t) => {
    const port = await serve(t, new Limiter('1/w', { keys: 10 }), { key: () => null });
    for (let i = 0; i < 3; i++) {
      const { status, headers } = await get(port);
      assert.deepEqual([status, headers.ratelimit], [200, undefined]);
    }
  });

  test(`${name} asks a chain under its names`, async (t) => {
    const chain = new Chain(new Limiter('7/w burst 7', { keys: 10 }), new Cell('1/w burst 1'));
    const options = { key: (request) => [request.headers['x-user']], names: ['user', 'all'], legacy: true };
    const port = await serve(t, chain, options);
    const first = (await get(port, { 'x-user': 'ann' })).headers;
    assert.equal(first.ratelimit, '"user";r=6;t=86400, "all";r=0;t=604800');
    const { status, headers } = await get(port, { 'x-user': 'bob' });
    assert.deepEqual([status, headers['x-ratelimit-remaining']], [429, '0']);
  });

  test(`${name} asks a cell for everybody`, async (t) => {
    for (const limit of [new Cell('1/h burst 1'), new Chain(new Cell('1/h burst 1'), new Cell('1/h burst 1'))]) {
      const port = await serve(t, limit);
      assert.deepEqual([(await get(port)).status, (await get(port)).status], [200, 429]);
    }
  });

  test(`${name} hands on what a key function throws`, async (t) => {
    const options = { key: () => { throw new Error('no such user'); } };
    const port = await serve(t, new Limiter('1/w', { keys: 10 }), options);
    assert.equal((await get(port)).status, 500);
  });

  test(`${name} knows the client behind proxies`, async (t) => {
    for (const [trustedHops, forwarded, other, isSame] of [
      [0, '198.51.100.7', '198.51.100.8', true],
      [1, '198.51.100.7', '198.51.100.8', false],
      [1, 'spoofed, 198.51.100.7', '198.51.100.7', true],
      [1, '2001:db8::7', '2001:db8:0:1::7', false],
      [1, 'unknown', '198.51.100.7, _hidden', true],
    ]) {
      const port = await serve(t, new Limiter('1/h burst 1', { keys: 100 }), { trustedHops });
      assert.equal((await get(port, { 'x-forwarded-for': forwarded })).status, 200);
      assert.equal((await get(port, { 'x-forwarded-for': other })).status === 429, isSame, `${forwarded}, ${other}`);
    }
    // Two lines of the field are one list.
    const port = await serve(t, new Limiter('1/h burst 1', { keys: 100 }), { trustedHops: 2 });
    const ask = async (lines) => (await get(port, { 'X-Forwarded-For': lines })).status;
    assert.deepEqual([await ask(['spoofed, 198.51.100.7', '10.0.0.1']), await ask(['198.51.100.7', '10.0.0.2'])],
      [200, 429]);
  });

  test(`${name} takes an address that something else has found`, async (t) => {
    const address = (request) => request.headers['x-address'];
    const port = await serve(t, new Limiter('1/h burst 1', { keys: 100 }), { address });
    const ask = async (found) => (await get(port, found === undefined ? {} : { 'x-address': found })).status;
    for (const [first, second] of [['192.0.2.1', '192.0.2.1:4711'], ['fe80::1%eth0', 'fe80::2']]) {
      assert.deepEqual([await ask(first), await ask(second)], [200, 429], `${first}`);
    }
    // What is no address is no key: the client is the peer.
    assert.deepEqual([await ask(undefined), await ask('localhost'), await ask('a name'), await ask('127.0.0.1')],
      [200, 429, 429, 429]);
  });

  test(`${name} counts a network as one client`, async (t) => {
    const options = { trustedHops: 1, v4Bits: 24, v6Bits: 48 };
    const port = await serve(t, new Limiter('1/h burst 1', { keys: 100 }), options);
    const ask = async (address) => (await get(port, { 'x-forwarded-for': address })).status;
    assert.deepEqual([await ask('192.0.2.1'), await ask('192.0.2.9'), await ask('192.0.3.1')], [200, 429, 200]);
    const wide = [await ask('2001:db8::1'), await ask('2001:db8:0:1::'), await ask('2001:db8:1::')];
    assert.deepEqual(wide, [200, 429, 200]);
  });
}

// The same cases as in the packages for Rust, Python and Go.
test('the client is an entry that is an address, or the peer', () => {
  const asked = (peer, forwarded, trustedHops) => {
    const keys = [];
    const limiter = new Limiter('9/h', { keys: 10 });
    limiter.check = (key) => { keys.push(key); return Limiter.prototype.check.call(limiter, key); };
    const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
    const response = { getHeader() {}, setHeader() {} };
    const next = (error) => assert.ifError(error);
    ofExpress.rateLimit(limiter, { trustedHops })({ socket: { remoteAddress: peer }, headers }, response, next);
    return keys[0];
  };
  for (const [hops, forwarded, client] of [
    [0, '198.51.100.7', '192.0.2.1'],
    [1, 'spoofed, 198.51.100.7', '198.51.100.7'],
    [2, 'spoofed, 198.51.100.7, 10.0.0.1', '198.51.100.7'],
    [2, '198.51.100.7', '192.0.2.1'],
    [1, undefined, '192.0.2.1'], [1, '', '192.0.2.1'], [1, ' , ', '192.0.2.1'],
    [1, '198.51.100.7,', '192.0.2.1'], [2, '198.51.100.7,', '198.51.100.7'],
    [1, '198.51.100.7, unknown', '192.0.2.1'], [1, '198.51.100.7, unix:', '192.0.2.1'],
    [2, '198.51.100.7, , 10.0.0.1', '192.0.2.1'],
    [1, '\t198.51.100.7\t', '198.51.100.7'], [1, '198.51.100.7:4711', '198.51.100.7'],
    [1, '[198.51.100.7]:4711', '198.51.100.7'], [1, '2001:db8::7', '2001:db8::7'],
    [1, '[2001:db8::7]:4711', '2001:db8::7'], [1, '[2001:db8::7]', '2001:db8::7'],
    [1, '::ffff:198.51.100.7', '198.51.100.7'], [1, 'fe80::1%eth0', 'fe80::1'], [1, '[fe80::1%eth0]:80', 'fe80::1'],
    [1, '198.51.100.7:x', '192.0.2.1'], [1, '198.51.100.7:', '192.0.2.1'], [1, '192.0.2', '192.0.2.1'],
    [1, '[192.0.2.9', '192.0.2.1'], [1, '192.0.2.9]', '192.0.2.1'], [1, '[2001:db8::7]x', '192.0.2.1'],
  ]) {
    assert.deepEqual(asked('192.0.2.1', forwarded, hops), network(client), `${hops} ${forwarded}`);
  }
  for (const peer of ['', undefined, 'testclient']) {
    for (const forwarded of ['unknown', '_hidden', undefined]) assert.equal(asked(peer, forwarded, 1), '');
  }
});

test('two limits add to the fields of a response', async (t) => {
  const app = express();
  app.use(ofExpress.rateLimit(new Cell('7/w burst 7'), { names: ['all'] }));
  app.use('/slow', ofExpress.rateLimit(new Cell('1/w burst 1'), { names: ['slow'] }));
  app.get('/slow', (request, response) => response.send('slow'));
  const port = await listening(t, http.createServer(app));
  const { headers } = await get(port, {}, '/slow');
  assert.equal(headers['ratelimit-policy'], '"all";q=7;w=604800, "slow";q=1;w=604800');
  assert.equal(headers.ratelimit, '"all";r=6;t=86400, "slow";r=0;t=604800');
});

test('two limits in a response: the fields of one value are those of the last limit', async (t) => {
  const limits = [new Cell('7/w burst 7'), new Cell('1/h burst 1')];
  const ofOne = ({ headers }) => [headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']];
  const app = express();
  app.use((request, response, next) => { response.set('Retry-After', '9'); next(); });
  for (const limit of limits) app.use(ofExpress.rateLimit(limit, { legacy: true }));
  app.get('/', (request, response) => response.send('hello'));
  const port = await listening(t, http.createServer(app));
  assert.deepEqual(ofOne(await get(port)), ['1', '0']);
  assert.match((await get(port)).headers['retry-after'], /^3(600|5\d\d)$/);

  const other = fastify();
  for (const burst of [7, 5]) {
    await other.register(ofFastify.rateLimit, { limit: new Cell(`${burst}/w burst ${burst}`), legacy: true });
  }
  other.get('/', async () => 'hello');
  t.after(() => other.close());
  assert.deepEqual(ofOne(await other.inject('/')), ['5', '4']);
});

test('a response whose fields are sent already gets an error, not a crash', async (t) => {
  const limited = ofExpress.rateLimit(new Cell('7/w burst 7'));
  const port = await listening(t, http.createServer((request, response) => {
    response.flushHeaders();
    limited(request, response, (error) => response.end(`${error?.code}`));
  }));
  assert.equal((await get(port)).text, 'ERR_HTTP_HEADERS_SENT');
});

test('a plugin of fastify limits the routes of its instance', async (t) => {
  const app = fastify();
  await app.register(async (part) => {
    await part.register(ofFastify.rateLimit, { limit: new Cell('1/h burst 1') });
    part.get('/limited', async () => 'limited');
  });
  app.get('/free', async () => 'free');
  t.after(() => app.close());
  const ask = async (url) => (await app.inject(url)).statusCode;
  assert.deepEqual([await ask('/limited'), await ask('/limited'), await ask('/free')], [200, 429, 200]);
});

test('what is no limit is named', async () => {
  for (const bad of [undefined, 5, {}, '10/s']) {
    assert.throws(() => ofExpress.rateLimit(bad), { name: 'TypeError', message: /takes a Limiter, a Cell or a Chain/ });
  }
  await assert.rejects(async () => fastify().register(ofFastify.rateLimit, {}), TypeError);
});

test('wrong options are named at the start', async () => {
  const limiter = new Limiter('10/s', { keys: 10 });
  for (const [options, name, message] of [
    [{ trustedHops: 1.5 }, 'RangeError', /trustedHops is 0 to \d+, not 1.5/], [{ trustedHops: -1 }, 'RangeError', /-1/],
    [{ trustedHops: '1' }, 'TypeError', /trustedHops is a number/], [{ trustedHop: 1 }, 'TypeError', /'trustedHop'/],
    [{ v4Bits: NaN }, 'RangeError', /v4Bits is 0 to 32, not NaN/], [{ v4Bits: 33 }, 'RangeError', /not 33/],
    [{ v6Bits: 200 }, 'RangeError', /v6Bits is 0 to 128, not 200/], [{ key: 'ip' }, 'TypeError', /key is a function/],
    [{ address: 'ip' }, 'TypeError', /address is a function/],
    [{ key: async () => '' }, 'TypeError', /key is an async function/],
    [{ address: async () => '' }, 'TypeError', /address is an async function/],
    [{ key: () => '', address: () => '' }, 'TypeError', /not both/],
    [{ names: ['a', 'b'] }, 'RangeError', /2 names for 1 limits/], [{ names: 'a' }, 'TypeError', /names are an array/],
    [{ names: [''] }, 'RangeError', /not be empty/], [{ names: ['a\nb'] }, 'RangeError', /name/],
  ]) {
    assert.throws(() => ofExpress.rateLimit(limiter, options), { name, message });
    await assert.rejects(async () => fastify().register(ofFastify.rateLimit, { limit: limiter, ...options }),
      { name, message });
  }
  assert.throws(() => ofExpress.rateLimit(limiter, null), TypeError);
  const chain = new Chain(limiter, new Cell('1/s'));
  assert.throws(() => ofExpress.rateLimit(chain, { names: ['a'] }), { message: /1 names for 2 limits/ });
  const keyed = new Chain(limiter, limiter);
  assert.throws(() => ofExpress.rateLimit(keyed), { name: 'TypeError', message: /2 limiters needs key/ });
  assert.throws(() => ofExpress.rateLimit(keyed, { address: () => '' }), { name: 'TypeError' });
  ofExpress.rateLimit(keyed, { key: () => ['a', 'b'] });
  ofExpress.rateLimit(chain, { names: ['a', 'b'], trustedHops: 0, v4Bits: 0, v6Bits: 128, legacy: true });
  const options = { limit: new Cell('1/s'), names: ['a'], prefix: '/api', logLevel: 'warn' };
  await fastify().register(ofFastify.rateLimit, options);
});
