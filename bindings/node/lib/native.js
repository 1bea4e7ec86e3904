// SPDX-License-Identifier: MIT OR Apache-2.0
// The addon: one that was built on this machine, or the one that the package has for this platform.
'use strict';

const path = require('node:path');
const { getSystemErrorName } = require('node:util');

const platform = `${process.platform}-${process.arch}`;
const places = ['build/tatcell.node', `prebuilt/${platform}/tatcell.node`];

function find() {
  const said = [];
  for (const place of places) {
    try {
      return require(path.join(__dirname, '..', place));
    } catch (error) {
      said.push(error.message);
    }
  }
  throw new Error(
    `tatcell has no addon for ${platform}: run "npm rebuild tatcell", which builds it with cargo\n${said.join('\n')}`,
  );
}

const addon = find();

// Makes an error of the addon into one of JavaScript.
function said(error) {
  const { code, message } = error;
  if (code === 'RANGE') return new RangeError(message);
  const name = /^\d+$/.test(code) ? getSystemErrorName(-code) : code;
  return Object.assign(new Error(message), name === 'CLOSED' ? {} : { code: name });
}

const wrapped = {};
for (const [name, call] of Object.entries(addon)) {
  wrapped[name] = (...args) => {
    try {
      return call(...args);
    } catch (error) {
      throw error.code === undefined ? error : said(error);
    }
  };
}

const { decide } = addon;
// Every hit calls this one, so it has a function of its own, which the compiler of V8 can inline.
wrapped.decide = (handle, how, length) => {
  try {
    return decide(handle, how, length);
  } catch (error) {
    throw said(error);
  }
};

module.exports = wrapped;
