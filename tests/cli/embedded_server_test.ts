import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { serverIdentity } from "../../cli/embedded_server.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";

test("serverIdentity is created once per data file, readable only by its owner", async () => {
  const data = join(temporaryFolder(), "objects");
  const first = await serverIdentity(data);
  assert.match(first?.token ?? "", /^[\da-f]{48}$/);
  assert.match(first?.authority.certificate ?? "", /BEGIN CERTIFICATE/);
  assert.deepEqual(await serverIdentity(data), first);
  assert.equal(statSync(`${data}.identity`).mode & 0o777, 0o600);
});

test("serverIdentity is undefined without a data file", async () => {
  assert.equal(await serverIdentity(undefined), undefined);
});

test("serverIdentity rejects another file without printing its contents", async () => {
  const data = join(temporaryFolder(), "objects");
  for (const text of ["{", "null", '{"token":"hunter2"}', '{"token":1}']) {
    writeFileSync(`${data}.identity`, text);
    await assert.rejects(serverIdentity(data), (error: Error) => {
      assert.match(error.message, /^Cannot read .*identity: it must hold/);
      assert.doesNotMatch(error.message, /hunter2/);
      return true;
    });
    assert.equal(readFileSync(`${data}.identity`, "utf8"), text);
  }
});
