import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { TestCluster } from "@coracle/dev";
import { ApiServer, type KubernetesVersion } from "@coracle/dev/apiserver";
import { until } from "../support/until.ts";
import { RELEASES } from "../../dev/apiserver/kubernetes_release.ts";

const VERSIONS = Object.keys(RELEASES) as KubernetesVersion[];

// deno-lint-ignore no-explicit-any -- documents of several kinds
async function readDocument(body: AsyncIterable<Uint8Array>): Promise<any> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

const POLICIES = "/apis/admissionregistration.k8s.io/v1";

for (const version of VERSIONS) {
  test(`A server of ${version} has the resources and fields of that version`, async () => {
    const server = await ApiServer.start({ port: false, version });
    const send = async (method: string, path: string, body?: object) => {
      const answer = await server.transport.send({
        method: method as "GET" | "POST",
        path,
        headers: { "content-type": "application/json" },
        ...body ? { body: JSON.stringify(body) } : {},
      });
      const value = await readDocument(answer.body);
      return { status: answer.status, value };
    };
    const { value: info } = await send("GET", "/version");
    assert.equal(info.gitVersion, RELEASES[version].version);
    assert.equal(`${info.major}.${info.minor}`, version);

    const { value: list } = await send("GET", POLICIES);
    const names = list.resources.map(({ name }: { name: string }) => name);
    const newest = version === "1.36" || version === "1.37";
    assert.equal(names.includes("mutatingadmissionpolicies"), newest);
    assert.equal(names.includes("validatingadmissionpolicies"), true);
    const { status } = await send(
      "GET",
      `${POLICIES}/mutatingadmissionpolicies`,
    );
    assert.equal(status, newest ? 200 : 404);

    const { value: { groups } } = await send("GET", "/apis");
    assert.equal(
      groups.some(({ name }: { name: string }) =>
        name === "storagemigration.k8s.io"
      ),
      version === "1.37",
    );

    const { value: document } = await send(
      "GET",
      "/openapi/v3/apis/storage.k8s.io/v1",
    );
    const { properties } =
      document.components.schemas["io.k8s.api.storage.v1.CSIDriverSpec"];
    assert.equal("preventPodSchedulingIfMissing" in properties, newest);
    assert.equal(
      "serviceAccountTokenInSecrets" in properties,
      version !== "1.34",
    );
    assert.equal(document.info.version, `v${version}`);
    const { items } = document.components
      .schemas["io.k8s.api.storage.v1.CSINodeList"].properties.items;
    assert.equal("default" in items, version !== "1.37");

    const node = { apiVersion: "storage.k8s.io/v1", kind: "CSINode" };
    const { status: made, value: nodeMade } = await send(
      "POST",
      "/apis/storage.k8s.io/v1/csinodes?fieldValidation=Strict",
      { ...node, metadata: { name: "n" }, spec: { drivers: [] } },
    );
    assert.equal(made, 201);
    assert.deepEqual(nodeMade.status, version === "1.37" ? {} : undefined);

    const { status: found, value: role } = await send(
      "GET",
      "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:cluster-trust-bundle-discovery",
    );
    assert.equal(found, version === "1.37" ? 200 : 404);
    assert.deepEqual(
      role.rules,
      version === "1.37"
        ? [{
          verbs: ["get", "list", "watch"],
          apiGroups: ["certificates.k8s.io"],
          resources: ["clustertrustbundles"],
        }]
        : undefined,
    );
    const { value: scheduler } = await send(
      "GET",
      "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:kube-scheduler",
    );
    assert.equal(
      JSON.stringify(scheduler.rules).includes("devicetaintrules"),
      version === "1.37",
    );

    const driver = {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSIDriver",
      metadata: { name: "d" },
      spec: { preventPodSchedulingIfMissing: true },
    };
    const strict = await send(
      "POST",
      "/apis/storage.k8s.io/v1/csidrivers?fieldValidation=Strict",
      driver,
    );
    assert.equal(strict.status, newest ? 201 : 400);
    if (!newest) {
      assert.match(
        strict.value.message,
        /unknown field "spec\.preventPodSchedulingIfMissing"/,
      );
      const { value } = await send(
        "POST",
        "/apis/storage.k8s.io/v1/csidrivers",
        driver,
      );
      assert.equal(value.spec.preventPodSchedulingIfMissing, undefined);
    }

    const { status: named, value: answer } = await send(
      "POST",
      "/api/v1/namespaces/default/services",
      { metadata: { name: "1web" }, spec: { ports: [{ port: 80 }] } },
    );
    assert.equal(named, newest ? 201 : 422);
    if (!newest) assert.match(answer.message, /a DNS-1035 label must/);
    await server.stop();
  });
}

