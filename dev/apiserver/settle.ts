import { internalError } from "./status.ts";

/** Result of an asynchronous call, or its error. */
type Answer = { readonly value: unknown } | { readonly error: unknown };

/** Results of calls and fixed values of the running step. */
let current: Map<string, Answer> | undefined;

/** Maximum number of asynchronous calls of one step. */
const MAX_CALLS = 1_000;

/** Error of a step that needs the answer of a call. */
class MissingAnswer extends Error {
  readonly key: string;
  readonly ask: () => Promise<unknown>;

  constructor(key: string, ask: () => Promise<unknown>) {
    super("Cannot continue: a webhook must answer first");
    this.key = key;
    this.ask = ask;
  }
}

/**
 * Runs a synchronous step that may need answers of webhooks. The step is
 * repeated with each answer on the new state, as kube-apiserver repeats a write
 * after a conflict. Without a call the result is returned directly.
 *
 * @param step Step without effects before its last {@linkcode answerOf}.
 * @param warnings Warnings of the request; reset before each repetition.
 * @param again Restores the input of the step before a repetition.
 */
export function settle<T>(
  step: () => T,
  warnings: string[] = [],
  again?: () => Promise<void>,
): T | Promise<T> {
  const answers = new Map<string, Answer>();
  const before = warnings.length;
  let calls = 0;
  const attempt = (): T | Promise<T> => {
    const outer = current;
    current = answers;
    try {
      return step();
    } catch (error) {
      if (!(error instanceof MissingAnswer)) throw error;
      if (++calls > MAX_CALLS) throw internalError("too many webhook calls");
      const { key, ask } = error;
      return ask().then(
        (value) => answers.set(key, { value }),
        (error) => answers.set(key, { error }),
      ).then(() => again?.()).then(() => {
        warnings.length = before;
        return attempt();
      });
    } finally {
      current = outer;
    }
  };
  return attempt();
}

/**
 * Returns the answer of an asynchronous call in a step of {@linkcode settle},
 * which is repeated once the answer is available.
 *
 * @param key Key that contains everything on which the answer depends.
 */
export function answerOf<T>(key: string, ask: () => Promise<T>): T {
  const answer = current?.get(key);
  if (answer === undefined) throw new MissingAnswer(key, ask);
  if ("error" in answer) throw answer.error;
  return answer.value as T;
}

/** Throws an error again if it only requests a repetition of the step. */
export function rethrowMissing(error: unknown): void {
  if (current !== undefined && error instanceof MissingAnswer) throw error;
}

/** Provides the answer of a call before it is requested. */
export function provideAnswer(key: string, value: unknown): void {
  current?.set(key, { value });
}

/** Whether a step of {@linkcode settle} is running. */
export function isSettling(): boolean {
  return current !== undefined;
}

/** Value that stays the same in all repetitions of a step. */
export function fixed<T>(key: string, make: () => T): T {
  if (current === undefined) return make();
  const known = current.get(key);
  if (known !== undefined && "value" in known) return known.value as T;
  const value = make();
  current.set(key, { value });
  return value;
}

/** Drops the fixed values of a step after their use. */
export function release(...keys: readonly string[]): void {
  for (const key of keys) current?.delete(key);
}
