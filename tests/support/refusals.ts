import assert from "node:assert/strict";
import { test } from "node:test";

/** Function with options, and wrong values for them. */
export interface Refusals {
  /** Name for the titles. */
  readonly what: string;
  /** Calls the function. */
  readonly make: (options: never) => unknown;
  /** Valid options. */
  readonly good: object;
  /** Whether the options may be omitted. */
  readonly optional?: boolean;
  /** Wrong values of each option with the expected message. */
  readonly bad: Readonly<Record<string, readonly [unknown, string | RegExp]>>;
}

/** Tests that wrong options are refused with the name and the expected type. */
export function testRefusals(all: readonly Refusals[]): void {
  for (const { what, make, good, optional = false, bad } of all) {
    test(`${what} refuses options that are wrong, and names them`, async () => {
      const attempt = async (options: unknown) => await make(options as never);
      await attempt({ ...good });
      for (const options of [null, 3, ...(optional ? [] : [undefined])]) {
        await refused(attempt(options), /object|given/);
      }
      await refused(
        attempt({ ...good, "no such": 1 }),
        /there is no option "no such".*: received /s,
      );
      for (const [name, [value, words]] of Object.entries(bad)) {
        const { message } = await refused(attempt({ ...good, [name]: value }));
        assert(message.includes(`"${name}"`), message);
        assert(
          typeof words === "string"
            ? message.includes(words)
            : words.test(message),
          message,
        );
      }
    });
  }
}

/** Message of a rejected promise, in the form of all errors. */
async function refused(
  promise: Promise<unknown>,
  form = /^Cannot .+: .+: received /s,
): Promise<Error> {
  let error: unknown;
  try {
    await promise;
  } catch (thrown) {
    error = thrown;
  }
  assert(error instanceof Error, "It must be refused");
  assert.match(error.message, /^Cannot .+: .+: received /s);
  assert.match(error.message, form);
  return error;
}
