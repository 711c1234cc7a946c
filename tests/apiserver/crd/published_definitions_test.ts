import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";

/** What published definitions do, in schemas and objects of our own. */
interface Definition {
  readonly name: string;
  /** Schema of the spec, or with `root` of the whole object. */
  readonly spec?: Record<string, unknown>;
  readonly root?: Record<string, unknown>;
  /** Spec of an object, and whether the rules allow it. */
  readonly objects?: readonly (readonly [spec: unknown, allowed: boolean])[];
}

const TEXT = { type: "string", maxLength: 9 };

function rules(...texts: readonly string[]) {
  return {
    "x-kubernetes-validations": texts.map((rule) => ({ rule })),
  };
}

const DEFINITIONS: readonly Definition[] = [
  {
    name: "an object compared with null",
    spec: {
      type: "object",
      properties: { part: { type: "object", properties: { x: TEXT } } },
      ...rules("self.part != null"),
    },
    objects: [[{ part: {} }, true]],
  },
  {
    name: "fields named like reserved words",
    spec: {
      type: "object",
      properties: {
        namespace: TEXT,
        package: TEXT,
        "true": TEXT,
      },
      ...rules(
        "!has(self.namespace) || self.namespace != ''",
        "!has(self.__package__) || self.package == 'p'",
        "!has(self.__true__) || self.__true__ == 't'",
      ),
    },
    objects: [
      [{ namespace: "a", package: "p", "true": "t" }, true],
      [{ namespace: "" }, false],
      [{ package: "q" }, false],
      [{ "true": "f" }, false],
    ],
  },
  {
    name: "a rule on a field before metadata",
    root: {
      type: "object",
      properties: {
        driver: { ...TEXT, ...rules("self == oldSelf") },
        metadata: { type: "object" },
      },
    },
  },
  {
    name: "optional values",
    spec: {
      type: "object",
      properties: { a: TEXT },
      ...rules(
        "self.?a.optMap(v, v.startsWith('x')).orValue(true)",
        "self.?a.optFlatMap(v, optional.ofNonZeroValue(v)).hasValue() || !has(self.a)",
        "[?self.?a].size() <= 1 && {?'k': self.?a}.size() <= 1",
      ),
    },
    objects: [[{}, true], [{ a: "xy" }, true], [{ a: "y" }, false]],
  },
  {
    name: "the function matches()",
    spec: {
      type: "object",
      properties: { a: { ...TEXT, ...rules("matches(self, '^v1')") } },
    },
    objects: [[{ a: "v1.2" }, true], [{ a: "v2" }, false]],
  },
  {
    name: "times and durations converted again",
    spec: {
      type: "object",
      properties: {
        at: { type: "string", format: "date-time" },
        wait: { type: "string", format: "duration" },
      },
      ...rules(
        "timestamp(self.at) > timestamp('2020-01-01T00:00:00Z')",
        "duration(self.wait) >= duration('0')",
      ),
    },
    objects: [
      [{ at: "2024-01-01T00:00:00Z", wait: "0" }, true],
      [{ at: "2019-01-01T00:00:00Z", wait: "1s" }, false],
    ],
  },
];

/** Definition of a kind with a schema. */
function definition(schema: Record<string, unknown>, extra: object = {}) {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "things.published.dev" },
    spec: {
      group: "published.dev",
      scope: "Cluster",
      names: { plural: "things", kind: "Thing" },
      versions: [{
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: schema },
        ...extra,
      }],
    },
  };
}

interface Answer {
  readonly warning: string;
  readonly status: number;
  // deno-lint-ignore no-explicit-any -- tests look at whatever is there
  readonly body: any;
}

type Send = (
  method: "GET" | "PATCH" | "POST",
  path: string,
  body?: unknown,
  patch?: string,
) => Promise<Answer>;

const DEFINITION_PATH =
  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS = "/apis/published.dev/v1/things";

async function withServer(run: (send: Send) => Promise<void>): Promise<void> {
  const server = await ApiServer.start({ port: false, establishingDelay: 0 });
  try {
    const { transport, token } = server;
    await run(async (method, path, body, patch = "merge-patch+json") => {
      const response = await transport.send({
        method,
        path,
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": `application/${method === "PATCH" ? patch : "json"}`,
        },
        body: body === undefined || typeof body === "string"
          ? body
          : JSON.stringify(body),
      });
      let text = "";
      const decoder = new TextDecoder();
      for await (const chunk of response.body) {
        text += decoder.decode(chunk, { stream: true });
      }
      const { status, headers } = response;
      const warning = String(headers["warning"] ?? "");
      return { status, warning, body: JSON.parse(text) };
    });
  } finally {
    await server.stop();
  }
}

for (const { name, spec, root, objects = [] } of DEFINITIONS) {
  test(`A published definition is accepted and enforced: ${name}`, async () => {
    await withServer(async (send) => {
      const schema = root ?? { type: "object", properties: { spec } };
      const { status, body } = await send(
        "POST",
        DEFINITION_PATH,
        definition(schema),
      );
      assert.equal(status, 201, body.message);
      for (const [index, [spec, allowed]] of objects.entries()) {
        const answer = await send("POST", THINGS, {
          apiVersion: "published.dev/v1",
          kind: "Thing",
          metadata: { name: `t${index}` },
          spec,
        });
        const text = `${JSON.stringify(spec)}: ${answer.body.message}`;
        assert.equal(answer.status, allowed ? 201 : 422, text);
      }
    });
  });
}

