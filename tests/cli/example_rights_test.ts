import assert from "node:assert/strict";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { Client, loadConfig, untyped } from "@coracle/operator/client";
import { CommandRun } from "../support/command_run.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";

/** An object of each example, and what the operator writes for it. */
const EXAMPLES: readonly (readonly [
  name: string,
  kind: string,
  spec: object,
  works: RegExp,
])[] = [
  ["chat_bridge", "Channel", { room: "tea" }, /channel default\/a {2}Reconc/],
  ["greeting", "Greeting", { name: "Ann" }, /greeting default\/a {2}Reconc/],
  [
    "github_webhook",
    "Repository",
    { repository: "a/b" },
    /repository default\/a {2}Reconc/,
  ],
  [
    "mirror",
    "Mirror",
    { url: "http://127.0.0.1:1/a" },
    /mirror default\/a .*Run failed/,
  ],
  [
    "postgres_schema",
    "PostgresSchema",
    {},
    /postgresschema default\/a .*Run failed/,
  ],
  [
    "stream_job",
    "StreamJob",
    { program: "a:1" },
    /streamjob default\/a .*(Reconciled|Run failed)/,
  ],
  ["release", "Release", { image: "a:1" }, /release default\/a {2}Reconc/],
  ["tomcat", "Tomcat", { version: 11 }, /tomcat default\/a {2}Reconc/],
  [
    "uptime",
    "Website",
    { url: "http://127.0.0.1:1/" },
    /website default\/a .*Run failed/,
  ],
  [
    "webpage",
    "WebPage",
    { html: "Hello" },
    /webpage default\/a .*Reconciled.*ingress/,
  ],
];

/** Variables that examples read; nothing listens there. */
const ENVIRONMENT: Readonly<Record<string, string>> = {
  DATABASE_URL: "postgres://a:b@127.0.0.1:1/c",
  JOB_MANAGER_URL: "http://127.0.0.1:1",
  WEBHOOK_PORT: "0",
  WEBHOOK_SECRET: "secret",
};

Object.assign(process.env, ENVIRONMENT);

for (const [name, kind, spec, works] of EXAMPLES) {
  test(
    `The generated rules of the example ${name} permit all of its requests`,
    async () => {
      const folder = temporaryFolder();
      const needsSystem = /postgres|stream/.test(name);
      const file = `examples/${name}.ts`;
      const kubeconfig = join(folder, "kubeconfig");
      const dev = new CommandRun(["dev", "--kubeconfig", kubeconfig, file]);
      try {
        await dev.says(/Press Ctrl-C/);
        const client = new Client(await loadConfig({ kubeconfig }));
        const group = "sample.coracle.dev";
        const kinds = untyped({ group, version: "v1", kind });
        const key = { namespace: "default", name: "a" };
        await client.create(kinds, { metadata: key, spec });
        await dev.says(works);
        await client.delete(kinds, key);
        // Without its system, a cleanup fails and is retried.
        await dev.says(
          needsSystem
            ? /default\/a .*(?:Run failed.*\(modified|Cleaning up)/
            : /default\/a {2}Deleted/,
        );
        await client.close();
        assert.equal(await dev.end(), 0, dev.describe());
      } finally {
        await dev.kill();
      }
      assert.doesNotMatch(dev.describe(), /The operator may not/);
    },
  );
}
