import type { Effect, Exchange, Operation } from "./fault_gate.ts";
import { statusOf } from "./fault_gate.ts";

/** Fault of the connection, before a request reaches the server. */
export type ConnectionFault = "dns" | "proxy" | "authority";

/** What a fault does to an operation, or the reason why it does not apply. */
export type CellEffect =
  | Effect
  | { readonly connection: ConnectionFault }
  /** Milliseconds that the wall clock jumps by. */
  | { readonly clockJump: number }
  | string;

/** One row of the fault matrix. */
export interface FaultRow {
  readonly id: string;
  /** Description in the documentation. */
  readonly title: string;
  /** Number of requests that meet the fault. */
  readonly times: number;
  readonly effects: Readonly<Record<Operation, CellEffect>>;
  /** What health or log must say; undefined where nothing failed. */
  readonly cause: RegExp | undefined;
  /** Operations in which nothing fails that could be named. */
  readonly unnamed?: readonly Operation[];
  /** Bound of the requests of the operation; the default allows some retries. */
  readonly maxRequests?: number;
}

const READS_ONLY = "only lists and watches have it";
const STREAMS_ONLY = "only streams have it";
const WRITES_ONLY = "only writes have it";

function everywhere(effect: CellEffect): FaultRow["effects"] {
  return {
    list: effect,
    pages: effect,
    watchList: effect,
    watch: effect,
    write: effect,
    lease: effect,
  };
}

/** Different effects for single answers and for streams. */
function byForm(
  { single, stream }: {
    readonly single: CellEffect;
    readonly stream: CellEffect;
  },
): FaultRow["effects"] {
  return {
    list: single,
    pages: single,
    watchList: stream,
    watch: stream,
    write: single,
    lease: single,
  };
}

function refusal(
  code: number,
  reason: string,
  headers?: Readonly<Record<string, string>>,
): Effect {
  return (exchange) => exchange.refuse(code, reason, headers);
}

const RESET_BEFORE: Effect = (exchange) => exchange.reset();
/** The server has handled the request, and the client does not learn it. */
const RESET_AFTER: Effect = async (exchange) => {
  await exchange.handle();
  exchange.reset();
};
const RESET_AMID: Effect = (exchange) =>
  exchange.forward({ alter: (chunk, index) => index < 1 ? chunk : "reset" });
const NEVER: Effect = () => {};
const SILENT: Effect = ({ response }) => {
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders();
};
const END_AMID: Effect = (exchange) =>
  exchange.forward({ alter: (chunk, index) => index < 1 ? chunk : "end" });

/** A few bytes at a time. */
const SLOW: Effect = async (exchange) => {
  const { response } = exchange;
  const write = response.write.bind(response) as (part: Uint8Array) => boolean;
  await exchange.forward({
    alter(chunk) {
      for (let at = 0; at < chunk.length; at += 97) {
        write(chunk.slice(at, at + 97));
      }
      return new Uint8Array();
    },
  });
};

const GARBAGE: Effect = ({ response }) => {
  response.writeHead(200, { "content-type": "application/json" });
  response.end("<html>gateway</html>\n");
};
const TRUNCATED: Effect = (exchange) =>
  exchange.forward({
    alter: (chunk, index) =>
      index === 0 ? chunk.subarray(0, Math.ceil(chunk.length / 2)) : "end",
  });
const TWICE: Effect = (exchange) =>
  exchange.forward({
    alter(chunk) {
      const both = new Uint8Array(chunk.length * 2);
      both.set(chunk);
      both.set(chunk, chunk.length);
      return both;
    },
  });
const NO_END: Effect = (exchange) =>
  exchange.forward({
    alter: (chunk) =>
      new TextDecoder().decode(chunk).includes("initial-events-end")
        ? new Uint8Array()
        : chunk,
  });
const GONE_EVENT: Effect = ({ response }) => {
  response.writeHead(200, { "content-type": "application/json" });
  const object = statusOf(410, "Expired");
  response.end(`${JSON.stringify({ type: "ERROR", object })}\n`);
};

/** Asks for other parameters than the client did. */
function asking(changes: Readonly<Record<string, string>>): Effect {
  return (exchange: Exchange) => {
    const url = new URL(exchange.target, "http://gate");
    for (const [name, value] of Object.entries(changes)) {
      url.searchParams.set(name, value);
    }
    return exchange.forward({ target: url.pathname + url.search });
  };
}

/** The old token is refused; another request brings the new one. */
const ROTATED: Effect = (exchange) =>
  exchange.authorization === "Bearer old"
    ? exchange.refuse(401, "Unauthorized")
    : exchange.forward();

/** The version at which the first two of the five objects exist. */
export const OLDER = "OLDER";

