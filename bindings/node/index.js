// SPDX-License-Identifier: MIT OR Apache-2.0
'use strict';

const { Decision } = require('./lib/decision.js');
const { network } = require('./lib/http.js');
const { Cell, Chain, Limiter } = require('./lib/limits.js');

module.exports = { Cell, Chain, Decision, Limiter, network };
