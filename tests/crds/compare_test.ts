import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";
import { comparable, firstDifference } from "./answers.ts";
import { readProjects } from "./projects.ts";
import { ComparedServers } from "./session.ts";

const DEFINITION = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.sample.coracle.dev}
spec:
  group: sample.coracle.dev
  scope: Namespaced
  names: {plural: boats, kind: Boat}
  conversion: {strategy: Webhook}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [seats]
              properties:
                seats: {type: integer, minimum: 1}
                names: {type: array, items: {type: string, enum: [a, b]}}
            status: {type: object, properties: {afloat: {type: boolean}}}
---
apiVersion: sample.coracle.dev/v1
kind: Boat
metadata: {name: one, namespace: elsewhere}
spec: {seats: 2}
---
not: [closed
`;

const BUNDLE = {
  apiVersion: "operators.coreos.com/v1alpha1",
  kind: "ClusterServiceVersion",
  metadata: {
    annotations: {
      "alm-examples": JSON.stringify([{
        apiVersion: "sample.coracle.dev/v1",
        kind: "Boat",
        metadata: { name: "two" },
        spec: { seats: 3, names: ["a"] },
      }]),
    },
  },
};

function projectsOf(): ReturnType<typeof readProjects> {
  const folder = temporaryFolder();
  writeText(folder, "boats/definitions.yaml", DEFINITION);
  writeText(folder, "boats/bundle.json", JSON.stringify(BUNDLE));
  writeText(folder, "boats/notes.txt", DEFINITION);
  writeText(folder, "nothing/sample.yaml", "kind: Boat");
  writeText(folder, "other/definitions.yaml", DEFINITION);
  return readProjects(folder, /boats|nothing/);
}

test("Projects are read with their definitions and the samples of bundles", async () => {
  const [boats, ...others] = await projectsOf();
  assert.deepEqual(others, []);
  assert.deepEqual(
    boats?.definitions.map(({ metadata, spec }) => [
      metadata.name,
      spec.conversion,
    ]),
    [["boats.sample.coracle.dev", undefined]],
  );
  const samples = boats?.samples.get("sample.coracle.dev/Boat");
  assert.deepEqual(samples?.map(({ metadata }) => metadata.name), [
    "two",
    "one",
  ]);
});

test("Equal servers answer alike, and a difference is found with its request", async () => {
  const [boats] = await projectsOf();
  assert.ok(boats);
  const [one, two] = await Promise.all(
    [0, 1].map(() =>
      ApiServer.start({ port: 0, tls: false, establishingDelay: 0 })
    ),
  ) as [ApiServer, ApiServer];
  const servers = new ComparedServers([one, two], { seed: 3, mutations: 12 });
  try {
    await servers.compare(boats);
    assert.deepEqual(servers.findings, []);
    assert.ok(servers.answers > 30, `${servers.answers} answers`);
    const path = "/api/v1/namespaces/default/configmaps";
    const response = await two.transport.send({
      method: "POST",
      path,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ metadata: { name: "a" } }),
    });
    assert.equal(response.status, 201);
    await servers.ask("GET", `${path}/a`);
    assert.deepEqual(servers.findings, [{
      path: ".status",
      embedded: "404",
      real: "200",
      project: "boats",
      request: `GET ${path}/a `,
    }]);
  } finally {
    servers.close();
    await Promise.all([one.stop(), two.stop()]);
  }
});

test("Answers that differ in their own values and in Go's order are alike", () => {
  const answer = (body: object, warnings: readonly string[] = []) =>
    comparable({ status: 422, text: JSON.stringify(body), warnings });
  const refused = (...fields: readonly string[]) => ({
    kind: "Status",
    message: `Boat "a" is invalid: [${fields.join(", ")}]`,
    details: { causes: fields.map((field) => ({ field })) },
  });
  assert.equal(
    firstDifference(
      answer(refused("b", "a"), ["x", "y"]),
      answer(refused("a", "b"), ["y", "x"]),
    ),
    undefined,
  );
  assert.deepEqual(
    firstDifference(answer(refused("a", "b")), answer(refused("a", "c"))),
    {
      path: ".body.details.causes.1",
      embedded: '"{\\"field\\":\\"b\\"}"',
      real: '"{\\"field\\":\\"c\\"}"',
    },
  );
  const typed = (...lines: readonly string[]) => ({
    kind: "Status",
    message: `failed to create typed patch object (n/a): errors:\n  ${
      lines.join("\n  ")
    }`,
  });
  assert.equal(
    firstDifference(answer(typed("a", "b")), answer(typed("b", "a"))),
    undefined,
  );
  assert.notEqual(
    firstDifference(answer(typed("a", "b")), answer(typed("a", "c"))),
    undefined,
  );
  const made = (uid: string) =>
    answer({ metadata: { uid, name: "a", resourceVersion: uid } });
  assert.equal(firstDifference(made("1"), made("2")), undefined);
});
