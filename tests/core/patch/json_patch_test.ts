import assert from "node:assert/strict";
import { test } from "node:test";
import {
  applyJsonPatch,
  type JsonPatchOperation,
} from "@coracle/operator/client";
import { fc } from "../../support/property.ts";
import {
  diffJsonPatch,
  JsonPatchError,
} from "../../../core/patch/json_patch.ts";
import { jsonValues } from "./json_arbitraries.ts";

test("applyJsonPatch refuses a misspelt option", () => {
  const wrong = { maxCopy: 1 } as never;
  assert.throws(() => applyJsonPatch({}, [], wrong), /mean "maxCopied"\?/);
});

test("diffJsonPatch creates a patch that turns one document into the other", () => {
  fc.assert(fc.property(jsonValues, jsonValues, (before, after) => {
    const frozen = structuredClone(before);
    const patched = applyJsonPatch(before, diffJsonPatch(before, after));
    assert.deepEqual(patched, after);
    assert.deepEqual(before, frozen, "the document was changed");
  }));
});

test("diffJsonPatch between lists with equal items at both ends leaves these alone", () => {
  const items = fc.array(jsonValues, { maxLength: 3 });
  fc.assert(fc.property(
    fc.record({ start: items, old: items, new: items, end: items }),
    ({ start, old, new: young, end }) => {
      const before = [...start, ...old, ...end];
      const after = [...start, ...young, ...end];
      const patch = diffJsonPatch(before, after);
      assert.deepEqual(applyJsonPatch(before, patch), after);
      const touched = new Set(patch.map(({ path }) => path.split("/")[1]));
      assert.ok(touched.size <= Math.max(old.length, young.length));
    },
  ));
});

const differences: [title: string, unknown, unknown, JsonPatchOperation[]][] = [
  ["only the fields that differ", { a: { b: 1, c: { d: 2 }, e: 3 }, f: 4 }, {
    a: { b: 1, c: { d: 5 }, g: 6 },
    f: 4,
  }, [
    { op: "remove", path: "/a/e" },
    { op: "replace", path: "/a/c/d", value: 5 },
    { op: "add", path: "/a/g", value: 6 },
  ]],
  ["a field beside equal ones", { a: 1 }, { a: 1, b: 2 }, [
    { op: "add", path: "/b", value: 2 },
  ]],
  ["only the item that differs", { a: [1, { b: 2 }, 3] }, {
    a: [1, { b: 4 }, 3],
  }, [{ op: "replace", path: "/a/1/b", value: 4 }]],
];

for (const [title, before, after, patch] of differences) {
  test(`diffJsonPatch changes ${title}`, () => {
    assert.deepEqual(diffJsonPatch(before, after), patch);
  });
}

test("diffJsonPatch creates an empty patch for equal documents", () => {
  fc.assert(fc.property(jsonValues, (value) => {
    assert.deepEqual(diffJsonPatch(value, structuredClone(value)), []);
  }));
});

