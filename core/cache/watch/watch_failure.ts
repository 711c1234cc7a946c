import { ApiError } from "../../api/api_error.ts";
import { TooLongError } from "../../json/line_splitter.ts";
import { ConnectionFault } from "./connection_fault.ts";

/** What a reflector was doing when something failed. */
export type ReflectorPhase =
  /** Asking what the kind is called in paths. */
  | "discovery"
  /** Reading the state as a stream (WatchList). */
  | "stream"
  /** Reading the state in pages. */
  | "list"
  /** Reading changes. */
  | "watch"
  /** Reading an ERROR event, in a stream of either sort. */
  | "error-event";

/** What follows from a failure. */
export interface Remedy {
  /** Whether the state must be read anew; if not, the watch resumes. */
  readonly relist: boolean;
  /** Whether the server no longer knows, or does not yet know, our version. */
  readonly versionGone: boolean;
  /**
   * Whether the state is next read in pages: once since a stream just failed,
   * or always since the server cannot stream it.
   */
  readonly pages: "no" | "once" | "always";
  /** Whether to go on at once; a pause otherwise. */
  readonly immediate: boolean;
  /** How long the server asks to wait, in milliseconds. */
  readonly retryAfter: number | undefined;
  /** What to count the failure as. */
  readonly reason: string;
}

/** Statuses that say nothing of whether a server can stream its state. */
const NOT_ABOUT_STREAMING: readonly number[] = [401, 404, 408, 410, 429];

/**
 * Decides what follows from a failure. Pure.
 *
 * - An expired version is dropped and the state read anew, at once.
 * - A line that is too long is read once more as an item of a page, which may be
 *   longer, at once.
 * - What came wrong, or a watch that ended with an error of the server, leaves
 *   the state in doubt: it is read anew after a pause.
 * - All else only interrupts: the watch resumes where it was, after a pause.
 * - A stream that the server refuses as a bad request is never asked for again;
 *   after any other failure of one, the next attempt lists in pages, since
 *   progress matters more than the better way.
 *
 * @param error What was thrown.
 * @param phase During what.
 */
export function remedyFor(error: unknown, phase: ReflectorPhase): Remedy {
  const base: Remedy = {
    relist: phase !== "watch" && phase !== "discovery",
    versionGone: false,
    pages: phase === "stream" || phase === "error-event" ? "once" : "no",
    immediate: false,
    retryAfter: undefined,
    reason: "connection",
  };
  if (TooLongError.is(error)) {
    const inLine = phase !== "list";
    return {
      ...base,
      relist: true,
      reason: "too_long",
      pages: inLine ? "once" : "no",
      immediate: inLine,
    };
  }
  if (error instanceof SyntaxError) {
    return { ...base, relist: true, reason: "garbage" };
  }
  if (error instanceof ConnectionFault) {
    return { ...base, ...remedyForFault(error, phase) };
  }
  return ApiError.is(error) ? remedyForApiError(error, base, phase) : base;
}

function remedyForFault(
  { reason }: ConnectionFault,
  phase: ReflectorPhase,
): Partial<Remedy> {
  const remedy = { reason: reason.replace("-", "_") };
  switch (reason) {
    case "garbage":
      return { ...remedy, relist: true };
    case "backwards":
      return { ...remedy, relist: true, versionGone: true, immediate: true };
    case "no-end":
      return { ...remedy, pages: "always", immediate: true };
    case "silent":
      return { ...remedy, immediate: phase === "stream" };
    case "overdue":
    case "broken":
      return remedy;
  }
}

function remedyForApiError(
  error: ApiError,
  base: Remedy,
  phase: ReflectorPhase,
): Remedy {
  const { status, retryAfter } = error;
  if (isExpired(error) || isVersionTooLarge(error)) {
    return {
      ...base,
      relist: true,
      versionGone: true,
      pages: "no",
      immediate: true,
      reason: "expired",
    };
  }
  const refused = phase === "stream" && status >= 400 && status < 500 &&
    !NOT_ABOUT_STREAMING.includes(status);
  return {
    ...base,
    // A kind that is gone took its objects with it; when it comes back, a watch
    // from the old version would not tell.
    relist: base.relist || status === 404,
    pages: refused
      ? (status === 403 ? "once" : "always")
      : phase === "stream" && status < 500
      ? "no"
      : base.pages,
    immediate: refused,
    retryAfter,
    reason: `http_${status}`,
  };
}

function isExpired(error: ApiError): boolean {
  return error.isGone || error.reason === "Expired" || error.reason === "Gone";
}

/** The server's cache has not come as far, or its history began anew. */
function isVersionTooLarge(error: ApiError): boolean {
  return error.details.causes?.some(({ reason }) =>
        reason === "ResourceVersionTooLarge"
      ) === true || /too large resource version/i.test(error.message);
}
