import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, loadConfig } from "@coracle/operator/client";
import { createJob } from "../support/dev_operator_file.ts";
import { until } from "../support/until.ts";
import {
  admitsWith,
  create,
  freePort,
  LAMPS,
  startWatched,
  WITHIN,
} from "../support/watched_lamps.ts";

/** Answers to requests that an operator must deny, until a promise settles. */
async function answersUntil(
  client: Client,
  done: Promise<void>,
): Promise<readonly string[]> {
  const answers: string[] = [];
  let isDone = false;
  const asking = (async () => {
    do {
      const answer = create(client, "v1", { watts: 0 });
      answers.push(await answer.then(() => "allowed", String));
    } while (!isDone);
  })();
  await done.finally(() => isDone = true);
  await asking;
  return answers;
}
test("coracle dev --watch admits without a gap while its file changes", async () => {
  const port = await freePort();
  // Both processes need the port and the Lease.
  const options = JSON.stringify({
    probes: { port, host: "127.0.0.1" },
    leaderElection: { name: "lamps" },
  });
  const { dev, kubeconfig, textWith, write } = startWatched(
    `const options = ${options};\n${LAMPS}`,
  );
  let client: Client | undefined;
  try {
    await dev.says(/Press Ctrl-C/, WITHIN);
    const asking = client = new Client(await loadConfig({ kubeconfig }));
    await createJob(kubeconfig, "a");
    await admitsWith("one", asking);
    for (const word of ["two", "three"]) {
      const seen = answersUntil(asking, admitsWith(word, asking));
      write(textWith(word));
      const wrong = (await seen).filter((one) => !/denied the r/.test(one));
      assert.deepEqual(wrong, [], dev.describe());
      await dev.says(new RegExp(`default/a .*debug: ${word}`), WITHIN);
    }
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
    assert.doesNotMatch(dev.output, /EADDRINUSE|AddrInUse|warn:/);
  } finally {
    await client?.close();
    await dev.kill();
  }
});

test("coracle dev --watch ends with the last of quick edits", async () => {
  const { dev, kubeconfig, textWith, write } = startWatched(LAMPS);
  let client: Client | undefined;
  try {
    await dev.says(/Press Ctrl-C/, WITHIN);
    client = new Client(await loadConfig({ kubeconfig }));
    for (let at = 0; at < 5; at++) {
      const changes = () => dev.output.match(/ has changed/g)?.length ?? 0;
      const before = changes();
      write(textWith(`edit-${at}`));
      await until("the edit is seen", () => changes() > before);
    }
    await admitsWith("edit-4", client);
    await createJob(kubeconfig, "a");
    await dev.says(/default\/a .*debug: edit-4/, WITHIN);
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
    // One operator alone has seen the object.
    assert.doesNotMatch(dev.output, /default\/a .*debug: (?!edit-4)/);
  } finally {
    await client?.close();
    await dev.kill();
  }
});

test("coracle dev --watch removes the admission that an edit takes away", async () => {
  const { dev, kubeconfig, textWith, write } = startWatched(LAMPS);
  let client: Client | undefined;
  try {
    await dev.says(/Press Ctrl-C/, WITHIN);
    const asking = client = new Client(await loadConfig({ kubeconfig }));
    await admitsWith("one", asking);
    write(textWith("one").replace(/admission: \{[^]*?\n {4}\},\n/, ""));
    await until("lamps are admitted by nobody", async () => {
      const made = await create(asking, "v2", { power: "0 W" }).catch(String);
      return typeof made === "object" && !("note" in made);
    });
    assert.equal(await dev.end("SIGTERM"), 0, dev.describe());
  } finally {
    await client?.close();
    await dev.kill();
  }
});