test("Tables of definitions have more columns from 1.37 on, and CSINodes a status", async () => {
  for (
    const [version, columns] of [
      ["1.36", ["Name", "Created At"]],
      ["1.37", [
        "Name",
        "Scope",
        "Versions",
        "Created At",
        "Group",
        "Kind",
        "ShortNames",
        "Established",
      ]],
    ] as const
  ) {
    const server = await ApiServer.start({ port: false, version });
    const send = async (
      method: "GET" | "POST",
      path: string,
      body?: object,
      accept = "application/json",
    ) => {
      const answer = await server.transport.send({
        method,
        path,
        headers: { "content-type": "application/json", accept },
        ...body ? { body: JSON.stringify(body) } : {},
      });
      return await readDocument(answer.body);
    };
    const definitions =
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const schema = { openAPIV3Schema: { type: "object" } };
    const served = { served: true, storage: false, schema };
    const { metadata } = await send("POST", definitions, {
      metadata: { name: "as.b.dev" },
      spec: {
        group: "b.dev",
        scope: "Cluster",
        names: { kind: "A", plural: "as", shortNames: ["x", "y"] },
        versions: [
          { name: "v2", ...served, storage: true },
          { name: "v1", ...served },
          { name: "v0", ...served, served: false },
        ],
      },
    });
    await until("the definition is established", async () => {
      const { status } = await send("GET", `${definitions}/as.b.dev`);
      return status.conditions.some((
        { type, status }: { type: string; status: string },
      ) => type === "Established" && status === "True");
    });
    const table = await send(
      "GET",
      `${definitions}/as.b.dev`,
      undefined,
      "application/json;as=Table;g=meta.k8s.io;v=v1",
    );
    assert.deepEqual(
      table.columnDefinitions.map(({ name }: { name: string }) => name),
      columns,
    );
    const time = metadata.creationTimestamp;
    assert.deepEqual(
      table.rows[0].cells,
      version === "1.36" ? ["as.b.dev", time] : [
        "as.b.dev",
        "Cluster",
        "v1,v2(storage)",
        time,
        "b.dev",
        "A",
        "x,y",
        true,
      ],
    );
    const { resources } = await send("GET", "/apis/storage.k8s.io/v1");
    assert.equal(
      resources.some(({ name }: { name: string }) =>
        name === "csinodes/status"
      ),
      version === "1.37",
    );
    await server.stop();
  }
});

