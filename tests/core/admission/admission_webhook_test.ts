import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  type AdmissionHandlers,
  type AdmissionOptions,
  allow,
  deny,
  noMetrics,
  silentLogger,
  systemClock,
  untyped,
  type UntypedObject,
} from "@coracle/operator/core";
import { admissionOf } from "../../../core/admission/admission_options.ts";
import {
  admissionRoute,
  type HandlerName,
} from "../../../core/admission/admission_webhook.ts";

const Boat = untyped({
  group: "test.coracle.dev",
  version: "v1",
  kind: "Boat",
});
const options: AdmissionOptions = { failurePolicy: "Fail" };

const request = {
  uid: "u-1",
  kind: { group: "test.coracle.dev", version: "v1", kind: "Boat" },
  operation: "CREATE",
  namespace: "shop",
  name: "a",
  userInfo: { username: "ada", groups: ["devs"] },
  object: { metadata: { name: "a", namespace: "shop" }, spec: { seats: 2 } },
};

/** Response of a handler to a review with a request. */
async function respond(
  handlers: AdmissionHandlers<UntypedObject>,
  changes: object = {},
  review: object = {},
): Promise<Record<string, unknown>> {
  const handler = Object.keys(handlers)[0] as HandlerName;
  const route = admissionRoute(admissionOf(Boat, handlers, options), handler, {
    clock: systemClock,
    log: silentLogger,
    metrics: noMetrics,
    checksDefaults: true,
    reader: {
      read: () => Promise.resolve(undefined),
      readList: () => Promise.resolve([]),
    },
  });
  const body = Buffer.from(JSON.stringify({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: { ...request, ...changes },
    ...review,
  }));
  const { signal } = new AbortController();
  const answer = await route(body, { signal, timeout: 50 });
  return (answer as { response: Record<string, unknown> }).response;
}

test("validate allows, warns and denies with the fields of a Status", async () => {
  assert.deepEqual(await respond({ validate() {} }), {
    uid: "u-1",
    allowed: true,
  });
  const warnings = ["old"];
  const warned = await respond({ validate: () => allow({ warnings }) });
  assert.deepEqual(warned, { uid: "u-1", allowed: true, warnings });
  const { status } = await respond({
    validate: () =>
      deny("must be even", {
        field: "spec.seats",
        causes: [{ field: "spec.crew", message: "is missing" }],
      }),
  });
  assert.deepEqual(status, {
    status: "Failure",
    code: 422,
    reason: "Invalid",
    message: "spec.seats: must be even; spec.crew: is missing",
    details: {
      name: "a",
      group: "test.coracle.dev",
      kind: "Boat",
      causes: [
        {
          reason: "FieldValueInvalid",
          field: "spec.seats",
          message: "must be even",
        },
        {
          reason: "FieldValueInvalid",
          field: "spec.crew",
          message: "is missing",
        },
      ],
    },
  });
  const bare = await respond({ validate: () => deny("not today") });
  assert.equal((bare["status"] as { code: number }).code, 403);
});

test("validate sees the deleted object, the user and a frozen object", async () => {
  await respond({
    validate(boat, ctx) {
      assert.equal(ctx.operation, "DELETE");
      assert.equal(ctx.old, boat);
      assert.equal(ctx.user.username, "ada");
      assert.throws(() => boat.metadata.labels = {}, TypeError);
    },
  }, { operation: "DELETE", object: null, oldObject: request.object });
});

test("default answers with the patch of what it has changed", async () => {
  const { patch, patchType } = await respond({
    default(boat) {
      boat["spec"] = { ...boat["spec"] as object, colour: "red" };
      return boat;
    },
  });
  assert.equal(patchType, "JSONPatch");
  assert.deepEqual(
    JSON.parse(Buffer.from(String(patch), "base64").toString()),
    [
      { op: "add", path: "/spec/colour", value: "red" },
    ],
  );
  const same = await respond({ default: (boat) => boat });
  assert.deepEqual(same, { uid: "u-1", allowed: true });
});

test("wrong use of a handler is an error that names it", async () => {
  const wrong: [AdmissionHandlers<UntypedObject>, RegExp][] = [
    [{ validate: () => true as never }, /must return deny\(\), allow\(\)/],
    [{
      validate: () => {
        throw new Error("no database");
      },
    }, /Cannot call validate\(\) for Boat shop\/a: .* an error: no database$/],
    [{ validate: () => new Promise(() => {}) }, /not done within 50 ms$/],
    [{ default: () => undefined as never }, /must return the changed object/],
    [{
      default: (boat) =>
        ({ ...boat, metadata: { name: "b" } }) as UntypedObject,
    }, /must not change metadata\.n/],
    [
      { default: (boat) => ({ ...boat, status: {} }) },
      /must not change status/,
    ],
    [{
      default: (boat) => ({
        ...boat,
        spec: { seats: (boat["spec"] as { seats: number }).seats + 1 },
      }),
    }, /a second call changes spec\.seats$/],
  ];
  for (const [handlers, message] of wrong) {
    await assert.rejects(respond(handlers), { message });
  }
});

test("the signal of a handler aborts before the API server gives up", async () => {
  let reason: unknown;
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  const validate: AdmissionHandlers<UntypedObject>["validate"] = (
    _boat,
    { signal },
  ) =>
    new Promise(() =>
      signal.addEventListener("abort", () => {
        ({ reason } = signal);
        resolve();
      })
    );
  // The call has 50 ms; the API server waits a fifth longer.
  await assert.rejects(respond({ validate }), /not done within 50 ms$/);
  await gone;
  assert.match(String(reason), /Boat shop\/a: it was not done within 50 ms$/);
});

test("what is no admission review of v1 is refused with 400", async () => {
  const cases: [object, object][] = [
    [{}, { apiVersion: "admission.k8s.io/v1beta1" }],
    [{}, { kind: "ConversionReview" }],
    [{}, { request: null }],
    [{ uid: undefined }, {}],
    [{ uid: "a".repeat(1_000) }, {}],
    [{ operation: "PATCH" }, {}],
    [{ object: null }, {}],
    [{ object: { metadata: 1 } }, {}],
    [{ userInfo: undefined }, {}],
    [{ kind: { group: "", version: "v1", kind: "Pod" } }, {}],
  ];
  for (const [changes, review] of cases) {
    await assert.rejects(
      respond({ validate() {} }, changes, review),
      { name: "WebhookRefusal", status: 400 },
      JSON.stringify([changes, review]),
    );
  }
});

test("admissionOf refuses options that are unknown, missing or unusable", () => {
  const handlers = { validate() {} };
  const refused: [object, object, RegExp][] = [
    [handlers, {}, /"failurePolicy" must be chosen/],
    [handlers, { ...options, timout: "5s" }, /did you mean "timeout"/],
    [handlers, { ...options, timeout: "1500ms" }, /whole number of seconds/],
    [handlers, { ...options, operations: ["PATCH"] }, /some of CREATE, UPDATE/],
    [handlers, { ...options, objectSelector: "a>1" }, /must not compare/],
    [{ validat() {} }, options, /did you mean "validate"/],
    [{}, options, /there must be "validate" or "default"/],
    [
      { default: (boat: UntypedObject) => boat },
      { ...options, operations: ["DELETE"] },
      /"default" sees only CREATE and UPDATE/,
    ],
  ];
  for (const [given, settings, message] of refused) {
    assert.throws(
      () => admissionOf(Boat, given, settings as AdmissionOptions),
      { message },
    );
  }
});
