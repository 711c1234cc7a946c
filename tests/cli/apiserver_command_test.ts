import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { Client, loadConfig, untyped } from "@coracle/operator/client";
import { coracle, Program } from "../support/program.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

test("coracle apiserver takes a file of users, and requests that control it", async () => {
  const folder = temporaryFolder();
  const kubeconfig = join(folder, "kubeconfig");
  const control = join(folder, "control.json");
  const users = writeText(
    folder,
    "tokens.csv",
    'token-of-ann,ann,7,"dev,ops"\n# nobody\ntoken-of-bob, bob,,\n',
  );
  const server = new Program(coracle(
    "apiserver",
    "--port=0",
    "--kubeconfig",
    kubeconfig,
    "--token-auth-file",
    users,
    "--control",
    control,
  ));
  try {
    await server.says(/Serving on/);
    const { url, headers } = JSON.parse(await readFile(control, "utf8"));
    const body = JSON.stringify({ by: "1h" });
    const moved = await fetch(`${url}/advance`, {
      method: "POST",
      headers,
      body,
    });
    const { now } = await moved.json() as { readonly now: string };
    assert(Date.parse(now) > Date.now() + 3_000_000, now);
    const config = await loadConfig({ kubeconfig });
    const reviews = untyped({
      group: "authentication.k8s.io",
      version: "v1",
      kind: "SelfSubjectReview",
      plural: "selfsubjectreviews",
      scope: "Cluster",
    });
    for (
      const [token, expected] of [
        ["token-of-ann", {
          username: "ann",
          uid: "7",
          groups: ["dev", "ops", "system:authenticated"],
        }],
        ["token-of-bob", {
          username: "bob",
          groups: ["system:authenticated"],
        }],
      ] as const
    ) {
      const client = new Client({ ...config, credentials: { token } });
      const { status } = await client.create(reviews, { metadata: {} });
      const { userInfo } = status as { userInfo: unknown };
      assert.deepEqual(userInfo, expected);
      await client.close();
    }
    assert.equal(await server.end("SIGTERM"), 0);
  } finally {
    await server.kill();
  }
});

test("coracle apiserver refuses a file of users with an incomplete line", async () => {
  const folder = temporaryFolder();
  const users = writeText(folder, "tokens.csv", "token\n");
  const server = new Program(coracle(
    "apiserver",
    "--port=0",
    "--kubeconfig",
    join(folder, "kubeconfig"),
    "--token-auth-file",
    users,
  ));
  await assert.rejects(server.says(/Serving on/), /line 1 must have a token/);
  await server.kill();
});

test("coracle apiserver ends with the shell that npx started it by", async () => {
  const kubeconfig = join(temporaryFolder(), "kubeconfig");
  const command = coracle("apiserver", "--port=0", "--kubeconfig", kubeconfig);
  // The shell of npx does not pass the signal on that it gets.
  const npx = new Program(["sh", "-c", '"$@"; true', "sh", ...command], {
    env: { npm_command: "exec" },
  });
  try {
    await npx.says(/Serving on/);
    // It has ended when the server has closed its output, too.
    assert.equal(await npx.end("SIGTERM"), -1);
  } finally {
    await npx.kill();
  }
});