test("Roles and enumerations of 1.34 and 1.35 are those of their sources", async () => {
  for (const version of VERSIONS) {
    const server = await ApiServer.start({ port: false, version });
    const read = async (path: string) => {
      const answer = await server.transport.send({
        method: "GET",
        path,
        headers: {},
      });
      return await readDocument(answer.body);
    };
    const rbac = "/apis/rbac.authorization.k8s.io/v1";
    const rules = async (path: string) =>
      JSON.stringify((await read(`${rbac}/${path}`)).rules ?? []);
    const isFrom = (first: string) => version >= first;
    const scheduler = await rules("clusterroles/system:kube-scheduler");
    assert.equal(scheduler.includes("claims/binding"), isFrom("1.36"));
    const monitoring = await rules("clusterroles/system:monitoring");
    assert.equal(monitoring.includes("/flagz"), isFrom("1.36"));
    const eviction = await rules(
      "clusterroles/system:controller:device-taint-eviction-controller",
    );
    assert.equal(eviction !== "[]", isFrom("1.36"));
    const view = await rules("clusterroles/view");
    assert.equal(view.includes("events.k8s.io"), isFrom("1.35"));
    const leader = await rules(
      "namespaces/kube-system/roles/system::leader-locking-kube-scheduler",
    );
    assert.equal(leader.includes("configmaps"), version === "1.34");

    const enumeration = async (group: string, type: string, field: string) => {
      const { components } = await read(`/openapi/v3/${group}`);
      const { properties } = components.schemas[`io.k8s.api.${type}`];
      return properties[field].enum;
    };
    assert.deepEqual(
      await enumeration("api/v1", "core.v1.Toleration", "operator"),
      isFrom("1.35") ? ["Equal", "Exists", "Gt", "Lt"] : ["Equal", "Exists"],
    );
    assert.deepEqual(
      await enumeration(
        "apis/admissionregistration.k8s.io/v1",
        "admissionregistration.v1.RuleWithOperations",
        "scope",
      ),
      isFrom("1.35") ? ["*", "Cluster", "Namespaced"] : undefined,
    );
    await server.stop();
  }
});

test("A test cluster starts with the version of its option", async () => {
  const cluster = await TestCluster.start({
    cluster: "embedded",
    version: "1.35",
  });
  const answer = await cluster.transport.send({
    method: "GET",
    path: "/version",
    headers: {},
  });
  const { gitVersion } = await readDocument(answer.body);
  assert.equal(gitVersion, "v1.35.4");
  await cluster.stop();
});

test("Fields of 1.37 whose features are off are known, and not stored", async () => {
  const pod = {
    metadata: { name: "p" },
    spec: {
      containers: [{ name: "c", image: "i" }],
      volumes: [{ name: "v", emptyDir: { mode: 448 } }],
    },
  };
  for (const [version, expected] of [["1.36", 400], ["1.37", 201]] as const) {
    const server = await ApiServer.start({ port: false, version });
    const answer = await server.transport.send({
      method: "POST",
      path: "/api/v1/namespaces/default/pods?fieldValidation=Strict",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(pod),
    });
    assert.equal(answer.status, expected);
    const { message, spec } = await readDocument(answer.body);
    if (version === "1.37") assert.deepEqual(spec.volumes[0].emptyDir, {});
    else {assert.match(
        message,
        /unknown field "spec\.volumes\[0\]\.emptyDir\.mode"/,
      );}
    await server.stop();
  }
});

test("A server of 1.37 reports a problem once, and by its place", async () => {
  const server = await ApiServer.start({ port: false, version: "1.37" });
  const send = async (method: string, path: string, body: object) => {
    const answer = await server.transport.send({
      method: method as "POST" | "PATCH",
      path,
      headers: {
        "content-type": method === "POST"
          ? "application/json"
          : "application/merge-patch+json",
      },
      body: JSON.stringify(body),
    });
    const { details } = await readDocument(answer.body);
    return details?.causes?.map((
      { field, message }: { field: string; message: string },
    ) => `${field}: ${message}`);
  };
  const maps = "/api/v1/namespaces/default/configmaps";
  await send("POST", maps, { metadata: { name: "a" } });
  assert.deepEqual(
    await send("PATCH", `${maps}/a`, {
      metadata: {
        finalizers: ["nodomain"],
        ownerReferences: [{ apiVersion: "g/", kind: "K", name: "k" }],
      },
    }),
    [
      'metadata.ownerReferences[0].apiVersion: Invalid value: "g/": must be <group>/<version> or <version>',
      "metadata.ownerReferences[0].uid: Required value: must not be empty",
      'metadata.finalizers[0]: Invalid value: "nodomain": name is neither a standard finalizer name nor is it fully qualified',
    ],
  );
  assert.deepEqual(
    await send("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {
      spec: {},
    }),
    [
      "spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
      'spec.user: Invalid value: "": at least one of user or group must be specified',
    ],
  );
  await server.stop();
});

