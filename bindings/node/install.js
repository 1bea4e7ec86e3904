// SPDX-License-Identifier: MIT OR Apache-2.0
// npm runs this after it has unpacked the package: it builds the addon with cargo, unless the package has one.
'use strict';

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const build = path.join(__dirname, 'build');

// Tried in a process of its own: one that is for another C library must not end this one.
function works() {
  const addon = path.join(__dirname, 'lib/native.js');
  return spawnSync(process.execPath, ['-e', 'require(process.argv[1])', addon]).status === 0;
}

function make() {
  const cargo = process.env.CARGO ?? 'cargo';
  const target = path.join(build, 'cargo');
  const manifest = path.join(__dirname, 'Cargo.toml');
  const args = ['build', '--release', '--locked', '--manifest-path', manifest, '--target-dir', target];
  // The addon is for this machine, whatever else the program is built for.
  const env = { ...process.env, CARGO_BUILD_TARGET: undefined };
  const { error, status } = spawnSync(cargo, args, { stdio: 'inherit', env });
  if (error || status !== 0) {
    console.error(
      `tatcell has no addon for ${process.platform}-${process.arch} in its package, so it needs Rust to build one: ` +
        `${error?.message ?? `cargo ended with status ${status}`}`,
    );
    process.exit(1);
  }
  const [library] = ['libtatcell_node.so', 'libtatcell_node.dylib']
    .map((name) => path.join(target, 'release', name))
    .filter((file) => fs.existsSync(file));
  if (library === undefined) {
    console.error(`cargo has made no addon in ${target}/release: take build.target out of the configuration of cargo`);
    process.exit(1);
  }
  fs.copyFileSync(library, path.join(build, 'tatcell.node'));
  fs.rmSync(target, { recursive: true });
}

if (!works()) make();
