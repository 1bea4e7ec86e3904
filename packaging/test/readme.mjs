// Runs the programs of a page, each by itself: readme.mjs PAGE. SPDX-License-Identifier: MIT OR Apache-2.0
//
// A program is a block of JavaScript, run in the folder of this process. If a block of text follows, the program must
// print it.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const page = readFileSync(process.argv[2], 'utf8');
const blocks = [...page.matchAll(/^```js\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?/gms)];
blocks.forEach(([, program, wanted], i) => {
  writeFileSync('program.mjs', program);
  const done = spawnSync(process.execPath, ['program.mjs'], { encoding: 'utf8', timeout: 60_000 });
  if (done.status !== 0 || (wanted !== undefined && done.stdout !== wanted)) {
    console.error(`program ${i + 1} printed:\n${done.stdout}${done.stderr}\nand should print:\n${wanted}`);
    process.exit(1);
  }
});
if (blocks.length < 4) {
  console.error(`the page has ${blocks.length} programs`);
  process.exit(1);
}
