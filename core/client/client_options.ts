import type { OptionRules } from "../api/option_rules.ts";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import type { RateLimitOptions, RetryOptions } from "./middleware.ts";

/** Options of a {@linkcode Client}. */
export interface ClientOptions {
  /**
   * Whose fields the client's writes are, unless a call says otherwise.
   *
   * @default {"coracle"}
   */
  readonly fieldManager?: string | undefined;
  /**
   * Who asks, in the `user-agent` header.
   *
   * @default {"coracle"}
   */
  readonly userAgent?: string | undefined;
  /**
   * How refused and broken requests are sent again; `false` never does.
   *
   * @default {up to 10 attempts}
   */
  readonly retry?: RetryOptions | false | undefined;
  /**
   * How many requests a second may be sent.
   *
   * @default {no limit: the server's own flow control decides}
   */
  readonly rateLimit?: RateLimitOptions | undefined;
  /**
   * How long the server may take to begin an answer, and to go on with it, in
   * milliseconds. Watches and logs that are followed may pause.
   *
   * @default {90_000}
   */
  readonly answerTimeout?: number | undefined;
  /**
   * The longest answer that is decoded, in bytes. Streams have no limit.
   *
   * @default {268_435_456, which is 256 MiB}
   */
  readonly maxAnswerBytes?: number | undefined;
  /**
   * Where warnings of the server and of the configuration are written.
   *
   * @default {nowhere}
   */
  readonly logger?: Logger | undefined;
  /**
   * Where requests are counted.
   *
   * @default {nowhere}
   */
  readonly metrics?: Metrics | undefined;
  /**
   * Where time comes from.
   *
   * @default {the machine's clock}
   */
  readonly clock?: Clock | undefined;
  /**
   * Gives a number from 0 to below 1 for jitter.
   *
   * @default {Math.random}
   */
  readonly random?: (() => number) | undefined;
}

/** What the options of a client must be. */
export const CLIENT_RULES: OptionRules<ClientOptions> = {
  fieldManager: "name?",
  userAgent: "name?",
  retry: "any?",
  rateLimit: "object?",
  answerTimeout: "positive?",
  maxAnswerBytes: "count?",
  logger: "logger?",
  metrics: "metrics?",
  clock: "clock?",
  random: "function?",
};
