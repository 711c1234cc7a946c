import {
  chainOf,
  isOutcome,
  withoutUrlSecrets,
} from "../conditions/outcome.ts";
import type { ErrorReportOptions } from "./phased_definition.ts";
import type { RolloutError } from "./phased_status.ts";
import { errorMessage } from "../../core/error_text.ts";

/**
 * Converts an error to the form in which a status holds it: bounded, with its
 * causes, and without the queries of URLs, which may hold secrets. The defaults
 * are those of the Flink operator.
 */
export function errorReport(
  error: unknown,
  options: ErrorReportOptions = {},
): RolloutError {
  const { maxLength = 2_048, maxCauses = 2, stack = false } = options;
  const cut = (text: string) => limited(withoutUrlSecrets(text), maxLength);
  const chain = chainOf(error);
  const reported = chain.slice(0, maxCauses + 1);
  const causes = reported.slice(1).map((cause) => ({
    type: cut(cause instanceof Error ? cause.name : typeof cause),
    message: cut(errorMessage(cause)),
  }));
  const labels = Object.entries(options.labels ?? {})
    .filter(([, pattern]) =>
      chain.some((cause) => errorMessage(cause).search(pattern) >= 0)
    )
    .map(([label]) => label);
  const trace = stack && error instanceof Error ? error.stack : undefined;
  return {
    reason: isOutcome(error) ? error.reason : "Error",
    message: cut(reported.map(errorMessage).join(" -> ")),
    ...(causes.length > 0 && { causes }),
    ...(labels.length > 0 && { labels }),
    ...(trace !== undefined && { stack: cut(trace) }),
  };
}

function limited(text: string, length: number): string {
  if (text.length <= length) return text;
  return length > 3 ? `${text.slice(0, length - 3)}...` : text.slice(0, length);
}
