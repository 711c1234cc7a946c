import assert from "node:assert/strict";
import { test } from "node:test";
import {
  initializerProblems,
  jsonOf,
} from "../../../dev/apiserver/admission/object_initializers.ts";
import {
  PolicyEnvironment,
  type PolicyInput,
} from "../../../dev/apiserver/admission/policy_environment.ts";
import { loadPatterns } from "../../../dev/apiserver/cel/pattern.ts";
import * as builtin from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import { TestServer } from "../support/test_server.ts";

const MAPS = "/api/v1/namespaces/default/configmaps";
const PODS = "/api/v1/namespaces/default/pods";

/** Adds or replaces an object of the group. */
async function put(
  server: TestServer,
  plural: string,
  object: {
    readonly metadata: { readonly name: string };
    readonly spec: unknown;
  },
): Promise<void> {
  const path = `/apis/admissionregistration.k8s.io/v1/${plural}`;
  await server.send("DELETE", `${path}/${object.metadata.name}`);
  const { status, body } = await server.send("POST", path, object);
  assert.equal(status, 201, body.message);
}

async function policy(
  server: TestServer,
  name: string,
  spec: Record<string, unknown>,
): Promise<void> {
  const metadata = { name };
  await put(server, "mutatingadmissionpolicies", {
    metadata,
    spec: {
      matchConstraints: {
        resourceRules: [{
          operations: ["CREATE"],
          apiGroups: [""],
          apiVersions: ["v1"],
          resources: ["configmaps", "pods"],
        }],
      },
      reinvocationPolicy: "Never",
      ...spec,
    },
  });
  await put(server, "mutatingadmissionpolicybindings", {
    metadata,
    spec: { policyName: name },
  });
}

const applied = (expression: string) => ({
  patchType: "ApplyConfiguration",
  applyConfiguration: { expression },
});
const jsonPatch = (expression: string) => ({
  patchType: "JSONPatch",
  jsonPatch: { expression },
});

async function withServer(
  run: (server: TestServer) => Promise<void>,
): Promise<void> {
  const server = new TestServer({ builtin });
  try {
    await run(server);
  } finally {
    server.stop();
  }
}

const map = (name: string, data: Record<string, string> = {}) => ({
  metadata: { name },
  data,
});

const NO_INPUT = { budget: { left: 1_000 } } as unknown as PolicyInput;

test("An initializer whose name is not its field's path is refused", async () => {
  await loadPatterns();
  const problems = (expression: string) => {
    const environment = new PolicyEnvironment({});
    const { error, evaluate } = environment.compileMutation(
      expression,
      ["Object"],
    );
    return error ?? initializerProblems(evaluate(NO_INPUT));
  };
  assert.deepEqual(problems("Object{spec: Object.status{}}"), [
    'unexpected type name "Object.status", expected "Object.spec", which matches field name path from root Object type',
  ]);
  assert.deepEqual(
    problems("Object{spec: Object.spec{list: [Object.spec.list{a: 1}]}}"),
    [],
  );
});

test("Integers of an initializer are exact", async () => {
  await loadPatterns();
  const { evaluate } = new PolicyEnvironment({}).compileMutation(
    "Object{spec: Object.spec{a: 9007199254740993, b: 7, c: 9007199254740993u}}",
    ["Object"],
  );
  assert.deepEqual(jsonOf(evaluate(NO_INPUT)), {
    spec: { a: 9007199254740993n, b: 7, c: 9007199254740993n },
  });
});

test("Names of an initializer's fields are no texts", async () => {
  await loadPatterns();
  const { error } = new PolicyEnvironment({}).compileMutation(
    'Object{metadata: Object.metadata{"labels": {}}}',
    ["Object"],
  );
  assert.match(
    String(error),
    /1:34: Syntax error: mismatched input '"labels"' expecting \{'\}', ',', '\?', IDENTIFIER, ESC_IDENTIFIER\}/,
  );
});

test("A mutating policy merges its apply configuration", async () => {
  await withServer(async (server) => {
    await policy(server, "p", {
      variables: [{
        name: "team",
        expression: "object.metadata.name + '-team'",
      }],
      matchConditions: [{ name: "a", expression: "!has(object.data.skip)" }],
      mutations: [applied(
        "Object{metadata: Object.metadata{labels: {'team': variables.team}}, data: {'n': string(1 + 1)}}",
      )],
    });
    const { body } = await server.send("POST", MAPS, map("a", { x: "1" }));
    assert.deepEqual(body.metadata.labels, { team: "a-team" });
    assert.deepEqual(body.data, { x: "1", n: "2" });
    const skipped = await server.send("POST", MAPS, map("b", { skip: "" }));
    assert.equal(skipped.body.metadata.labels, undefined);
  });
});

