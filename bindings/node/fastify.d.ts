// SPDX-License-Identifier: MIT OR Apache-2.0
import type { Cell, Chain, Limiter, RateLimitOptions } from "./index.js";

/** A plugin that answers 429 to requests over the limit, and adds RateLimit fields to all other responses. */
export const rateLimit: (
  fastify: { addHook: any },
  options: RateLimitOptions<any> & { limit: Limiter | Cell | Chain },
) => Promise<void>;