test("The default of a status is set on create, and stays", async () => {
  await withServer(async (send) => {
    const { status } = await send(
      "POST",
      DEFINITION_PATH,
      definition({
        type: "object",
        properties: {
          spec: { type: "object", properties: { a: TEXT } },
          status: {
            type: "object",
            default: { phase: "Pending" },
            properties: {
              phase: TEXT,
              count: { type: "integer", default: 0 },
            },
          },
        },
      }, { subresources: { status: {} } }),
    );
    assert.equal(status, 201);
    const first = { phase: "Pending", count: 0 };
    const thing = {
      apiVersion: "published.dev/v1",
      kind: "Thing",
      metadata: { name: "a" },
      spec: { a: "x" },
      status: { phase: "Mine" },
    };
    const created = await send("POST", THINGS, thing);
    assert.deepEqual(created.body.status, first);
    const read = await send("GET", `${THINGS}/a`);
    assert.deepEqual(read.body.status, first);
    const list = await send("GET", THINGS);
    assert.deepEqual(list.body.items[0].status, first);
    const patched = await send("PATCH", `${THINGS}/a/status`, {
      status: { phase: "Ready" },
    });
    assert.deepEqual(patched.body.status, { phase: "Ready", count: 0 });
    const cleared = await send("PATCH", `${THINGS}/a/status`, { status: null });
    assert.deepEqual(cleared.body.status, first);
    const changed = await send("PATCH", `${THINGS}/a`, { spec: { a: "y" } });
    assert.deepEqual(changed.body.status, first);
    assert.equal(changed.body.metadata.generation, 2);
  });
});

const FORM = "desired format: https://host[:port]/path";

test("The URL of a webhook has https, a host and nothing else", async () => {
  await withServer(async (send) => {
    const refused: readonly (readonly [url: string, why: string])[] = [
      [
        "http://a/b",
        `Invalid value: "http": 'https' is the only allowed URL scheme; ${FORM}`,
      ],
      [
        "file:///a",
        `Invalid value: "file": 'https' is the only allowed URL scheme; ${FORM}, Invalid value: "": host must be specified; ${FORM}`,
      ],
      [
        "https://u:p@a/b",
        'Invalid value: "u:p": user information is not permitted in the URL',
      ],
      [
        "https://a/b?c=d",
        'Invalid value: "c=d": query parameters are not permitted in the URL',
      ],
      [
        "https://a/b#c",
        'Invalid value: "c": fragments are not permitted in the URL',
      ],
      [
        "https://a b/",
        `Invalid value: "https://a b/": url must be a valid URL: parse "https://a b/": invalid character " " in host name; ${FORM}`,
      ],
    ];
    for (const [url, why] of refused) {
      const { status, body } = await send(
        "POST",
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        {
          metadata: { name: "w" },
          webhooks: [{
            name: "w.published.dev",
            sideEffects: "None",
            admissionReviewVersions: ["v1"],
            clientConfig: { url },
          }],
        },
      );
      assert.equal(status, 422, url);
      const texts = body.details.causes.map(
        ({ message }: { readonly message: string }) => message,
      );
      assert.equal(texts.join(", "), why, url);
      const converted = definition({ type: "object" });
      const conversion = {
        strategy: "Webhook",
        webhook: { clientConfig: { url }, conversionReviewVersions: ["v1"] },
      };
      const crd = await send("POST", DEFINITION_PATH, {
        ...converted,
        spec: { ...converted.spec, conversion },
      });
      assert.equal(crd.status, 422, url);
    }
  });
});

test("A number has the type that Go reads, and only formats of its type count", async () => {
  await withServer(async (send) => {
    const crd = definition({
      type: "object",
      properties: {
        spec: {
          type: "object",
          properties: {
            i: { type: "integer" },
            i32: { type: "integer", format: "int32" },
            u64: { type: "integer", format: "uint64" },
            replicas: { type: "integer" },
          },
        },
      },
    });
    const { status, warning } = await send("POST", DEFINITION_PATH, crd);
    assert.equal(status, 201);
    assert.match(warning, /^299 - "unrecognized format \\"uint64\\""$/);
    const cases: readonly (readonly [spec: unknown, why: RegExp])[] = [
      [{ u64: -1 }, /^$/],
      [
        { i: 1e19 },
        /spec\.i in body must be of type integer: "number".*value must be of type integer \(default format\)/s,
      ],
      [
        { u64: 18446744073709551615 },
        /"number".*type integer \(default format\)/s,
      ],
      [
        { i32: 1.5 },
        /"float64": spec\.i32 in body must be of type int32: "float64"/,
      ],
    ];
    for (const [index, [spec, why]] of cases.entries()) {
      const { status, body } = await send("POST", THINGS, {
        apiVersion: "published.dev/v1",
        kind: "Thing",
        metadata: { name: `t${index}` },
        spec,
      });
      const text = status === 201 ? "" : String(body.message);
      assert.match(text, why, JSON.stringify(spec));
    }
  });
});

