import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  FileCredentials,
  SecretFile,
} from "../../../core/config/file_credentials.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";

const FOLDER = temporaryFolder();

/** Credentials of three files, and a function that replaces one. */
function threeFiles() {
  const clock = new VirtualClock();
  const write = (name: string, text: string) => writeText(FOLDER, name, text);
  const file = (name: string) =>
    new SecretFile(write(name, `first ${name}\n`), { origin: name, clock });
  const credentials = new FileCredentials({ username: "jane" }, {
    token: file("token"),
    certificate: file("certificate"),
    key: file("key"),
  });
  return { clock, write, credentials };
}

test("FileCredentials are new ones after a minute if any of their files is", async () => {
  const { clock, write, credentials } = threeFiles();
  let last = await credentials.current();
  assert.deepEqual(last, {
    username: "jane",
    token: "first token",
    certificate: "first certificate",
    key: "first key",
  });
  for (const name of ["token", "certificate", "key"] as const) {
    write(name, `second ${name}`);
    await clock.advance(59_999);
    assert.equal(await credentials.current(), last);
    await clock.advance(1);
    const next = await credentials.current();
    assert.deepEqual(next, { ...last, [name]: `second ${name}` });
    last = next;
  }
  await clock.advance(60_000);
  assert.equal(await credentials.current(), last, "nothing has changed");
});

test("FileCredentials read again at once what was refused, and only that", async () => {
  const { write, credentials } = threeFiles();
  const first = await credentials.current();
  write("token", "second token");
  const second = await credentials.refresh(first);
  assert.equal(second.token, "second token");
  write("token", "third token");
  assert.equal(await credentials.refresh(first), second, "renewed already");
  assert.equal((await credentials.refresh(second)).token, "third token");
});

test("SecretFile keeps its content for a minute while the file is gone or empty", async () => {
  const { clock, write, credentials } = threeFiles();
  const first = await credentials.current();
  write("key", " \n");
  await clock.advance(60_000);
  assert.equal(await credentials.current(), first);
  write("key", "second key");
  await clock.advance(59_999);
  assert.equal(await credentials.current(), first);
  await clock.advance(1);
  assert.equal((await credentials.current()).key, "second key");
});

test("SecretFile is read again once its file exists", async () => {
  const clock = new VirtualClock();
  const file = new SecretFile(join(FOLDER, "late"), { origin: "f", clock });
  const message = /late must be a readable file/;
  await assert.rejects(() => file.read(), message);
  await assert.rejects(() => file.readAgain(), message);
  writeText(FOLDER, "late", "token");
  assert.equal(await file.read(), "token");
});

test("FileCredentials without a token follow their certificate and key", async () => {
  const clock = new VirtualClock();
  const write = (name: string, text: string) =>
    writeText(join(FOLDER, "pair"), name, text);
  const file = (name: string) =>
    new SecretFile(write(name, "first"), { origin: name, clock });
  for (const name of ["certificate", "key"] as const) {
    const credentials = new FileCredentials({}, { [name]: file(name) });
    assert.equal((await credentials.current())[name], "first");
    write(name, "second");
    await clock.advance(60_000);
    assert.equal((await credentials.current())[name], "second");
  }
});

test("SecretFile is read once for several calls at the same time", async () => {
  const clock = new VirtualClock();
  const path = writeText(FOLDER, "shared", "text");
  const file = new SecretFile(path, { origin: "shared", clock });
  const first = file.readAgain();
  assert.equal(file.readAgain(), first);
  await first;
  assert.notEqual(file.readAgain(), first);
});

test("FileCredentials without files are the same at any time", async () => {
  const credentials = new FileCredentials({ token: "fixed" }, {});
  const first = await credentials.current();
  assert.equal(await credentials.current(), first);
  assert.equal(await credentials.refresh(first), first);
});
