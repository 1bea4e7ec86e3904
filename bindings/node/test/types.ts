// SPDX-License-Identifier: MIT OR Apache-2.0
// A program against the types that the package installs. tsc must accept it, and find an error where one is expected.
import { createServer, type IncomingMessage } from "node:http";
import fastify from "fastify";
import { Cell, Chain, Decision, Limiter, network, type Key } from "tatcell";
import { rateLimit } from "tatcell/express";
import { rateLimit as plugin } from "tatcell/fastify";

const limiter = new Limiter("10/s burst 20", { keys: 100, name: "/api", algorithm: "gcra", full: "deny" });
const keys: Key[] = ["a", Buffer.from("a"), 5, 5n];
const passes: boolean = limiter.hit("a") && limiter.test(keys[0]!, 2n, { now: process.hrtime.bigint() });
const decision: Decision = limiter.check(5, 1, { now: 5 });
const fields: Record<string, string> = decision.headers({ names: ["all"], legacy: true });
const list: boolean[] = limiter.hitMany(keys, 1);
const array: Uint8Array = limiter.hitMany(new BigUint64Array(5));
const more: boolean[] = limiter.hitMany(new Set(["a", "b"])).concat(limiter.hitMany([1, 2n], 1, { now: 5 }));
const rows: Uint8Array = limiter.hitMany(Buffer.alloc(8), 1, { keyLength: 4 });
const cell = new Cell("1/s");
const chain = new Chain(limiter, cell);
const both: boolean = chain.hit(["a"]) && chain.hit("a", 1) && cell.hit() && limiter.reset(network("192.0.2.1"));
const { verdict } = chain.peek(["a"]);
const never: boolean = verdict === "never";
createServer((request, response) => rateLimit(limiter)(request, response, () => response.end()));
rateLimit<IncomingMessage & { user: string }>(limiter, { key: (request) => request.user, trustedHops: 1 });
fastify().register(plugin, { limit: chain, key: (request) => [request.ip], names: ["address"] });
limiter.close();
Limiter.unlink("/api");

// @ts-expect-error: a key is no object
limiter.hit({});
// @ts-expect-error: there is no such policy
new Limiter("10/s", { full: "block" });
// @ts-expect-error: the answer is not to be changed
decision.passes = true;
// @ts-expect-error: one number is no list
limiter.hitMany(5);
// @ts-expect-error: one key is no list
limiter.hitMany("abc");
// @ts-expect-error: keys are whole numbers
limiter.hitMany(new Float64Array(2));
// @ts-expect-error: bytes need keyLength
limiter.hitMany(Buffer.alloc(8));
// @ts-expect-error: a list has no keyLength
limiter.hitMany(["a"], 1, { keyLength: 4 });
// @ts-expect-error: only a limiter has a reset of keys
cell.reset("a");
// @ts-expect-error: a fastify plugin needs its limit
fastify().register(plugin, {});
export { array, both, fields, list, more, never, passes, rows };
