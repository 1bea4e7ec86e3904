// SPDX-License-Identifier: MIT OR Apache-2.0
'use strict';

const { joined, judge, refusal } = require('./lib/http.js');

// A plugin of fastify. It limits the routes of the instance that registers it. fastify.d.ts describes the options.
// fastify reads `prefix` and the options of its log itself.
async function rateLimit(fastify, { limit, prefix, logLevel, logSerializers, ...options }) {
  const judged = judge(limit, options);
  fastify.addHook('onRequest', async (request, reply) => {
    const found = judged(request);
    if (found === null) return undefined;
    for (const [name, value] of Object.entries(found.headers)) {
      reply.header(name, joined(name, reply.getHeader(name), value));
    }
    if (found.decision.passes) return undefined;
    return reply.code(429).type('text/plain; charset=utf-8').send(refusal(found.decision));
  });
}
// Without this, fastify would limit the routes of a context that has none.
rateLimit[Symbol.for('skip-override')] = true;
rateLimit[Symbol.for('fastify.display-name')] = 'tatcell';

module.exports = { rateLimit };