test("A server of 1.37 names each fixed field of a StatefulSet, and a roleRef", async () => {
  const refusals = async (version: KubernetesVersion) => {
    const server = await ApiServer.start({ port: false, version });
    const send = async (method: "POST" | "PUT", path: string, body: object) => {
      const { body: answer } = await server.transport.send({
        method,
        path,
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const { details } = await readDocument(answer);
      return (details?.causes ?? []).map((
        { field, message }: { field: string; message: string },
      ) => `${field}: ${message}`) as string[];
    };
    const labels = { app: "a" };
    const set = (changed: object) => ({
      metadata: { name: "a" },
      spec: {
        serviceName: "first",
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: "c", image: "i" }] },
        },
        ...changed,
      },
    });
    const sets = "/apis/apps/v1/namespaces/default/statefulsets";
    await send("POST", sets, set({}));
    const apiGroup = "rbac.authorization.k8s.io";
    const bindings = `/apis/${apiGroup}/v1/clusterrolebindings`;
    const binding = (name: string) => ({
      metadata: { name: "a" },
      roleRef: { apiGroup, kind: "ClusterRole", name },
    });
    await send("POST", bindings, binding("view"));
    const found = [
      ...await send(
        "PUT",
        `${sets}/a`,
        set({ serviceName: "second", podManagementPolicy: "Parallel" }),
      ),
      ...await send("PUT", `${bindings}/a`, binding("edit")),
    ];
    await server.stop();
    return found;
  };
  const role =
    'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"edit"}';
  assert.deepEqual(await refusals("1.37"), [
    'spec.serviceName: Invalid value: "second": field is immutable',
    'spec.podManagementPolicy: Invalid value: "Parallel": field is immutable',
    `${role}: field is immutable`,
  ]);
  const [before, ...others] = await refusals("1.36");
  assert.match(before ?? "", /^spec: Forbidden: updates to statefulset spec/);
  assert.deepEqual(others, [`${role}: cannot change roleRef`]);
});

test("A patch that cannot be read is refused in the words of the version", async () => {
  const yaml = "yaml: line 1: did not find expected ',' or ']'";
  const object = "value of type map[string]interface {}";
  for (
    const [version, expected] of [
      ["1.36", [
        `400 error decoding YAML: error converting YAML to JSON: ${yaml}`,
        `400 error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go ${object}`,
        '404 configmaps "x" not found',
        '404 configmaps "x" not found',
      ]],
      ["1.37", [
        `400 error encoding patch: ${yaml}`,
        `400 error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go ${object}`,
        "400 invalid JSON patch",
        '404 configmaps "x" not found',
      ]],
    ] as const
  ) {
    const server = await ApiServer.start({ port: false, version });
    const found: string[] = [];
    for (
      const [type, body] of [
        ["apply-patch+yaml", "a: [b"],
        ["apply-patch+yaml", "- a"],
        ["merge-patch+json", "{"],
        ["merge-patch+json", "[1]"],
      ] as const
    ) {
      const answer = await server.transport.send({
        method: "PATCH",
        path: "/api/v1/namespaces/default/configmaps/x?fieldManager=a",
        headers: { "content-type": `application/${type}` },
        body,
      });
      const { message } = await readDocument(answer.body);
      found.push(`${answer.status} ${message}`);
    }
    assert.deepEqual(found, expected);
    await server.stop();
  }
});

test("A server refuses a version that it does not reproduce", async () => {
  await assert.rejects(
    ApiServer.start({ version: "1.38" as KubernetesVersion }),
    {
      name: "RangeError",
      message:
        'Cannot read the options of an API server: "version" must be one of 1.34, 1.35, 1.36, 1.37: received "1.38"',
    },
  );
});
