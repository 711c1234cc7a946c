import assert from "node:assert/strict";
import { test } from "node:test";
import {
  allOf,
  anyOf,
  type CacheEvent,
  type KubernetesObject,
  noneOf,
} from "@coracle/operator/core";
import { accepts, isRelevantUpdate } from "../../../core/controller/filters.ts";

const FINALIZER = "example.com/finalizer";

type Header = Pick<
  CacheEvent["header"],
  "generation" | "deletionTimestamp" | "hasFinalizer" | "annotation"
>;

const PAUSED = "coracle.dev/paused";
const REQUESTED = "reconcile.coracle.dev/requestedAt";
const WATCHED = "example.com/mode";

function header(
  generation: number | undefined,
  finalizers: readonly string[] = [],
  deletionTimestamp?: string,
  paused = false,
): CacheEvent["header"] {
  const made: Header = {
    generation,
    deletionTimestamp,
    hasFinalizer: (name) => finalizers.includes(name),
    annotation: (key) => key === PAUSED && paused ? "true" : undefined,
  };
  return made as CacheEvent["header"];
}

function relevant(
  before: CacheEvent["header"] | undefined,
  after: CacheEvent["header"],
  finalizer: string | undefined = undefined,
  generationAware = true,
): boolean {
  return isRelevantUpdate({
    header: after,
    previousHeader: before,
    hasSameMetadata: false,
    relist: false,
    object: { metadata: {} } as KubernetesObject,
    previous: undefined,
  }, {
    finalizer,
    generationAware,
    pauseAnnotation: PAUSED,
    requestAnnotations: [REQUESTED],
    watchedAnnotations: [WATCHED],
  });
}

function asking(token: string | undefined): CacheEvent["header"] {
  const asks = {
    annotation: (key: string) => (key === REQUESTED ? token : undefined),
  };
  return { ...header(1), ...asks } as CacheEvent["header"];
}

test("isRelevantUpdate accepts a new request, but not an old one or its removal [F39]", () => {
  assert(relevant(asking(undefined), asking("now")));
  assert(relevant(asking("now"), asking("")));
  assert(!relevant(asking("now"), asking("now")));
  assert(!relevant(asking("now"), asking(undefined)));
});

test("isRelevantUpdate accepts any change of a watched annotation", () => {
  const having = (value: string | undefined) => {
    const annotation = (key: string) => key === WATCHED ? value : undefined;
    return { ...header(1), annotation } as CacheEvent["header"];
  };
  assert(relevant(having(undefined), having("a")));
  assert(relevant(having("a"), having("b")));
  assert(relevant(having("a"), having(undefined)));
  assert(!relevant(having("a"), having("a")));
});

test("isRelevantUpdate accepts pausing and resuming", () => {
  const paused = header(1, [], undefined, true);
  assert.equal(relevant(header(1), paused), true);
  assert.equal(relevant(paused, header(1)), true);
  assert.equal(relevant(paused, paused), false);
});

test("isRelevantUpdate accepts a new or unknown generation [InternalEventFiltersTest]", () => {
  assert.equal(relevant(header(1), header(2)), true);
  assert.equal(relevant(header(1), header(1)), false);
  assert.equal(relevant(header(undefined), header(undefined)), true);
  assert.equal(relevant(undefined, header(1)), true);
  assert.equal(relevant(header(1), header(1), undefined, false), true);
});

test("isRelevantUpdate accepts another spec of the same generation after a relist", () => {
  const accepts = (object: object, previous: object, relist: boolean) =>
    isRelevantUpdate({
      header: header(3),
      previousHeader: header(3),
      hasSameMetadata: true,
      relist,
      object: object as KubernetesObject,
      previous: previous as KubernetesObject,
    }, {
      finalizer: undefined,
      generationAware: true,
      pauseAnnotation: undefined,
      requestAnnotations: [],
      watchedAnnotations: [],
    });
  const before = { kind: "A", metadata: { name: "a" }, spec: { size: 1 } };
  assert.equal(accepts({ ...before, spec: { size: 2 } }, before, true), true);
  assert.equal(accepts({ ...before, data: {} }, before, true), true);
  assert.equal(accepts(before, { ...before, data: {} }, true), true);
  assert.equal(accepts({ ...before, status: {} }, before, true), false);
  assert.equal(accepts({ ...before, spec: { size: 2 } }, before, false), false);
});

test("isRelevantUpdate accepts the deletionTimestamp once [J53]", () => {
  const marked = header(1, [], "2026-01-01T00:00:00Z");
  assert.equal(relevant(header(1), marked), true);
  assert.equal(relevant(marked, marked), false);
});

test("isRelevantUpdate accepts objects that have or had no finalizer of ours [J55]", () => {
  const with_ = header(1, [FINALIZER]);
  assert.equal(relevant(header(1), with_, FINALIZER), true);
  assert.equal(relevant(with_, header(1), FINALIZER), true);
  assert.equal(relevant(with_, with_, FINALIZER), false);
});

function event(type: CacheEvent["type"]): CacheEvent {
  const object: KubernetesObject = { metadata: { name: type } };
  return {
    type,
    object,
    previous: undefined,
    finalStateUnknown: true,
  } as CacheEvent;
}

test("accepts calls the filter of the event type and the generic filter [J54]", () => {
  const asked: string[] = [];
  const filters = {
    add: (object: KubernetesObject) => asked.push(object.metadata.name) > 0,
    update: () => false,
    delete: (_: KubernetesObject, unknown: boolean) => unknown,
    generic: () => asked.push("generic") > 0,
  };
  assert.equal(accepts(filters, event("added")), true);
  assert.equal(accepts(filters, event("updated")), false);
  assert.equal(accepts(filters, event("deleted")), true);
  assert.deepEqual(asked, ["generic", "added", "generic", "generic"]);
  assert.equal(accepts({}, event("added")), true);
  assert.equal(accepts({ event: () => false }, event("added")), false);
});

test("allOf, anyOf and noneOf combine filters", () => {
  const even = (n: number) => n % 2 === 0;
  const big = (n: number) => n > 10;
  assert.deepEqual([2, 11, 12].map(allOf(even, big)), [false, false, true]);
  assert.deepEqual([1, 2, 11].map(anyOf(even, big)), [false, true, true]);
  assert.deepEqual([1, 2].map(noneOf(even)), [true, false]);
});

test("A filter that returns a promise is an error that names it", async () => {
  const promised = () => Promise.reject(new Error("As asked")) as never;
  for (
    const [filters, type, name] of [
      [{ event: promised }, "added", "filters.event"],
      [{ generic: promised }, "updated", "filters.generic"],
      [{ add: promised }, "added", "filters.add"],
      [{ update: promised }, "updated", "filters.update"],
      [{ delete: promised }, "deleted", "filters.delete"],
      [{ generic: allOf(promised) }, "added", "a filter of allOf()"],
      [{ generic: anyOf(promised) }, "added", "a filter of anyOf()"],
      [{ generic: noneOf(promised) }, "added", "a filter of noneOf()"],
    ] as const
  ) {
    assert.throws(() => accepts(filters, event(type)), {
      message:
        `Cannot use the result of ${name}: the function must not be async, since its result is used at once`,
    });
  }
  await new Promise((resolve) => setImmediate(resolve)); // No rejection is left.
});