const examples: [
  title: string,
  document: unknown,
  patch: JsonPatchOperation[],
  result: unknown,
][] = [
  ["adds a field", { a: 1 }, [{ op: "add", path: "/b", value: 2 }], {
    a: 1,
    b: 2,
  }],
  ["finds an absent field equal to null", { a: 1 }, [
    { op: "test", path: "/b", value: null },
  ], { a: 1 }],
  ["adds before an item", [1, 3], [{ op: "add", path: "/1", value: 2 }], [
    1,
    2,
    3,
  ]],
  ["adds after the last item", [1], [{ op: "add", path: "/-", value: 2 }], [
    1,
    2,
  ]],
  ["counts a negative index from the end", [1, 2, 3], [
    { op: "remove", path: "/-1" },
  ], [1, 2]],
  ["reads escaped names", { "a/b": 1, "m~n": 2, "~1": 4 }, [
    { op: "remove", path: "/a~1b" },
    { op: "replace", path: "/m~0n", value: 3 },
    { op: "replace", path: "/~01", value: 5 },
  ], { "m~n": 3, "~1": 5 }],
  ["moves", { a: { x: 1 }, b: {} }, [
    { op: "move", from: "/a/x", path: "/b/y" },
  ], { a: {}, b: { y: 1 } }],
  ["copies", { a: { x: 1 } }, [{ op: "copy", from: "/a", path: "/b" }], {
    a: { x: 1 },
    b: { x: 1 },
  }],
  [
    "replaces the whole document",
    1,
    [{ op: "replace", path: "", value: 2 }],
    2,
  ],
  ["adds the whole document", 1, [{ op: "add", path: "", value: 2 }], 2],
  ["moves the whole document to itself", { a: 1 }, [
    { op: "move", from: "", path: "" },
  ], { a: 1 }],
  ["finds values that are equal", { a: { b: 1 }, c: [2] }, [
    { op: "test", path: "/a/b", value: 1 },
    { op: "test", path: "/c/-1", value: 2 },
    { op: "test", path: "", value: { c: [2], a: { b: 1 } } },
  ], { a: { b: 1 }, c: [2] }],
  ["changes within an item at a negative index", [{ n: 1 }, { n: 2 }], [
    { op: "replace", path: "/-1/n", value: 3 },
  ], [{ n: 1 }, { n: 3 }]],
  ["replaces an absent field by adding it, as kube-apiserver does", {}, [
    { op: "replace", path: "/a", value: 1 },
  ], { a: 1 }],
  ["takes an absent value for null", { a: 1 }, [
    { op: "replace", path: "/a" } as JsonPatchOperation,
    { op: "add", path: "/b" } as JsonPatchOperation,
    { op: "test", path: "/b" } as JsonPatchOperation,
  ], { a: null, b: null }],
  ["treats the name __proto__ like any other", {}, [
    { op: "add", path: "/__proto__", value: { polluted: true } },
  ], JSON.parse('{"__proto__":{"polluted":true}}')],
];

for (const [title, document, patch, result] of examples) {
  test(`applyJsonPatch ${title}`, () => {
    assert.deepEqual(applyJsonPatch(document, patch), result);
  });
}

test("applyJsonPatch never modifies a prototype", () => {
  applyJsonPatch({}, [
    { op: "add", path: "/__proto__", value: {} },
    { op: "add", path: "/__proto__/polluted", value: true },
  ]);
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
});

const misfits: [title: string, document: unknown, patch: unknown][] = [
  ["a failing test", { a: 1 }, [{ op: "test", path: "/a", value: 2 }]],
  ["removing an absent value", {}, [{ op: "remove", path: "/a" }]],
  ["replacing below an absent value", {}, [
    { op: "replace", path: "/a/b", value: 1 },
  ]],
  ["a missing parent", {}, [{ op: "add", path: "/a/b", value: 1 }]],
  ["an index past the end", [1], [{ op: "add", path: "/2", value: 1 }]],
  ["an index before the first", [1], [{ op: "copy", from: "/-2", path: "/0" }]],
  ["an index with a leading zero", [1], [{ op: "remove", path: "/00" }]],
  ["an unknown operation", {}, [{ op: "frob", path: "/a" }]],
  ["a path without a slash", {}, [{ op: "add", path: "a", value: 1 }]],
  ["a path that is not a string", {}, [{ op: "add", path: 1, value: 1 }]],
  ["an inherited name", {}, [{ op: "remove", path: "/toString" }]],
  ["removing the document", { "": 1 }, [{ op: "remove", path: "" }]],
  ["adding to a scalar", { a: 1 }, [{ op: "add", path: "/a/b", value: 1 }]],
  ["replacing within a scalar", { a: 1 }, [
    { op: "replace", path: "/a/b", value: 1 },
  ]],
  ["adding to null", { a: null }, [{ op: "add", path: "/a/b", value: 1 }]],
  ["reading within null", { a: null }, [
    { op: "copy", from: "/a/b", path: "/c" },
  ]],
  ["a test of an absent item", { a: [] }, [
    { op: "test", path: "/a/0", value: null },
  ]],
  ["moving a value into itself", { a: {} }, [
    { op: "move", from: "/a", path: "/a/b" },
  ]],
];

