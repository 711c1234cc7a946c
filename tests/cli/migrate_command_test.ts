import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { ApiServer } from "@coracle/dev/apiserver";
import { defineKind, installCrd } from "@coracle/operator/crd";
import { CRD_KIND } from "../../core/crd/crd_object.ts";
import { runCommandLine } from "../../dev/cli/main.ts";
import { migrateCommand } from "../../dev/cli/migrate_command.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

async function migrate(...operands: readonly string[]) {
  let out = "";
  let said = "";
  const code = await runCommandLine(["migrate", ...operands], {
    colors: false,
    out: (text) => void (out += text),
    say: (text) => void (said += text),
    interrupts: () => new AbortController().signal,
  }, [migrateCommand]);
  return { code, out, said };
}

test("coracle migrate stores all objects in the present version", async () => {
  const stored = (storageVersion: string) =>
    defineKind({
      group: "test.coracle.dev",
      version: "v1",
      kind: "Buoy",
      storageVersion,
      spec: z.object({}),
      versions: [{ name: "v1beta1", spec: z.object({}) }],
    });
  const name = "buoys.test.coracle.dev";
  // From 1.37 on the server would migrate the objects itself.
  const server = await ApiServer.start({ controllers: [], version: "1.36" });
  try {
    const { client } = server;
    const file = writeText(temporaryFolder(), "config", server.kubeconfig);
    const flags = ["--kubeconfig", file, "--rate", "1000", name];
    await installCrd(client, stored("v1beta1"));
    const Buoy = stored("v1");
    await client.create(Buoy, {
      metadata: { name: "a", namespace: "default" },
      spec: {},
    });
    await installCrd(client, Buoy);
    assert.deepEqual(await migrate(...flags), {
      code: 0,
      out: `${name}: all objects are stored in v1, 1 written\n`,
      said: `${name}: Stored in v1beta1 and v1, to be stored in v1.\n`,
    });
    const { status } = await client.get(CRD_KIND, { name });
    assert.deepEqual(status?.storedVersions, ["v1"]);
    assert.deepEqual(await migrate(...flags), {
      code: 0,
      out: `${name}: all objects are stored in v1\n`,
      said: "",
    });
  } finally {
    await server.stop();
  }
});

test("coracle migrate refuses a rate that is none", async () => {
  const { code, said } = await migrate("--rate", "fast", "a.b");
  assert.equal(code, 2);
  assert.match(
    said,
    /--rate must be a number from 1 to 10000: received "fast"/,
  );
});
