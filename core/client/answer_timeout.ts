import type { Clock } from "../clock.ts";
import { eitherSignal } from "./retry.ts";
import type { Middleware } from "./send.ts";

/**
 * Gives a request up when its answer does not begin in time. How long the body
 * takes is not its business: a watch may go on for hours.
 *
 * @param limit How long the server may take, in milliseconds.
 */
export function answerTimeout(limit: number, clock: Clock): Middleware {
  return (next) => async (request) => {
    const late = new AbortController();
    const timer = clock.setTimer(() =>
      late.abort(
        new Error(
          `Cannot ${request.action}: the server must begin its answer within ${limit} ms: received nothing`,
        ),
      ), limit);
    const signal = eitherSignal(request.signal, late.signal);
    try {
      return await next({ ...request, signal });
    } finally {
      timer.cancel();
    }
  };
}
