import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer } from "@coracle/dev/apiserver";
import { type Random, seededRandom } from "../../../dev/apiserver/random.ts";
import { partOfRounds } from "../../support/part_of_rounds.ts";

interface Sample {
  readonly path: string;
  readonly body: unknown;
}

const FOLDER = new URL("../builtin/defaulting/", import.meta.url);

/** How many changed objects of each kind are sent. */
const ROUNDS = partOfRounds(40);

/** What stands in places where something else belongs. */
const ODD: readonly unknown[] = [
  null,
  [],
  {},
  "",
  "x",
  0,
  -1,
  1.5,
  true,
  [null],
  [{}],
  { a: null },
  "\u0000",
];

const DEFINITION: Sample = {
  path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
  body: {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "things.example.dev" },
    spec: {
      group: "example.dev",
      scope: "Namespaced",
      names: { plural: "things", kind: "Thing", shortNames: ["th"] },
      conversion: { strategy: "None" },
      versions: [{
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {}, scale: { specReplicasPath: ".spec.a" } },
        additionalPrinterColumns: [
          { name: "A", type: "string", jsonPath: ".spec.a" },
        ],
        selectableFields: [{ jsonPath: ".spec.a" }],
        schema: {
          openAPIV3Schema: {
            type: "object",
            required: ["spec"],
            properties: {
              spec: {
                type: "object",
                properties: {
                  a: { type: "string", default: "b", enum: ["b", "c"] },
                  l: {
                    type: "array",
                    items: {
                      type: "object",
                      properties: { k: { type: "string" } },
                    },
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                  },
                },
                "x-kubernetes-validations": [{
                  rule: "self.a == 'b'",
                  message: "must be b",
                }],
              },
            },
          },
        },
      }],
    },
  },
};

function samples(): Sample[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith(".json"));
  return [
    DEFINITION,
    ...files.map((name): Sample => {
      const { request } = JSON.parse(
        readFileSync(new URL(name, FOLDER), "utf8"),
      );
      const path = request.path.split("?")[0];
      return {
        path: path.replace(/namespaces\/[^/]+/, "namespaces/default"),
        body: JSON.parse(
          JSON.stringify(request.body).replaceAll('"defaulting"', '"default"'),
        ),
      };
    }),
  ];
}

/** All places within a value. */
function places(value: unknown, path: readonly string[] = []): string[][] {
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, item]) => [
    [...path, key],
    ...places(item, [...path, key]),
  ]);
}

/** A copy of a value with something odd in one place of it. */
function spoilt(value: unknown, random: Random): unknown {
  const copy = structuredClone(value);
  const all = places(copy);
  const path = all[Math.floor(random.next() * all.length)] as string[];
  const odd = ODD[Math.floor(random.next() * ODD.length)];
  // deno-lint-ignore no-explicit-any -- the place exists
  let parent: any = copy;
  for (const step of path.slice(0, -1)) parent = parent[step];
  parent[path.at(-1) as string] = odd;
  return copy;
}

test("unusual values in any field are rejected without an internal error", async () => {
  const server = await ApiServer.start({
    port: false,
    clock: new VirtualClock(),
  });
  const random = seededRandom(11);
  const failures: string[] = [];
  const ask = async (
    method: "POST" | "PUT" | "PATCH",
    path: string,
    body: string,
    type = "application/json",
  ) => {
    const answer = await server.transport.send({
      method,
      path,
      headers: { "content-type": type },
      body,
    });
    const parts: Uint8Array[] = [];
    for await (const part of answer.body) parts.push(part);
    const text = await new Blob(parts as BlobPart[]).text();
    const { reason, message } = JSON.parse(text);
    if (reason === "InternalError") {
      failures.push(`${method} ${path} ${type} ${body}\n  ${message}`);
    }
  };
  for (const { path, body } of samples()) {
    const { name } = (body as { metadata: { name: string } }).metadata;
    await ask("POST", path, JSON.stringify(body));
    for (let round = 0; round < ROUNDS; round++) {
      const odd = JSON.stringify(spoilt(body, random));
      await ask("POST", `${path}?dryRun=All`, odd);
      await ask("PUT", `${path}/${name}?dryRun=All`, odd);
      for (const form of ["merge-patch+json", "strategic-merge-patch+json"]) {
        await ask(
          "PATCH",
          `${path}/${name}?dryRun=All`,
          odd,
          `application/${form}`,
        );
      }
      await ask(
        "PATCH",
        `${path}/${name}?dryRun=All&fieldManager=odd&force=true`,
        odd,
        "application/apply-patch+yaml",
      );
    }
  }
  await server.stop();
  assert.deepEqual(failures.slice(0, 40), []);
});