test("Rules are evaluated beside a duplicate, and formats as in Go", () =>
  withServer(async (send) => {
    const properties = {
      set: {
        type: "array",
        maxItems: 3,
        items: TEXT,
        "x-kubernetes-list-type": "set",
      },
      mac: { type: "string", format: "mac" },
      short: { type: "string", format: "k8s-short-name" },
    };
    const spec = { type: "object", properties, ...rules("size(self.set) < 2") };
    const crd = definition({ type: "object", properties: { spec } });
    assert.equal((await send("POST", DEFINITION_PATH, crd)).status, 201);
    const thing = { apiVersion: "published.dev/v1", kind: "Thing" };
    const causes = async (given: object) => {
      const metadata = { name: "t" };
      const object = { ...thing, metadata, spec: given };
      const { body } = await send("POST", THINGS, object);
      return body.details.causes.map(({ field }: { field: string }) => field);
    };
    const mac = "001122334455";
    assert.deepEqual(await causes({ set: ["a", "a"], mac }), [
      "spec.set[1]",
      "spec",
    ]);
    assert.deepEqual(
      (await causes({ set: [], mac, short: "A_b" }))[0],
      "spec.short",
    );
  }));

test("A number that no double holds is refused", async () => {
  await withServer(async (send) => {
    await send(
      "POST",
      DEFINITION_PATH,
      definition({
        type: "object",
        properties: {
          spec: { type: "object", properties: { n: { type: "number" } } },
        },
      }),
    );
    const huge = JSON.parse('{"n":1e308}');
    const thing = {
      apiVersion: "published.dev/v1",
      kind: "Thing",
      metadata: { name: "t" },
      spec: huge,
    };
    const text = JSON.stringify(thing).replace("1e+308", "1e400");
    const { status, body } = await send("POST", THINGS, text);
    assert.equal(status, 400);
    assert.equal(
      body.message,
      'Thing in version "v1" cannot be handled as a Thing: json: cannot unmarshal number 1e400 into Go value of type float64',
    );
    assert.equal((await send("POST", THINGS, thing)).status, 201);
  });
});

test("An apply may leave out a key of a map list, which the schema then refuses", () =>
  withServer(async (send) => {
    const text = { type: "string" };
    await send(
      "POST",
      DEFINITION_PATH,
      definition({
        type: "object",
        properties: {
          spec: {
            type: "object",
            properties: {
              parts: {
                type: "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name", "value"],
                items: {
                  type: "object",
                  required: ["name", "value"],
                  properties: { name: text, value: text },
                },
              },
            },
          },
        },
      }),
    );
    const apply = (parts: readonly object[]) =>
      send("PATCH", `${THINGS}/t?fieldManager=x`, {
        apiVersion: "published.dev/v1",
        kind: "Thing",
        metadata: { name: "t" },
        spec: { parts },
      }, "apply-patch+yaml");
    const partial = await apply([{ name: "a" }, { name: "b", value: "x" }]);
    assert.equal(partial.status, 422);
    assert.match(
      partial.body.message,
      /spec\.parts\[0\]\.value: Required value/,
    );
    const none = await apply([{}]);
    assert.equal(none.status, 500);
    assert.match(
      none.body.message,
      /omits all key fields \["name" "value"\] \(and doesn't have default values for any key fields\)$/,
    );
  }));

test("OpenAPI says that a field may be an integer or a text", () =>
  withServer(async (send) => {
    await send(
      "POST",
      DEFINITION_PATH,
      definition({
        type: "object",
        properties: { spec: { "x-kubernetes-int-or-string": true } },
      }),
    );
    const { body } = await send("GET", "/openapi/v3/apis/published.dev/v1");
    assert.deepEqual(
      body.components.schemas["dev.published.v1.Thing"].properties.spec,
      {
        anyOf: [{ type: "integer" }, { type: "string" }],
        "x-kubernetes-int-or-string": true,
      },
    );
  }));

test("An apply stores no field that the schema does not have, and keeps nulls refused", () =>
  withServer(async (send) => {
    await send(
      "POST",
      DEFINITION_PATH,
      definition({
        type: "object",
        properties: {
          spec: {
            type: "object",
            properties: { part: { type: "object" }, name: { type: "string" } },
          },
        },
      }),
    );
    const apply = (spec: object) =>
      send("PATCH", `${THINGS}/t?fieldManager=x`, {
        apiVersion: "published.dev/v1",
        kind: "Thing",
        metadata: { name: "t" },
        spec,
      }, "apply-patch+yaml");
    assert.equal((await apply({ name: null })).status, 422);
    // Each apply changes the object before the field goes.
    for (const generation of [1, 2]) {
      const { body } = await apply({ part: { other: 1 } });
      assert.deepEqual(body.spec, { part: {} });
      assert.equal(body.metadata.generation, generation);
    }
  }));
