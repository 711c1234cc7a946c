import assert from "node:assert/strict";
import { test } from "node:test";
import type { CrdManifest } from "@coracle/operator/crd";
import { newlyRequired } from "../../dev/cli/newly_required.ts";
import { crdCommand } from "../../dev/cli/crd_command.ts";
import { runCommandLine } from "../../dev/cli/main.ts";
import { GROUP, operatorFile, places } from "../support/dev_operator_file.ts";
import { coracle, Program } from "../support/program.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const text = { type: "string" };
const object = (
  properties: object,
  required: readonly string[] = [],
) => ({ type: "object", properties, required });

/** Definition with a schema of the spec by version; the first is stored. */
function definition(
  versions: Readonly<Record<string, object>>,
  more: object = {},
): CrdManifest {
  return {
    metadata: { name: "boats.sea.example" },
    spec: {
      versions: Object.entries(versions).map(([name, spec], at) => ({
        name,
        storage: at === 0,
        schema: { openAPIV3Schema: object({ spec }, ["spec"]) },
      })),
      ...more,
    },
  } as unknown as CrdManifest;
}

test("newlyRequired names the fields that older objects may lack", () => {
  const v2 = object({
    name: text,
    zone: text,
    size: { type: "integer", default: 1 },
    crew: {
      type: "array",
      items: object({ rank: text, name: text }, ["rank", "name"]),
    },
    tags: {
      type: "object",
      additionalProperties: object({ value: text }, ["value"]),
    },
    new: object({ deep: text }, ["deep"]),
  }, ["name", "zone", "size"]);
  const v1 = object({
    name: text,
    area: text,
    crew: {
      type: "array",
      items: object({ rank: text, name: text }, ["name"]),
    },
    tags: { type: "object", additionalProperties: object({ value: text }) },
  }, ["name", "area"]);
  const paths = (found: readonly string[]) =>
    found.map((one) => /may lack (\S+),/.exec(one)?.[1]);
  const all = ["spec.zone", "spec.crew[].rank", "spec.tags.*.value"];
  assert.deepEqual(paths(newlyRequired(definition({ v2, v1 }))), all);
  assert.deepEqual(
    newlyRequired(definition({ v2, v1 }))[0],
    "Objects of v1 of boats.sea.example may lack spec.zone, which v2 requires: give it a default, or make it optional.",
  );
  // A definition that replaces one of the same version.
  const earlier = definition({ v2: v1 });
  const [first] = newlyRequired(definition({ v2 }), earlier);
  assert.match(first ?? "", /^Objects of the earlier definition of boats\./);
  assert.deepEqual(newlyRequired(definition({ v2 }), definition({ v1 })), []);
  // Nothing is new, has a default in the older version, or a webhook converts.
  assert.deepEqual(newlyRequired(definition({ v2: v1, v1 })), []);
  const given = object({ zone: { ...text, default: "a" } });
  const needed = object({ zone: text }, ["zone"]);
  assert.deepEqual(newlyRequired(definition({ v2: needed, v1: given })), []);
  const conversion = { conversion: { strategy: "Webhook" } };
  assert.deepEqual(newlyRequired(definition({ v2, v1 }, conversion)), []);
});

test("coracle crd warns of a field that only the newest version requires", async () => {
  const library = new URL("../../mod.ts", import.meta.url);
  const file = writeText(
    temporaryFolder(),
    "boat.mjs",
    `import { defineKind } from "${library}";
import { z } from "${import.meta.resolve("zod")}";
export const Boat = defineKind({
  group: "sea.example.org",
  version: "v2",
  kind: "Boat",
  spec: z.object({ zone: z.string() }),
  versions: [{ name: "v1", spec: z.object({ area: z.string() }) }],
});
`,
  );
  let said = "";
  const code = await runCommandLine(["crd", file], {
    colors: false,
    out() {},
    say: (text) => void (said += text),
    interrupts: () => new AbortController().signal,
  }, [crdCommand]);
  assert.equal(code, 0, said);
  assert.match(
    said,
    /^Objects of v1 of boats\.sea\.example\.org may lack spec\.zone/,
  );
});

test("coracle dev warns of a field that stored objects may lack", async () => {
  const { folder, kubeconfig } = places();
  const name = `boats.${GROUP}`;
  const names = { kind: "Boat", plural: "boats" };
  const boats = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name },
    spec: {
      group: GROUP,
      names,
      scope: "Namespaced",
      versions: [{
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: object({
            spec: object({ zone: text, area: text }, ["area"]),
          }, ["spec"]),
        },
      }],
    },
  };
  const file = operatorFile(`
const spec = z.object({ zone: z.string(), area: z.string() });
const Boat = defineKind({ ...names, spec, kind: "Boat" });
export const operator = () => {
  const operator = make();
  operator.register(Boat, { reconcile() {} });
  return operator;
};`);
  // The definition of an earlier run, whose objects are stored.
  const earlier = writeText(
    folder,
    "boats.yaml",
    JSON.stringify(boats),
  );
  const dev = new Program(
    coracle("dev", "--crd", earlier, "--kubeconfig", kubeconfig, file),
    { env: { TMPDIR: folder } },
  );
  try {
    await dev.says(/Press Ctrl-C/);
    assert.match(
      dev.output,
      /^Objects of the earlier definition of boats\.batch\.test\.dev may lack spec\.zone, which v1 requires: /m,
    );
    assert.equal(dev.output.match(/may lack/g)?.length, 1);
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
  } finally {
    await dev.kill();
  }
});
