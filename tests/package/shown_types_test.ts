import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const SAMPLE = `
import { z } from "${join(PROJECT, "node_modules/zod/index.js")}";
import { defineKind, Operator } from "${join(PROJECT, "mod.ts")}";

const WebPage = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "WebPage",
  spec: z.object({ html: z.string(), exposed: z.boolean().default(false) }),
  status: z.object({ since: z.iso.datetime() }).partial(),
});
new Operator().register(WebPage, {
  reconcile(page) {
    page.shown;
  },
});
`;

const FLAGS =
  "--ignoreConfig --noEmit --strict --noErrorTruncation --allowImportingTsExtensions --skipLibCheck --module nodenext --target es2023 --lib es2024,esnext.disposable,dom,dom.iterable,dom.asynciterable --types node";

// Hovers and errors print types alike.
test("Compilers show the fields of a defined kind's objects, not its schemas", async () => {
  const file = writeText(temporaryFolder(), "sample.ts", SAMPLE);
  const roots = join(PROJECT, "node_modules", "@types");
  const { stdout } = await runCommand(
    ["tsc", ...FLAGS.split(" "), "--typeRoots", roots, file],
  );
  const [, type = stdout] = /'shown' does not exist on type '(.*)'\./
    .exec(stdout) ?? [];
  assert.equal(
    type,
    "{ apiVersion?: string | undefined; kind?: string | undefined; metadata: ObjectMeta; spec: { html: string; exposed: boolean; }; status?: { since?: string | undefined; } | undefined; }",
  );
});
