// SPDX-License-Identifier: MIT OR Apache-2.0
// The part that the middleware of express and of fastify share.
'use strict';

const { isAsyncFunction } = require('node:util/types');
const { Cell, Chain, Limiter, checkNames, options } = require('./limits.js');
const scratch = require('./scratch.js');

function checkRange(name, value, most) {
  if (typeof value !== 'number') throw new TypeError(`${name} is a number, not ${scratch.describe(value)}`);
  if (!Number.isInteger(value) || value < 0 || value > most) {
    throw new RangeError(`${name} is 0 to ${most}, not ${value}`);
  }
}

function checkBits(v4Bits, v6Bits) {
  checkRange('v4Bits', v4Bits, 32);
  checkRange('v6Bits', v6Bits, 128);
}

function network(address, v4Bits = 32, v6Bits = 64) {
  if (typeof address !== 'string') throw new TypeError(`an address is a string, not ${scratch.describe(address)}`);
  checkBits(v4Bits, v6Bits);
  const key = scratch.network(address, v4Bits, v6Bits);
  if (key === undefined) throw new RangeError(`'${address}' is no address: write one such as 192.0.2.1 or 2001:db8::1`);
  return key;
}

// Some proxies append the port: 192.0.2.1:4711, [2001:db8::1]:4711.
const ENTRY = /^(?:\[([^[\]]*)\](?::\d+)?|([^:[\]]*):\d+|([^[\]]*))$/;

// The key of the network of an address; undefined if the text is none. Text is never a key.
function addressKey(text, v4Bits, v6Bits) {
  if (typeof text !== 'string') return undefined;
  const found = ENTRY.exec(text.replace(/^[ \t]+|[ \t]+$/g, ''));
  return found ? scratch.network((found[1] ?? found[2] ?? found[3]).split('%')[0], v4Bits, v6Bits) : undefined;
}

// Each of `trustedHops` proxies appends the address that it saw to X-Forwarded-For. So the one that the first trusted
// proxy saw is that many entries from the right; everything left of it is what the client wants us to believe. Every
// entry counts, also an empty one: the next one to the left may be the client's.
function forwardedBy(request, trustedHops) {
  const forwarded = request.headers['x-forwarded-for'];
  if (trustedHops === 0 || forwarded === undefined) return undefined;
  return String(forwarded).split(',').at(-trustedHops);
}

// Returns a function that asks a limit of any kind.
function asker(limit) {
  if (limit instanceof Cell || (limit instanceof Chain && limit.limiters === 0)) return () => limit.check();
  if (limit instanceof Chain || limit instanceof Limiter) return (key) => limit.check(key);
  throw new TypeError(`rateLimit takes a Limiter, a Cell or a Chain, not ${scratch.describe(limit)}`);
}

// The body of a response with status 429.
function refusal(decision) {
  if (decision.verdict === 'never') return 'This request is larger than its limit allows at all.\n';
  return `Too many requests: retry after ${decision.retryAfter.toFixed(1)} s.\n`;
}

const KNOWN = ['key', 'address', 'names', 'legacy', 'trustedHops', 'v4Bits', 'v6Bits'];

// Returns a function that decides a request: null if it has no limit, else the decision and its header fields. Wrong
// options throw here, at the start, and in no request.
function judge(limit, given = {}) {
  const ask = asker(limit);
  const { key, address, names, legacy = false, trustedHops = 0, v4Bits = 32, v6Bits = 64 } = options(given, KNOWN);
  for (const [name, value] of Object.entries({ key, address })) {
    if (value !== undefined && typeof value !== 'function') {
      throw new TypeError(`${name} is a function of the request, not ${scratch.describe(value)}`);
    }
    if (isAsyncFunction(value)) throw new TypeError(`${name} is an async function: it must return no promise`);
  }
  if (key !== undefined && address !== undefined) throw new TypeError('pass key or address, not both');
  if (limit instanceof Chain && key === undefined && limit.limiters > 1) {
    throw new TypeError(`a Chain of ${limit.limiters} limiters needs key, which returns an array of as many keys`);
  }
  checkNames(limit, names);
  checkRange('trustedHops', trustedHops, Number.MAX_SAFE_INTEGER);
  checkBits(v4Bits, v6Bits);
  const find = address ?? ((request) => forwardedBy(request, trustedHops));
  const keyed = (text) => addressKey(text, v4Bits, v6Bits);
  // Nobody can make up the peer. Clients whose peer has no address (a Unix socket) share a key.
  const keyOf = key ?? ((request) => keyed(find(request)) ?? keyed(request.socket?.remoteAddress) ?? '');
  return (request) => {
    const found = keyOf(request);
    if (found === null || found === undefined) return null;
    const decision = ask(found);
    return { decision, headers: decision.headers({ names, legacy }) };
  };
}

// RateLimit and RateLimit-Policy are lists: a limit of another middleware adds to them. Other fields have one value.
const LISTS = ['RateLimit', 'RateLimit-Policy'];
const joined = (name, before, value) =>
  before === undefined || !LISTS.includes(name) ? value : `${before}, ${value}`;

module.exports = { joined, judge, network, refusal };
