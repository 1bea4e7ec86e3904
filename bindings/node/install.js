// SPDX-License-Identifier: MIT OR Apache-2.0
// What npm runs after it has unpacked the package: builds the addon with cargo, unless one for this platform is there.
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
  const { error, status } = spawnSync(cargo, args, { stdio: 'inherit' });
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
  fs.copyFileSync(library, path.join(build, 'tatcell.node'));
  fs.rmSync(target, { recursive: true });
}

if (!works()) make();