test("A mutating policy adds to keyed lists and changes no atomic ones", async () => {
  await withServer(async (server) => {
    const pod = {
      metadata: { name: "p" },
      spec: { containers: [{ name: "main", image: "i" }] },
    };
    await policy(server, "p", {
      mutations: [applied(`Object{
        spec: Object.spec{
          initContainers: [
            Object.spec.initContainers{name: "side", image: "s", restartPolicy: "Always"}
          ]
        }
      }`)],
    });
    const { body } = await server.send("POST", PODS, pod);
    assert.equal(body.spec?.initContainers?.[0].name, "side", body.message);
    assert.equal(body.spec.containers[0].name, "main");
    await policy(server, "p", {
      mutations: [applied(
        'Object{spec: Object.spec{containers: [Object.spec.containers{name: "main", args: ["a"]}]}}',
      )],
    });
    const refused = await server.send("POST", PODS, {
      ...pod,
      metadata: { name: "q" },
    });
    assert.equal(refused.status, 403);
    assert.equal(refused.body.reason, "Invalid");
    assert.equal(
      refused.body.message,
      "policy 'p' with binding 'p' denied request: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.containers[0].args",
    );
  });
});

test("A mutating policy applies a JSON patch, unless its test fails", async () => {
  await withServer(async (server) => {
    await policy(server, "p", {
      mutations: [
        jsonPatch(`[
          JSONPatch{op: "test", path: "/data/x", value: "1"},
          JSONPatch{op: "add", path: "/data/y", value: "2"},
          JSONPatch{op: "add", path: "/metadata/labels", value: {}},
          JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a.b/c"), value: "d"}
        ]`),
      ],
    });
    const { body } = await server.send("POST", MAPS, map("a", { x: "1" }));
    assert.deepEqual(body.data, { x: "1", y: "2" }, body.message);
    assert.deepEqual(body.metadata.labels, { "a.b/c": "d" });
    const other = await server.send("POST", MAPS, map("b", { x: "0" }));
    assert.deepEqual(other.body.data, { x: "0" });
  });
});

test("A mutating policy runs again if a later one changed the object", async () => {
  await withServer(async (server) => {
    const count = (key: string) =>
      applied(
        `Object{data: {'${key}': string(object.data.size())}}`,
      );
    await policy(server, "a", {
      mutations: [count("a")],
      reinvocationPolicy: "IfNeeded",
    });
    await policy(server, "b", { mutations: [count("b")] });
    const { body } = await server.send("POST", MAPS, map("m", { x: "" }));
    assert.deepEqual(body.data, { x: "", a: "3", b: "2" });
  });
});

test("A mutating policy that fails refuses the request, or is ignored", async () => {
  await withServer(async (server) => {
    const mutations = [applied("Object{data: {'a': object.data.none}}")];
    await policy(server, "p", { mutations });
    const { status, body } = await server.send(
      "POST",
      MAPS,
      map("a", { x: "" }),
    );
    assert.equal(status, 403);
    assert.match(
      body.message,
      /^policy 'p' with binding 'p' denied request: expression '.*' resulted in error: no such key: none$/,
    );
    assert.deepEqual(body.details.causes, [{ message: body.message }]);
    await policy(server, "p", { mutations, failurePolicy: "Ignore" });
    const ignored = await server.send("POST", MAPS, map("a", { x: "" }));
    assert.equal(ignored.status, 201);
  });
});

test("A mutating policy is stored with defaults, and an invalid one refused", async () => {
  await withServer(async (server) => {
    await policy(server, "p", { mutations: [applied("Object{}")] });
    const path =
      "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
    const { body } = await server.send("GET", `${path}/p`);
    assert.equal(body.metadata.generation, 1);
    assert.equal(body.spec.failurePolicy, "Fail");
    assert.equal(body.spec.matchConstraints.matchPolicy, "Equivalent");
    const refused = await server.send("POST", path, {
      metadata: { name: "q" },
      spec: {
        matchConstraints: { resourceRules: [] },
        mutations: [{ patchType: "JSONPatch", applyConfiguration: {} }],
        reinvocationPolicy: "Sometimes",
      },
    });
    assert.equal(refused.status, 422);
    assert.deepEqual(
      // deno-lint-ignore no-explicit-any -- tests look at whatever is there
      refused.body.details.causes.map((cause: any) => [
        cause.field,
        cause.message,
      ]).sort(),
      [
        [
          "spec.matchConstraints.resourceRules",
          "Required value",
        ],
        [
          "spec.mutations[0].applyConfiguration",
          'Invalid value: "{applyConfiguration}": must not be specified when patchType is JSONPatch',
        ],
        [
          "spec.mutations[0].jsonPatch",
          "Required value: must be specified when patchType is JSONPatch",
        ],
        [
          "spec.reinvocationPolicy",
          'Unsupported value: "Sometimes": supported values: "IfNeeded", "Never"',
        ],
      ],
    );
  });
});
