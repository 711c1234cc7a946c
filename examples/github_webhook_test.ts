import { untyped } from "@coracle/operator";
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { Program, until, withExample } from "./run_example.ts";

const SECRET = "a secret of this test";

const Repository = untyped({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Repository",
  plural: "repositories",
  scope: "Namespaced",
});

/** Push event in the format of GitHub. */
async function push(
  url: string,
  commit: string,
  options: { readonly secret?: string; readonly branch?: string } = {},
): Promise<number> {
  const { secret = SECRET, branch = "main" } = options;
  const body = JSON.stringify({
    ref: `refs/heads/${branch}`,
    repository: { full_name: "example/boat" },
    head_commit: { id: commit, message: `About ${commit}` },
  });
  const digest = createHmac("sha256", secret).update(body).digest("hex");
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-github-event": "push",
      "x-hub-signature-256": `sha256=${digest}`,
    },
    body,
  });
  await response.text();
  return response.status;
}

test(
  "The GitHub example shows the last commit and accepts only signed requests",
  withExample("github_webhook.ts", async ({ client, program }) => {
    const [url] = await program.says(/http:\/\/127\.0\.0\.1:\d+\/github/);
    const key = { namespace: "default", name: "boat" };
    const commit = async () =>
      ((await client.get(Repository, key))["status"] as
        | { commit?: string }
        | undefined)?.commit;
    await client.create(Repository, {
      metadata: { ...key },
      spec: { repository: "example/boat" },
    });
    // The operator may not have seen the object; GitHub repeats events, too.
    await until("the first commit", async () => {
      assert.equal(await push(url, "1111111"), 202);
      return await commit() === "1111111";
    });

    assert.equal(await push(url, "bad", { secret: "a guess" }), 401);
    assert.equal(await push(url, "other", { branch: "other" }), 202);
    assert.equal(await push(url, "2222222"), 202);
    const seen = await until("another commit", async () => {
      const now = await commit();
      return now !== "1111111" && now;
    });
    assert.equal(seen, "2222222");
    assert(!program.output.includes(SECRET));
  }, { WEBHOOK_SECRET: SECRET, WEBHOOK_PORT: "0" }),
);

test("The GitHub example without a secret ends with the reason", async () => {
  const program = new Program("github_webhook.ts", {
    env: { WEBHOOK_SECRET: undefined },
  });
  assert.equal(await program.ended(), 1, program.output);
  assert.match(program.output, /WEBHOOK_SECRET must be set/);
});
