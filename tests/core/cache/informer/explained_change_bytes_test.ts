import assert from "node:assert/strict";
import { test } from "node:test";
import {
  isExplainedBy,
  statusExplainedBy,
} from "../../../../core/cache/informer/explained_change.ts";
import { wholeRange } from "../../../../core/json/byte_range.ts";
import { EventScanner } from "../../../../core/json/event_scanner.ts";
import { fc } from "../../../support/property.ts";

type Pair = Parameters<typeof isExplainedBy>;

const scanner = new EventScanner();

function header(object: unknown) {
  return scanner.scanObject(wholeRange(JSON.stringify(object))).copy();
}

function onBytes(sent: unknown, before: Pair[1], after: Pair[2]) {
  const { managedFields: _fields, ...metadata } = before.metadata;
  return statusExplainedBy(
    sent,
    header({ ...before, metadata }),
    header(after),
  );
}

function page(version: string, rest: object = {}, metadata: object = {}) {
  return {
    apiVersion: "v1",
    kind: "Page",
    metadata: { name: "a", resourceVersion: version, ...metadata },
    spec: { text: "x" },
    ...rest,
  } as Pair[1];
}

test("statusExplainedBy finds a change of the status alone on bytes", () => {
  const sent = { metadata: { uid: "u" }, status: { ready: true } };
  const ready = page("2", { status: { ready: true } });
  assert.equal(onBytes(sent, page("1"), ready), true);
  assert.equal(
    onBytes(sent, page("1", { status: { ready: false } }), ready),
    true,
  );
  const two = page("2", { status: { ready: true, url: "y" } });
  const one = page("1", { status: { ready: false } });
  assert.equal(onBytes(sent, one, two), false);
});

test("statusExplainedBy leaves a change beside the status to the whole", () => {
  const sent = { status: { ready: true } };
  const after = page("2", { spec: { text: "z" }, status: { ready: true } });
  assert.equal(onBytes(sent, page("1"), after), undefined);
  const labeled = page("2", { status: { ready: true } }, {
    labels: { a: "b" },
  });
  assert.equal(onBytes(sent, page("1"), labeled), undefined);
});

test("statusExplainedBy agrees with the comparison of whole objects", () => {
  const status = fc.constantFrom(
    undefined,
    {},
    { ready: true },
    { ready: false },
    { ready: true, url: "y" },
    [1],
  );
  const state = (version: string) =>
    fc.record({
      metadata: fc.record({
        labels: fc.constantFrom({ a: "1" }, { a: "2" }),
        managedFields: fc.constantFrom(undefined, [], [{ manager: "m" }]),
        generation: fc.constantFrom(1, 1, 2),
      }, { requiredKeys: [] }),
      rest: fc.record({
        spec: fc.constantFrom({ text: "x" }, { text: "y" }),
        status,
        data: fc.constantFrom(1, 2),
      }, { requiredKeys: [] }),
    }).map(({ metadata, rest }) =>
      JSON.parse(JSON.stringify(page(version, rest, metadata)))
    );
  const sent = fc.record({
    metadata: fc.constantFrom({ uid: "u" }),
    status,
  }, { requiredKeys: [] }).map((value) => JSON.parse(JSON.stringify(value)));
  let decided = 0;
  fc.assert(
    fc.property(sent, state("1"), state("2"), (sent, before, after) => {
      const found = onBytes(sent, before, after);
      if (found === undefined) return;
      decided++;
      assert.equal(found, isExplainedBy(sent, before, after));
    }),
    { numRuns: 3_000 },
  );
  assert(decided > 0);
});
