import assert from "node:assert/strict";
import { test } from "node:test";
import { docComments } from "../../tools/doc_comments.ts";

const SOURCE = `/**
 * Reads files.
 *
 * @module
 */
const TEXT = \`/** in a template \${f("}")} */\`;
/** Matches a slash. */
const SLASH = /[/"]\\/\\*\\*/;
/**
 * Store of objects.
 *
 * @default {5}
 */
export abstract class Store<T> {
  /** Objects by key. */
  readonly #objects: Map<string, T> = new Map();
  /** Makes an empty store. */
  constructor() {}
  /** Number of objects. */
  get size(): number {
    return this.#objects.size;
  }
  /** Adds an object. */
  static async *add<T>(object: T): AsyncGenerator<T> {}
  // Not a doc comment.
  /** Iterates. */
  [Symbol.iterator](): void {}
}
/** Options. */
export interface Options {
  /** Limit. */
  readonly limit?: number;
}
`;

test("docComments finds each doc comment with its symbol and kind", () => {
  const found = docComments(SOURCE, "store.ts")
    .map(({ symbol, kind, text }) => `${symbol} (${kind}): ${text}`);
  assert.deepEqual(found, [
    "store.ts (module): Reads files.",
    "SLASH (constant): Matches a slash.",
    "Store (class): Store of objects.\n\n@default {5}",
    "Store.#objects (property): Objects by key.",
    "Store.constructor (constructor): Makes an empty store.",
    "Store.size (accessor): Number of objects.",
    "Store.add (method): Adds an object.",
    "Store.[Symbol.iterator] (method): Iterates.",
    "Options (interface): Options.",
    "Options.limit (property): Limit.",
  ]);
});