for (const [title, document, patch] of misfits) {
  test(`applyJsonPatch refuses ${title} and names the operation`, () => {
    assert.throws(
      () => applyJsonPatch(document, patch as JsonPatchOperation[]),
      (error) =>
        error instanceof JsonPatchError && error.index === 0 &&
        error.name === "JsonPatchError",
    );
  });
}

test("applyJsonPatch limits what copies add", () => {
  const document = { a: "x".repeat(98) };
  const copies = (count: number): JsonPatchOperation[] =>
    Array.from(
      { length: count },
      (_, index) => ({ op: "copy", from: "/a", path: `/b${index}` }),
    );
  const options = { maxCopied: 1_000 };
  applyJsonPatch(document, copies(10), options);
  assert.throws(
    () => applyJsonPatch(document, copies(11), options),
    /operation 10 .*: the copies are too large/,
  );
  applyJsonPatch(document, copies(11));
  const doubling = Array.from(
    { length: 40 },
    (_, index): JsonPatchOperation => ({
      op: "copy",
      from: "",
      path: `/b${index}`,
    }),
  );
  assert.throws(
    () => applyJsonPatch(document, doubling, options),
    /the copies are too large/,
  );
});

test("applyJsonPatch changes neither the source nor the target of a copy later", () => {
  const patched = applyJsonPatch({ a: { n: 1 }, list: [] }, [
    { op: "replace", path: "/a/n", value: 2 },
    { op: "copy", from: "/a", path: "/b" },
    { op: "replace", path: "/a/n", value: 3 },
    { op: "add", path: "/list/-", value: { n: 4 } },
    { op: "copy", from: "/list/0", path: "/list/-" },
    { op: "replace", path: "/list/1/n", value: 5 },
    { op: "replace", path: "/b/n", value: 6 },
  ]);
  assert.deepEqual(patched, {
    a: { n: 3 },
    b: { n: 6 },
    list: [{ n: 4 }, { n: 5 }],
  });
});

test("applyJsonPatch creates fields that can be changed and listed", () => {
  const patched = applyJsonPatch({}, [{ op: "add", path: "/a", value: 1 }]);
  assert.deepEqual(Object.getOwnPropertyDescriptor(patched, "a"), {
    value: 1,
    writable: true,
    enumerable: true,
    configurable: true,
  });
});

test("applyJsonPatch does not change the values of its patch", () => {
  const value = { n: 1 };
  applyJsonPatch({}, [
    { op: "add", path: "/a", value },
    { op: "replace", path: "/a/n", value: 2 },
  ]);
  assert.deepEqual(value, { n: 1 });
});

test("applyJsonPatch does not copy a large map for each operation", () => {
  const entries = Array.from({ length: 8_000 }, (_, index) => index);
  const document = {
    data: Object.fromEntries(entries.map((index) => [`k${index}`, ""])),
  };
  const begin = performance.now();
  const patched = applyJsonPatch(
    document,
    entries.map((index) => ({ op: "add", path: `/data/x${index}`, value: "" })),
  ) as typeof document;
  assert.equal(Object.keys(patched.data).length, 16_000);
  // It takes 100 ms; with copies it is 20 s or more.
  assert.ok(performance.now() - begin < 5_000);
});

test("applyJsonPatch names what is not a list of operations", () => {
  assert.throws(() => applyJsonPatch({}, { op: "add" } as never), {
    name: "TypeError",
    message: /^Cannot apply a JSON patch: it must be a list of operations/,
  });
});

test("applyJsonPatch passes on an error that is not one of the patch", () => {
  assert.throws(
    () => applyJsonPatch({ a: 1n }, [{ op: "copy", from: "/a", path: "/b" }]),
    (error) => error instanceof TypeError,
  );
});

test("applyJsonPatch removes nothing that is not there", () => {
  for (
    const [path, message] of [
      ["/b", /there is nothing at "b"/],
      ["/list/1", /there is no index "1"/],
      ["/b/c", /there is nothing at "b"/],
    ] as const
  ) {
    const document = { a: 1, list: [1] };
    assert.throws(
      () => applyJsonPatch(document, [{ op: "remove", path }]),
      message,
    );
  }
});
