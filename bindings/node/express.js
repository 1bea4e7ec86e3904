// SPDX-License-Identifier: MIT OR Apache-2.0
'use strict';

const { joined, judge, refusal } = require('./lib/http.js');

// Makes a middleware of express, connect or a plain server of node:http. express.d.ts describes the options.
function rateLimit(limit, options) {
  const judged = judge(limit, options);
  return (request, response, next) => {
    let found;
    try {
      found = judged(request);
      for (const [name, value] of Object.entries(found?.headers ?? {})) {
        response.setHeader(name, joined(name, response.getHeader(name), value));
      }
    } catch (error) {
      next(error);
      return;
    }
    if (found === null || found.decision.passes) {
      next();
      return;
    }
    const body = refusal(found.decision);
    response.statusCode = 429;
    response.setHeader('Content-Type', 'text/plain; charset=utf-8');
    response.setHeader('Content-Length', Buffer.byteLength(body));
    response.end(body);
  };
}

module.exports = { rateLimit };