/** All faults, one row each. */
export const FAULT_ROWS: readonly FaultRow[] = [
  {
    id: "reset",
    title: "TCP reset",
    times: 2,
    effects: {
      ...everywhere(RESET_BEFORE),
      watchList: RESET_AMID,
      watch: RESET_AMID,
    },
    cause: /connection failed/,
  },
  {
    id: "reset-after",
    title: "TCP reset after the server handled the write",
    times: 1,
    effects: {
      ...everywhere(WRITES_ONLY),
      write: RESET_AFTER,
      lease: RESET_AFTER,
    },
    cause: /connection failed/,
  },
  {
    id: "half-open",
    title: "Half-open connection",
    times: 1,
    effects: byForm({ single: NEVER, stream: SILENT }),
    cause: /nothing arrived|did not (begin|end)|took more than \d+ ms/,
    // Before its first bookmark a quiet watch looks the same: it is renewed.
    unnamed: ["watch"],
  },
  {
    id: "slow",
    title: "Slow answer, a few bytes at a time",
    times: 1,
    effects: everywhere(SLOW),
    cause: undefined,
  },
  {
    id: "clean-end",
    title: "Clean end amid a stream",
    times: 2,
    effects: {
      ...everywhere(STREAMS_ONLY),
      watchList: END_AMID,
      watch: END_AMID,
    },
    cause: /end/i,
    unnamed: ["watch"],
  },
  {
    id: "401",
    title: "401, then a new token",
    times: 1,
    effects: everywhere(ROTATED),
    cause: undefined,
  },
  {
    id: "403",
    title: "403, then granted",
    times: 3,
    effects: everywhere(refusal(403, "Forbidden")),
    cause: /Forbidden/,
  },
  {
    id: "404",
    title: "404, the kind comes later",
    times: 3,
    effects: everywhere(refusal(404, "NotFound")),
    cause: /NotFound/,
    // A candidate takes it for a lease that somebody deleted.
    unnamed: ["lease"],
  },
  {
    id: "409",
    title: "409",
    times: 3,
    effects: {
      ...everywhere(WRITES_ONLY),
      write: refusal(409, "Conflict"),
      lease: refusal(409, "Conflict"),
    },
    cause: /Conflict/,
    unnamed: ["lease"],
  },
  {
    id: "410",
    title: "410",
    times: 1,
    effects: {
      ...everywhere(refusal(410, "Expired")),
      write: READS_ONLY,
      lease: READS_ONLY,
    },
    cause: /Expired/,
  },
  {
    id: "410-event",
    title: "410 as an event",
    times: 1,
    effects: {
      ...everywhere(STREAMS_ONLY),
      watchList: GONE_EVENT,
      watch: GONE_EVENT,
    },
    cause: /Expired/,
  },
  {
    id: "429-after",
    title: "429 with Retry-After",
    times: 3,
    effects: everywhere(
      refusal(429, "TooManyRequests", { "retry-after": "2" }),
    ),
    cause: /TooManyRequests|429/,
    // A single retry by the client is not logged.
    unnamed: ["write"],
  },
  {
    id: "429",
    title: "429 without Retry-After",
    times: 3,
    effects: everywhere(refusal(429, "TooManyRequests")),
    cause: /TooManyRequests|429/,
  },
  {
    id: "500",
    title: "500",
    times: 3,
    effects: everywhere(refusal(500, "InternalError")),
    cause: /InternalError/,
  },
  {
    id: "503",
    title: "503",
    times: 3,
    effects: everywhere(refusal(503, "ServiceUnavailable")),
    cause: /ServiceUnavailable/,
  },
  {
    id: "garbage",
    title: "Garbage (HTML with status 200)",
    times: 2,
    effects: everywhere(GARBAGE),
    cause: /JSON|must be an object/,
  },
  {
    id: "truncated",
    title: "Truncated answer",
    times: 2,
    effects: everywhere(TRUNCATED),
    cause: /JSON|complete|line/i,
    unnamed: ["watch"],
  },
  {
    id: "no-end-bookmark",
    title: "No bookmark that ends the initial events",
    times: 1,
    effects: {
      ...everywhere("only WatchList has the bookmark"),
      watchList: NO_END,
    },
    cause: /bookmark/,
  },
  {
    id: "duplicates",
    title: "Duplicate events",
    times: 1,
    effects: { ...everywhere(STREAMS_ONLY), watchList: TWICE, watch: TWICE },
    cause: undefined,
  },
  {
    id: "older",
    title: "Older data, as after a restart of the server",
    times: 1,
    effects: {
      ...everywhere(READS_ONLY),
      list: asking({
        resourceVersion: OLDER,
        resourceVersionMatch: "Exact",
      }),
      pages: "the continue token fixes the version",
      watchList: "the stream is a state that the server chooses",
      watch: asking({ resourceVersion: OLDER }),
    },
    cause: undefined,
  },
  {
    id: "clock-forward",
    title: "Wall clock jumps an hour forward",
    times: 1,
    effects: everywhere({ clockJump: 3_600_000 }),
    cause: undefined,
  },
  {
    id: "clock-back",
    title: "Wall clock jumps an hour back",
    times: 1,
    effects: everywhere({ clockJump: -3_600_000 }),
    cause: undefined,
  },
  {
    id: "authority",
    title: "Certificate of another authority, then the right one",
    times: 2,
    effects: everywhere({ connection: "authority" }),
    cause: /certificate|issuer|CERT/i,
  },
  {
    id: "dns",
    title: "The name is not resolved, then it is",
    times: 2,
    effects: everywhere({ connection: "dns" }),
    cause:
      /ENOTFOUND|EAI_AGAIN|ConnectionRefused|dns|resolve|lookup|not known/i,
  },
  {
    id: "proxy",
    title: "The proxy refuses, then it works",
    times: 2,
    effects: everywhere({ connection: "proxy" }),
    cause: /proxy|ECONNREFUSED|refused/i,
  },
];
