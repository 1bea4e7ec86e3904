// SPDX-License-Identifier: MIT OR Apache-2.0
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Cell, Chain, Limiter, RateLimitOptions } from "./index.js";

/** A middleware that answers 429 to requests over the limit, and adds RateLimit fields to all other responses. */
export function rateLimit<R extends IncomingMessage = IncomingMessage>(
  limit: Limiter | Cell | Chain,
  options?: RateLimitOptions<R>,
): (request: R, response: ServerResponse, next: (error?: unknown) => void) => void;
