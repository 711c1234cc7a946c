/**
 * Requests that are not awaited: their errors are logged and do not end the
 * process, as one forgotten `await` must not stop an operator.
 *
 * @module
 */
import { ApiError } from "../api/api_error.ts";
import { hostProcess } from "../config/host_process.ts";
import { failedWrite } from "../controller/run/followed_writes.ts";
import type { Logger } from "../logger.ts";

const EVENT = "unhandledRejection";
/** Logs of the running operators, which may share one. */
const logs = new Set<{ readonly log: Logger }>();

/** Advice for an unhandled error of a request; undefined for other errors. */
export function unawaitedRequest(error: unknown): string | undefined {
  const write = failedWrite(error);
  if (write === undefined && !ApiError.is(error)) return undefined;
  return `A request failed that nobody waits for: write "await" before ${
    write ?? "it"
  } and before the functions that call it`;
}

/**
 * Logs the errors of requests that are not awaited. Other unhandled errors end
 * the process as usual.
 *
 * @returns Function that stops the logging.
 */
export function logUnawaited(log: Logger): () => void {
  if (logs.size === 0) hostProcess.on(EVENT, onRejection);
  const entry = { log };
  logs.add(entry);
  return () => {
    logs.delete(entry);
    if (logs.size === 0) hostProcess.off(EVENT, onRejection);
  };
}

/** Whether an operator logs the errors of requests that are not awaited. */
export function logsUnawaited(): boolean {
  return logs.size > 0;
}

function onRejection(error: unknown): void {
  const text = unawaitedRequest(error);
  if (text === undefined) {
    if (hostProcess.listenerCount(EVENT) === 1) throw error;
    return;
  }
  // Operators of one process log to the same place, as a rule.
  const [first] = logs;
  first?.log.error(text, { error });
}
