// SPDX-License-Identifier: MIT OR Apache-2.0
// What the middleware of express and of fastify share.
'use strict';

const { Cell, Chain, Limiter } = require('./limits.js');
const scratch = require('./scratch.js');

function network(address, v4Bits = 32, v6Bits = 64) {
  if (typeof address !== 'string') throw new TypeError(`an address is a string, not ${scratch.describe(address)}`);
  for (const [name, bits, most] of [['v4Bits', v4Bits, 32], ['v6Bits', v6Bits, 128]]) {
    if (Number.isInteger(bits) && bits >= 0 && bits <= most) continue;
    throw new RangeError(`${name} is 0 to ${most}, not ${bits}`);
  }
  const key = scratch.network(address, v4Bits, v6Bits);
  if (key === undefined) throw new RangeError(`'${address}' is no address: write one such as 192.0.2.1 or 2001:db8::1`);
  return key;
}

// The key of a client: the network of its address.
//
// Each of `trustedHops` proxies appends the address that it saw to X-Forwarded-For. So the one that the first trusted
// proxy saw is that many places from the right; everything left of it is what the client wants us to believe. Clients
// without an address (a Unix socket) share one key.
function clientKey(peer, forwarded, { trustedHops = 0, v4Bits = 32, v6Bits = 64 } = {}) {
  let address = peer ?? '';
  if (trustedHops > 0) {
    const hops = String(forwarded ?? '').split(',').map((hop) => hop.trim()).filter(Boolean);
    if (hops.length >= trustedHops) address = hops[hops.length - trustedHops];
  }
  // Some proxies append the port: 192.0.2.1:4711, [2001:db8::1]:4711.
  if (address.startsWith('[')) address = address.slice(1).split(']')[0];
  else if (address.split(':').length === 2) address = address.split(':')[0];
  return scratch.network(address.split('%')[0], v4Bits, v6Bits) ?? address;
}

// Returns a function that asks a limit of any kind.
function asker(limit) {
  if (limit instanceof Cell) return () => limit.check();
  if (limit instanceof Chain || limit instanceof Limiter) return (key) => limit.check(key);
  throw new TypeError(`rateLimit takes a Limiter, a Cell or a Chain, not ${scratch.describe(limit)}`);
}

// The body of a response with status 429.
function refusal(decision) {
  if (decision.verdict === 'never') return 'This request is larger than its limit allows at all.\n';
  return `Too many requests: retry after ${decision.retryAfter.toFixed(1)} s.\n`;
}

// Returns a function that decides a request: null if it has no limit, else the decision and its header fields.
function judge(limit, { key, names, legacy, ...options } = {}) {
  const ask = asker(limit);
  const client = (request) =>
    clientKey(request.socket?.remoteAddress, request.headers['x-forwarded-for'], options);
  const keyOf = key ?? client;
  return (request) => {
    const found = keyOf(request);
    if (found === null || found === undefined) return null;
    const decision = ask(found);
    return { decision, headers: decision.headers({ names, legacy }) };
  };
}

// RateLimit and RateLimit-Policy are lists: a limit of another middleware adds to them.
const joined = (before, value) => (before === undefined ? value : `${before}, ${value}`);

module.exports = { joined, judge, network, refusal };
