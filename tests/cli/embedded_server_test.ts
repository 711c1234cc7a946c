import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readUsers, serverIdentity } from "../../dev/cli/embedded_server.ts";
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
  for (
    const text of [
      "{",
      "null",
      '{"token":"hunter2"}',
      '{"token":1}',
      '{"token":"a","authority":{"certificate":"hunter2"}}',
    ]
  ) {
    writeFileSync(`${data}.identity`, text);
    await assert.rejects(serverIdentity(data), (error: Error) => {
      assert.match(error.message, /^Cannot read .*identity: it must hold/);
      assert.doesNotMatch(error.message, /hunter2/);
      return true;
    });
    assert.equal(readFileSync(`${data}.identity`, "utf8"), text);
  }
});

test("serverIdentity does not replace a file that it cannot read", async () => {
  const data = join(temporaryFolder(), "objects");
  mkdirSync(`${data}.identity`);
  await assert.rejects(serverIdentity(data), {
    message: /^Cannot read .*\.identity: it must be a readable file: EISDIR/,
  });
});

test("readUsers reads quoted cells, comments and optional columns", () => {
  const file = join(temporaryFolder(), "users.csv");
  const users = [
    "# token, user, UID, groups",
    "",
    'a, ann ,1,"one,,two"',
    '"b,""c""",bob,',
    "d,dan,3,",
  ];
  writeFileSync(file, `${users.join("\r\n")}\n`);
  assert.deepEqual(readUsers(file), [
    { token: "a", name: "ann", uid: "1", groups: ["one", "two"] },
    { token: 'b,"c"', name: "bob", uid: undefined, groups: [] },
    { token: "d", name: "dan", uid: "3", groups: [] },
  ]);
  for (const line of ["secret,ann", "secret,,1", ",ann,1"]) {
    writeFileSync(file, `a,b,1\n${line}\n`);
    assert.throws(() => readUsers(file), {
      message:
        `Cannot read ${file}: line 2 must have a token, a user name and a UID`,
    });
  }
});
