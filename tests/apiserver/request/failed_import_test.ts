import assert from "node:assert/strict";
import { test } from "node:test";
import { respondValue } from "../../../dev/apiserver/read/respond.ts";
import { parseBody } from "../../../dev/apiserver/request/body.ts";
import { failFirstImports } from "../../support/failed_imports.ts";

test("The server handles protobuf after it could not be loaded once", async () => {
  using _ = failFirstImports(/\/protobuf(_writer)?\.ts$/);
  const value = { apiVersion: "v1", kind: "Status" };
  const media = { media: "protobuf" } as const;
  await respondValue(200, value, media).catch(() => {});
  const { body } = await respondValue(200, value, media);
  assert.ok(body instanceof Uint8Array);
  await parseBody(body, "protobuf").catch(() => {});
  const parsed = await parseBody(body, "protobuf");
  assert.partialDeepStrictEqual(parsed.value, value);
});
