import assert from "node:assert/strict";
import { test } from "node:test";
import * as z from "zod/mini";
import * as classic from "zod";
import {
  checkInput,
  damagedFields,
  escaped,
  type InputErrors,
} from "../../../core/api/input.ts";

const ERRORS: InputErrors = { refuse: (fault) => new TypeError(fault) };

const SERVER = z.object({
  name: z.string(),
  kind: z.optional(z.literal("Server")),
  mode: z.optional(z.enum(["on", "off"])),
  ports: z.optional(z.array(z.int("must be a whole number"))),
  labels: z.optional(z.record(z.string(), z.string())),
});
const SCHEMA = z.object({ servers: z.array(SERVER) });

test("checkInput names path and expectation, and no value", () => {
  const cases: readonly (readonly [unknown, string])[] = [
    ["s3cret", "the document must be of type object: received a string"],
    [{}, '"servers" must be of type array: received nothing'],
    [{ servers: null }, '"servers" must be of type array: received nothing'],
    [
      { servers: [5] },
      '"servers[0]" must be of type object: received a number',
    ],
    [
      { servers: [{ name: 5 }] },
      '"servers[0].name" must be of type string: received a number',
    ],
    [
      { servers: [{ name: "a", kind: "s3cret" }] },
      '"servers[a].kind" must be "Server": received a string',
    ],
    [
      { servers: [{ name: "a", mode: ["s3cret"] }] },
      '"servers[a].mode" must be one of on, off: received a list',
    ],
    [
      { servers: [{ name: "a", ports: [1, 1.5] }] },
      '"servers[a].ports[1]" must be a whole number: received a number',
    ],
    [
      { servers: [{ name: "a", labels: { b: {} } }] },
      '"servers[a].labels.b" must be of type string: received a map',
    ],
    [
      { servers: [{ name: "a\u001b[2J", labels: 1 }] },
      '"servers[a\\u{1b}[2J].labels" must be of type object: received a number',
    ],
  ];
  for (const [value, message] of cases) {
    assert.throws(
      () => checkInput(value, SCHEMA, ERRORS),
      { name: "TypeError", message },
    );
  }
});

test("checkInput drops what its schema does not have", () => {
  const value = { servers: [{ name: "a", more: 1 }], more: 1 };
  assert.deepEqual(checkInput(value, SCHEMA, ERRORS), {
    servers: [{ name: "a" }],
  });
});

test("checkInput names a misspelt field first, with the one that is meant", () => {
  const schema = z.strictObject({ kind: z.string(), name: z.string() });
  assert.throws(
    () =>
      checkInput({ kinds: 5 }, schema, {
        root: "it",
        received: JSON.stringify,
        ...ERRORS,
      }),
    {
      message:
        'it must not have "kinds", did you mean "kind"?: received {"kinds":5}',
    },
  );
});

test("checkInput has the same words where an operator has set those of zod", () => {
  classic.config(classic.locales.de());
  try {
    assert.throws(
      () => checkInput({}, SCHEMA, ERRORS),
      { message: '"servers" must be of type array: received nothing' },
    );
  } finally {
    classic.config(classic.locales.en());
  }
});

test("damagedFields names each field that does not match, once", () => {
  const schema = z.looseObject({
    state: z.optional(z.enum(["a", "b"])),
    pair: z.optional(z.object({ x: z.number(), y: z.number() })),
  });
  assert.deepEqual(damagedFields({ state: "c", pair: {}, other: 1 }, schema), [
    "state",
    "pair",
  ]);
  assert.deepEqual(damagedFields({ state: "a" }, schema), []);
});

test("escaped shows characters that a terminal would obey or hide", () => {
  assert.equal(
    escaped("a\u001b[1m\n\u0085\u202e\u2028é 日"),
    "a\\u{1b}[1m\\u{a}\\u{85}\\u{202e}\\u{2028}é 日",
  );
});
