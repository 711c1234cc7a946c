import { abortable } from "../abortable.ts";
import type { Clock, Timer } from "../clock.ts";
import { eitherSignal } from "./retry.ts";
import type { Middleware } from "./send.ts";

/**
 * Gives a request up when its answer does not begin in time, or does not go on
 * once it has begun: a connection that has gone silent would keep its caller
 * waiting for ever. Answers that may pause are left alone, and nobody is hurried
 * who takes his time to read.
 *
 * @param limit How long the server may take, in milliseconds.
 */
export function answerTimeout(limit: number, clock: Clock): Middleware {
  return (next) => async (request) => {
    const late = new AbortController();
    const begin = (what: string): Timer =>
      clock.setTimer(() =>
        late.abort(
          new Error(
            `Cannot ${request.action}: the server must ${what} its answer within ${limit} ms: received nothing`,
          ),
        ), limit);
    const inTime = async <V>(what: string, work: Promise<V>): Promise<V> => {
      const timer = begin(what);
      try {
        return await abortable(work, late.signal);
      } finally {
        timer.cancel();
      }
    };
    const signal = eitherSignal(request.signal, late.signal);
    const timer = begin("begin");
    const response = await next({ ...request, signal })
      .finally(() => timer.cancel());
    const mayPause = request.mayPause === true || request.verb === "connect";
    if (mayPause && response.status < 300) return response;
    return {
      ...response,
      body: untilSilent(
        response.body,
        (chunk) => inTime("go on with", chunk),
      ),
      cancel: () => inTime("end", response.cancel()).catch(() => {}),
    };
  };
}

/** The chunks of a body, until one is given up. */
async function* untilSilent(
  body: AsyncIterable<Uint8Array>,
  inTime: <V>(chunk: Promise<V>) => Promise<V>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const chunks = body[Symbol.asyncIterator]();
  let isOver = false;
  try {
    for (;;) {
      isOver = true; // should it fail
      const { done, value } = await inTime(chunks.next());
      if (done) return;
      isOver = false;
      yield value;
    }
  } finally {
    // What has failed has ended, or never will.
    if (!isOver) await chunks.return?.();
  }
}
