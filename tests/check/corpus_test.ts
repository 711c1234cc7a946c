import assert from "node:assert/strict";
import process from "node:process";
import { after, test } from "node:test";
import type { Kind, Operator, UntypedObject } from "@coracle/operator/core";
import { ApiServer } from "../../dev/apiserver/server.ts";
import { crdManifest } from "../../core/crd/crd_manifest.ts";
import { isDefinedKind } from "../../core/crd/kind_definition.ts";
import {
  ConfigMap,
  PersistentVolumeClaim,
  Secret,
  Service,
} from "../../core/kinds/core_v1.ts";
import { Deployment } from "../../core/kinds/apps_v1.ts";
import { silentLogger } from "../../core/logger.ts";
import { installCrd } from "../../core/crd/install_crd.ts";
import { replaceHost } from "../../core/client/host.ts";
import { generatedObjects } from "../../dev/testing/check/workload.ts";
import { partOfRounds } from "../support/part_of_rounds.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";
import { until } from "../support/until.ts";
import { corpus, type Member } from "./corpus/corpus.ts";

const members = await corpus();
const folder = temporaryFolder();
const { fetch } = globalThis;

// The operators have no client of their own, as those of users.
const restoreHost = replaceHost({
  operators: { runs: true, logger: silentLogger, made() {} },
});
// The client of Deno and Bun uses fetch, too.
globalThis.fetch = (input, init) =>
  new URL(input instanceof Request ? input.url : input).hostname === "127.0.0.1"
    ? fetch(input, init)
    : Promise.reject(new TypeError("fetch failed"));
after(() => {
  restoreHost();
  globalThis.fetch = fetch;
});

const KINDS: Readonly<Record<string, Kind>> = {
  ConfigMap,
  Deployment,
  PersistentVolumeClaim,
  Secret,
  Service,
};

/** Runs an operator on a server of its own while a user makes its objects. */
async function run({ name, url, entry }: Member): Promise<void> {
  const { default: operator } = await import(url.href) as { default: Operator };
  const kind = operator.controllers[0]?.kind;
  assert.ok(kind !== undefined && isDefinedKind(kind));
  const server = await ApiServer.start({ port: 0 });
  try {
    await installCrd(server.client, kind);
    const { kubeconfig } = server;
    process.env["KUBECONFIG"] = writeText(folder, `${name}.yaml`, kubeconfig);
    await operator.start();
    const [generated] = generatedObjects(crdManifest(kind));
    for (const object of entry.examples ?? [generated as UntypedObject]) {
      await server.client.create(KINDS[object.kind ?? ""] ?? kind, object);
    }
    for (const expected of entry.expects) {
      await until(
        `${expected} of ${name}`,
        () => isThere(server, expected, kind),
        {
          within: 20_000,
        },
      );
    }
  } finally {
    await operator.stop();
    await server.stop();
  }
}

/**
 * Whether an object is there, given as `Kind name` or `Kind prefix*`, with a label
 * that it must have behind it if need be.
 */
async function isThere(
  { client }: ApiServer,
  text: string,
  own: Kind,
): Promise<boolean> {
  const [kind = "", name = "", label] = text.split(" ");
  const { items } = await client.list(KINDS[kind] ?? own, {
    namespace: "default",
  });
  return items.some(({ metadata }) =>
    (name.endsWith("*")
      ? metadata.name.startsWith(name.slice(0, -1))
      : metadata.name === name) &&
    (label === undefined || metadata.labels?.[label] !== undefined)
  );
}

test("Corpus has 40 seeded bugs, ten of the API's misuse, and 15 correct operators", async () => {
  const { readFile } = await import("node:fs/promises");
  const [buggy, correct] = [true, false].map((isBuggy) =>
    members.filter(({ entry }) => (entry.bug !== undefined) === isBuggy)
  );
  assert.ok(buggy!.length >= 40);
  assert.ok(correct!.length >= 15);
  const texts = await Promise.all(
    buggy!.map(({ url }) => readFile(url, "utf8")),
  );
  for (const text of texts) assert.match(text, /^\/\*\*\n \* Seeded bug: /);
  const misuses = texts.filter((text) => text.includes("misuse of the API"));
  assert.ok(misuses.length >= 10);
});

// With a quarter of the rounds it is every fourth operator.
const step = Math.round(members.length / partOfRounds(members.length));
for (const member of members.filter((_, at) => at % step === 0)) {
  test(`Operator ${member.name} does its work when nothing goes wrong`, () =>
    run(member));
}
