// SPDX-License-Identifier: MIT OR Apache-2.0
/// <reference types="node" />

/** A string (its UTF-8), bytes, a whole number or a bigint. Numbers have 64 bits, in the order of the machine. */
export type Key = string | Uint8Array | number | bigint;
/** Keys in an array of numbers, each a key like a number. */
export type KeyArray =
  | Uint16Array
  | Uint32Array
  | BigUint64Array
  | Int16Array
  | Int32Array
  | BigInt64Array;
export type Algorithm = "gcra" | "fixed-window" | "sliding-counter" | "quota-linear" | "decay";

export interface Call {
  /** Nanoseconds of a clock of your own; left out, the monotonic clock (`process.hrtime.bigint()`). */
  now?: number | bigint;
}

export interface LimiterOptions {
  /** The number of keys that are in debt at the same time: 100 000 if left out. About 35 bytes each. */
  keys?: number;
  /** Such as "/api". Every thread and process that opens the name has the same counts. */
  name?: string;
  /** "gcra" if left out. */
  algorithm?: Algorithm;
  /** What happens to new keys if more come than there is room for: "admit" if left out. */
  full?: "admit" | "inherit" | "deny" | "sampled";
}

/** The full answer to one request. Times are seconds. */
export class Decision {
  private constructor();
  /** Whether the request passes. */
  readonly passes: boolean;
  /**
   * "refused" for now; "never": the cost exceeds the burst; "contended": other threads won every attempt, nothing was
   * charged, ask again.
   */
  readonly verdict: "pass" | "refused" | "never" | "contended";
  /** Units that the request asked for. Units above 2**53 are rounded down, here and below. */
  readonly cost: number;
  /** The most units that pass at one instant after a pause. */
  readonly burst: number;
  /** Units that would pass right after this decision, rounded down. */
  readonly remaining: number;
  /** Seconds until the same cost would pass: 0 if it passes, Infinity if it never does. */
  readonly retryAfter: number;
  /** Seconds until the whole burst is available again. */
  readonly resetAfter: number;
  /** False if the table had no slot for the key, so that `full` decided. */
  readonly tracked: boolean;
  /** The index of the limit in a chain that refused, or that has least left. */
  readonly link: number;
  /**
   * Header fields for a response: RateLimit-Policy, RateLimit, and Retry-After if the request was refused; with
   * `legacy`, the X-RateLimit-* fields, too. `names` are those of the limits, one each; left out, "default", or
   * "limit-1", "limit-2" for a chain.
   */
  headers(options?: { names?: readonly string[]; legacy?: boolean }): Record<string, string>;
}

/** One limit for each of many keys, such as "10/s burst 20". */
export class Limiter {
  constructor(limit: string, options?: LimiterOptions);
  /** Decides one request of a key and charges it if it passes. Returns whether it passes. */
  hit(key: Key, cost?: number | bigint, options?: Call): boolean;
  /** Whether hit() would pass. Charges nothing. */
  test(key: Key, cost?: number | bigint, options?: Call): boolean;
  /** Like hit(), with the full answer. */
  check(key: Key, cost?: number | bigint, options?: Call): Decision;
  /** Like test(), with the full answer. */
  peek(key: Key, cost?: number | bigint, options?: Call): Decision;
  /** Makes the full burst of a key available at once. Returns false if other threads won every attempt. */
  reset(key: Key, options?: Call): boolean;
  /**
   * Decides one request of each key, in order, at one instant; faster than as many calls of hit(). An array of numbers
   * or bytes gives 1 for each that passes and 0 for others. If a key has a wrong type, those before it may have been
   * charged.
   */
  hitMany(keys: KeyArray, cost?: number | bigint, options?: Call): Uint8Array;
  hitMany(
    keys: Uint8Array | Uint8ClampedArray,
    cost: number | bigint | undefined,
    options: Call & { keyLength: number },
  ): Uint8Array;
  hitMany<List extends Iterable<Key>>(
    keys: List extends string | ArrayBufferView ? never : List,
    cost?: number | bigint,
    options?: Call,
  ): boolean[];
  /** Gives the memory back. Later calls throw. */
  close(): void;
  /** Removes the name of a shared table. Those who have it open keep it. */
  static unlink(name: string): void;
  /** The limit, as text. */
  readonly limit: string;
  /** The number of keys that it was made for. */
  readonly keys: number;
  /** The name of its shared memory. */
  readonly name: string | undefined;
  /** Bytes of memory of its table; 0 once closed. */
  readonly memory: number;
  readonly closed: boolean;
}

/** One limit for one thing, in 8 bytes of state. */
export class Cell {
  constructor(limit: string, options?: { algorithm?: Algorithm });
  hit(cost?: number | bigint, options?: Call): boolean;
  test(cost?: number | bigint, options?: Call): boolean;
  check(cost?: number | bigint, options?: Call): Decision;
  peek(cost?: number | bigint, options?: Call): Decision;
  reset(): void;
  readonly limit: string;
}

/**
 * Up to 8 limits that a request must meet together: all are charged, or none. Pass an array with one key for each
 * Limiter, in order; a single key may stand alone. Put the limit that refuses most first.
 */
export class Chain {
  constructor(...limits: (Limiter | Cell)[]);
  hit(keys?: Key | readonly Key[], cost?: number | bigint, options?: Call): boolean;
  test(keys?: Key | readonly Key[], cost?: number | bigint, options?: Call): boolean;
  check(keys?: Key | readonly Key[], cost?: number | bigint, options?: Call): Decision;
  peek(keys?: Key | readonly Key[], cost?: number | bigint, options?: Call): Decision;
  /** How many of the limits are Limiters: a request has one key for each. */
  readonly limiters: number;
}

/** The key of the network of an address: /32 and /64 if you do not say otherwise. */
export function network(address: string, v4Bits?: number, v6Bits?: number): Buffer;

/** Options of the middleware for a request of type `R`. */
export interface RateLimitOptions<R> {
  /** Returns the key, an array of keys for a Chain, or null for a request that has no limit. Left out: the client. */
  key?: (request: R) => Key | readonly Key[] | null | undefined;
  /**
   * Returns the address of the client, if something else has found it: `(request) => request.ip` of express. If it is
   * not an address, the client is the peer of the connection. Clients whose peer has none share one key.
   */
  address?: (request: R) => string | null | undefined;
  /** The names of the limits in the header fields. */
  names?: readonly string[];
  /** Adds the X-RateLimit-* fields. */
  legacy?: boolean;
  /** The number of proxies in front of the server, which append to X-Forwarded-For. */
  trustedHops?: number;
  /** The bits of an address that make a client: 32, and 64 of an IPv6 address. */
  v4Bits?: number;
  v6Bits?: number;
}
