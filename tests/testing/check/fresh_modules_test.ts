import assert from "node:assert/strict";
import { test } from "node:test";
import { importFresh } from "../../../testing/check/fresh_modules.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";

test("importFresh starts the state of modules again, and reads JSON", async () => {
  const folder = temporaryFolder();
  writeText(folder, "settings.json", '{ "name": "settings", "size": 2 }');
  writeText(
    folder,
    "state.ts",
    "let count = 0;\nexport const next = (): number => ++count;\n",
  );
  const main = writeText(
    folder,
    "main.ts",
    `import settings from "./settings.json" with { type: "json" };
import { next } from "./state.ts";
export const found: unknown[] = [settings.name, next()];
`,
  );
  for (let round = 0; round < 2; round++) {
    const { found } = await importFresh(main);
    assert.deepEqual(found, ["settings", 1]);
  }
});
