import assert from "node:assert/strict";
import { test } from "node:test";
import type {
  ControllerOptions,
  EventSource,
  KubernetesObject,
  Reconciler,
} from "@coracle/operator/core";
import { byLabel, watch } from "@coracle/operator/sources";
import {
  controllerSettings,
  finalizerOf,
} from "../../../core/controller/controller_settings.ts";
import { namespaceSet } from "../../../core/controller/namespaces.ts";

const KIND = {
  group: "example.com",
  version: "v1",
  kind: "Gadget",
  plural: "gadgets",
  scope: "Namespaced",
} as const;

const plain: Reconciler<KubernetesObject> = { reconcile() {} };
const cleaner: Reconciler<KubernetesObject> = { ...plain, cleanup() {} };

function settings(options: object, reconciler = plain) {
  return controllerSettings(KIND, reconciler, options as ControllerOptions);
}

test("controllerSettings has the defaults of JOSDK where it has them [J52]", () => {
  const made = settings({});
  assert.equal(made.name, "gadget");
  assert.equal(made.fieldManager, "gadget");
  assert.equal(made.concurrency, 10);
  assert.equal(made.maxInterval, 36_000_000);
  assert.equal(made.retry.maxAttempts, Infinity);
  assert.equal(made.generationAware, true);
  assert.equal(made.serverSideApply, true);
  assert.equal(made.timeout, Infinity);
  assert.equal(made.limiter, undefined);
  assert.equal(finalizerOf(made, KIND), undefined);
});

/** Parts of a workflow that registration only looks at. */
const UNUSED = {
  sources: [],
  reconcile: () => Promise.reject(new Error("not called")),
  cleanup: () => Promise.reject(new Error("not called")),
  resultIn: () => undefined,
};

test("controllerSettings turns finalizers on for cleanup", () => {
  const made = settings({}, cleaner);
  assert.equal(finalizerOf(made, KIND), "gadgets.example.com/finalizer");
  const named = settings({ finalizer: "example.com/mine" }, cleaner);
  assert.equal(finalizerOf(named, KIND), "example.com/mine");
});

test("controllerSettings rejects invalid options and names valid values", () => {
  const source = {
    name: "pods",
    start: () => Promise.resolve(),
  } as unknown as EventSource;
  const bad: [object, RegExp][] = [
    [{ retrys: false }, /did you mean "retry"/],
    [{ retry: { attempts: 3 } }, /"gadget", retry: .*"attempts"/],
    [{ maxInterval: "10 hours" }, /"maxInterval".*"10 hours"/],
    [{ timeout: "soon" }, /"timeout"/],
    [{ pauseAnnotation: "not valid" }, /annotation.*"not valid"/],
    [{ requestAnnotations: ["a/b/c"] }, /annotation.*"a\/b\/c"/],
    [{ finalizer: `a.com/${"x".repeat(64)}` }, /finalizer/],
    [{ concurrency: 0 }, /"concurrency" must be/],
    [{ name: "My Controller" }, /name must be of lower-case/],
    [{ finalizer: "mine" }, /a domain, a slash and a name/],
    [{ fieldManager: "x".repeat(129) }, /"fieldManager" must be .* 128 bytes/],
    [{ fieldManager: "a\tb" }, /"fieldManager" must be printable characters/],
    [{ name: "x".repeat(129) }, /"fieldManager" must be .* 128 bytes/],
    [{ rateLimit: { limit: 0 } }, /rateLimit: "limit"/],
    [{ rateLimit: { limits: 1 } }, /did you mean "limit"/],
    [{ filters: { delete: () => true } }, /no option "delete"/],
    [{ sources: [source, source] }, /"pods" twice/],
    [{ owns: [{ kind: "Pod" }] }, /owns\[0\]: it must have a group/],
    [{ owns: [source] }, /owns\[0\]: owned objects are found by their owner/],
    [{ owns: [watch(KIND, { mapper: byLabel("x") })] }, /without mapper/],
    [{ watches: [KIND] }, /watches\[0\]: it must be watch\(Kind, /],
    [{ watches: [source] }, /of what is no kind belongs in "sources"/],
    [{ cache: { pruned: [] } }, /did you mean "prune"/],
  ];
  for (const [options, message] of bad) {
    assert.throws(() => settings(options), message);
  }
  assert.throws(
    () => settings({ allEvents: true }, cleaner),
    /"allEvents" hands deletions to reconcile, so that a cleanup cannot/,
  );
  const workflow = { needsFinalizer: true, ...UNUSED };
  assert.throws(
    () => settings({ allEvents: true, workflow }),
    /"allEvents" adds no finalizer, .* make the workflow \{ explicit: true \}/,
  );
  const explicit = { ...workflow, explicit: true };
  const made = settings({ allEvents: true, workflow: explicit });
  assert.equal(made.usesFinalizer, false);
});

test("controllerSettings requires a reconciler with a reconcile method", () => {
  for (const reconciler of [null, {}, { reconcile: 1 }]) {
    assert.throws(
      () => settings({}, reconciler as unknown as Reconciler<KubernetesObject>),
      /needs a method "reconcile\(primary, ctx\)"/,
    );
  }
  const wrong = { reconcile() {}, cleanup: true };
  assert.throws(
    () => settings({}, wrong as unknown as Reconciler<KubernetesObject>),
    /"cleanup" to be a method/,
  );
});

test("controllerSettings refuses misspelt methods and options among them", () => {
  class Helped {
    runs = 0;
    reconcile() {}
    reconcileService() {}
    clear() {}
  }
  class Misspelt extends Helped {
    cleanUp() {}
  }
  class MisspeltField extends Helped {
    cleanups = () => {};
  }
  const bad: [object, RegExp][] = [
    [{ ...plain, cleanUp() {} }, /"cleanUp", did you mean "cleanup"\?$/],
    [{ ...plain, onErorr() {} }, /"onErorr", did you mean "onError"\?$/],
    [{ ...plain, helper() {} }, /"helper", only reconcile, initContext,/],
    [{ ...plain, owns: [] }, /"owns".*; options are the argument after it$/],
    [new Misspelt(), /Gadget: its reconciler cannot have "cleanUp", did/],
    [new MisspeltField(), /"cleanups", did you mean "cleanup"\?$/],
  ];
  for (const [reconciler, message] of bad) {
    assert.throws(() => settings({}, reconciler as typeof plain), message);
  }
  settings({}, new Helped());
  class Both extends Misspelt {
    cleanup() {}
  }
  settings({}, new Both());
});

test("namespaceSet reads all, current and lists", () => {
  assert.equal(namespaceSet("all", undefined, KIND), "all");
  assert.deepEqual(namespaceSet("current", "here", KIND), ["here"]);
  assert.deepEqual(namespaceSet(["b", "a", "b"], "here", KIND), ["a", "b"]);
  const cluster = { kind: "Node", scope: "Cluster" } as const;
  assert.equal(namespaceSet(["a"], undefined, cluster), "all");
  assert.throws(() => namespaceSet("current", undefined, KIND), TypeError);
  assert.throws(() => settings({ namespaces: [] }), TypeError);
  assert.throws(() => settings({ namespaces: ["No"] }), /lower-case/);
});
