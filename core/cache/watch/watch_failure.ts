import { ApiError } from "../../api/api_error.ts";
import { kindText, type ResolvedKind } from "../../api/kind.ts";
import { TooLongError } from "../../json/line_splitter.ts";

/**
 * Reason of a {@linkcode ConnectionFault}.
 *
 * - `"silent"`: nothing arrived for too long.
 * - `"overdue"`: the server did not end a watch when its time was over.
 * - `"broken"`: a response ended before it was complete.
 * - `"garbage"`: the response has other data than requested.
 * - `"backwards"`: the server sends older states than before.
 * - `"no-end"`: the initial events of a watch do not end; the server probably
 *   ignores the request for them.
 * - `"unreadable"`: an object that was restored cannot be read.
 */
export type ConnectionFaultReason =
  | "silent"
  | "overdue"
  | "broken"
  | "garbage"
  | "backwards"
  | "moved"
  | "no-end"
  | "unreadable";

/**
 * Fault of a connection, or of the data that it delivered, that the server did
 * not report.
 */
export class ConnectionFault extends Error {
  readonly reason: ConnectionFaultReason;

  constructor(
    reason: ConnectionFaultReason,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "ConnectionFault";
    this.reason = reason;
  }
}

/**
 * State of a reflector, with the names of kube-rs' `watcher::State`.
 *
 * - `"empty"`: no state is known, or it is in doubt. Next, the kind is resolved
 *   and the whole state is read, as a stream or in pages.
 * - `"initial-watch"`: the whole state is read as a stream (WatchList).
 * - `"init-page"`: the whole state is read in pages.
 * - `"init-listed"`: the whole state is known. Next, the kind is resolved and a
 *   watch is opened from its version.
 * - `"watching"`: changes are read.
 * - `"error-event"`: the server ended either kind of stream with an ERROR event.
 *
 * A failure leads to `"empty"` where its remedy is a relist, and back to
 * `"init-listed"` where the watch can resume.
 */
export type ReflectorState =
  | "empty"
  | "initial-watch"
  | "init-page"
  | "init-listed"
  | "watching"
  | "error-event";

/** Recovery from a failure. */
export interface Remedy {
  /** Whether the whole state must be read again; otherwise the watch resumes. */
  readonly relist: boolean;
  /** Whether the server lost the known version, or does not have it yet. */
  readonly versionGone: boolean;
  /**
   * Whether the state is read in pages: `"once"` after a stream has failed,
   * `"always"` if the server cannot stream it.
   */
  readonly pages: "no" | "once" | "always";
  /** Whether to retry without a pause. */
  readonly immediate: boolean;
  /** Pause that the server requested, in milliseconds. */
  readonly retryAfter: number | undefined;
  /** Value of the metric label `reason`. */
  readonly reason: string;
}

const FAULT_REMEDIES: Readonly<
  Record<ConnectionFaultReason, Partial<Remedy>>
> = {
  garbage: { relist: true },
  backwards: { relist: true, versionGone: true, immediate: true },
  moved: { relist: true, immediate: true },
  unreadable: { relist: true, immediate: true },
  "no-end": { pages: "always", immediate: true },
  silent: {},
  overdue: {},
  broken: {},
};

/** HTTP statuses that do not show that a server cannot stream its state. */
const NOT_ABOUT_STREAMING: readonly number[] = [401, 404, 408, 410, 429];

/**
 * Decides how to recover from a failure. Pure.
 *
 * - An expired version is dropped and the state is read again immediately.
 * - A line that is too long is read again immediately as an item of a page, which
 *   may be longer.
 * - Wrong data, or a watch that ended with an error of the server, leaves the
 *   state in doubt: it is read again after a pause.
 * - After any other failure the watch resumes after a pause.
 * - A stream that the server rejects as a bad request is never requested again;
 *   after any other failure of a stream the next attempt lists in pages, since
 *   progress matters more than the preferred form.
 *
 * @param state State of the reflector at the time of the failure.
 */
export function remedyFor(error: unknown, state: ReflectorState): Remedy {
  const base: Remedy = {
    relist: state === "initial-watch" || state === "init-page" ||
      state === "error-event",
    versionGone: false,
    pages: state === "initial-watch" || state === "error-event" ? "once" : "no",
    immediate: false,
    retryAfter: undefined,
    reason: "connection",
  };
  if (TooLongError.is(error)) {
    const inLine = state !== "init-page";
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
    const reason = error.reason.replace("-", "_");
    // A server that is silent instead of streaming its state may list it.
    const immediate = error.reason === "silent" && state === "initial-watch";
    return { ...base, immediate, ...FAULT_REMEDIES[error.reason], reason };
  }
  return ApiError.is(error) ? remedyForApiError(error, base, state) : base;
}

function remedyForApiError(
  error: ApiError,
  base: Remedy,
  state: ReflectorState,
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
  const isStream = state === "initial-watch";
  const rejected = isStream && status >= 400 && status < 500 &&
    !NOT_ABOUT_STREAMING.includes(status);
  return {
    ...base,
    // The objects of a kind that was removed are deleted with it; when the kind
    // returns, a watch from the old version would not report that.
    relist: base.relist || status === 404,
    pages: rejected
      ? (status === 403 ? "once" : "always")
      : isStream && status < 500
      ? "no"
      : base.pages,
    immediate: rejected,
    retryAfter,
    reason: `http_${status}`,
  };
}

/** Error that names the rule if the server refused a list for want of a right. */
export function namingRule(
  error: unknown,
  kind: ResolvedKind | undefined,
  namespace: string | undefined,
): unknown {
  if (!kind || !ApiError.is(error) || !error.isForbidden) return error;
  const [place, role] = namespace === undefined
    ? ["", "a ClusterRole"]
    : [` in namespace ${namespace}`, "a Role"];
  return new Error(
    `Cannot watch ${
      kindText(kind)
    }${place}: the right is missing, so give the operator's account ${role} with { apiGroups: ["${kind.group}"], resources: ["${kind.plural}"], verbs: ["get", "list", "watch"] }: received ${error.message}`,
    { cause: error },
  );
}

function isExpired(error: ApiError): boolean {
  return error.isGone || error.reason === "Expired" || error.reason === "Gone";
}

/** Whether the server's cache lags behind the version, or its history restarted. */
function isVersionTooLarge(error: ApiError): boolean {
  return error.details.causes?.some(({ reason }) =>
        reason === "ResourceVersionTooLarge"
      ) === true || /too large resource version/i.test(error.message);
}
