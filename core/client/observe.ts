import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import type { Middleware } from "./send.ts";

/** How many different warnings are remembered. */
const MOST_WARNINGS = 1_000;

/** Counts what is sent, by verb and status code, and how long answers take. */
export function countRequests(metrics: Metrics, clock: Clock): Middleware {
  const requests = metrics.counter({
    name: "coracle_client_requests_total",
    help: "Requests to the API server, by verb and status code.",
  });
  const duration = metrics.histogram({
    name: "coracle_client_request_duration_seconds",
    help: "Time until the API server began its answer, by verb.",
  });
  return (next) => async (request) => {
    const { verb } = request;
    const start = clock.now();
    let code = "error";
    try {
      const response = await next(request);
      code = String(response.status);
      return response;
    } finally {
      requests.add(1, { verb, code });
      duration.observe((clock.now() - start) / 1000, { verb });
    }
  };
}

/**
 * Writes what the server warns of, such as the use of an old API version, each
 * warning once.
 */
export function logWarnings(logger: Logger): Middleware {
  const seen = new Set<string>();
  return (next) => async (request) => {
    const response = await next(request);
    const header = response.headers["warning"];
    if (header === undefined) return response;
    for (const warning of parseWarnings(header)) {
      if (seen.has(warning) || seen.size >= MOST_WARNINGS) continue;
      seen.add(warning);
      logger.warn("The API server warns", { warning, action: request.action });
    }
    return response;
  };
}

/** The texts of a Warning header, which may hold several. */
export function parseWarnings(header: string): string[] {
  return Array.from(
    header.matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g),
    ([, text = ""]) => text.replaceAll(/\\(.)/g, "$1"),
  );
}
