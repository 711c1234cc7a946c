import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { Client, loadConfig } from "@coracle/operator/client";
import { Namespace } from "@coracle/operator/kinds";
import { coracle, Program, runtimeCommand } from "../../support/program.ts";
import { removesDefinitions } from "../../support/remove_objects.ts";
import { ON_REAL_CLUSTER } from "../../support/scenario_cluster.ts";
import { tellWebPageStory } from "./webpage_story.ts";

const EXAMPLE = "examples/webpage.ts";
removesDefinitions({ group: "sample.coracle.dev", plural: "webpages" });

async function withFolder(
  body: (kubeconfig: string, folder: string) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "coracle-webpage-"));
  try {
    await body(join(folder, "kubeconfig"), folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Plays the story on the cluster of a kubeconfig. */
async function tellStory(kubeconfig: string): Promise<void> {
  const client = new Client(await loadConfig({ kubeconfig }));
  const name = `webpage-${randomBytes(4).toString("hex")}`;
  try {
    await client.create(Namespace, { metadata: { name } });
    await tellWebPageStory(client, name, !ON_REAL_CLUSTER);
    await client.delete(Namespace, { name });
  } finally {
    await client.close();
  }
}

/** Runs the example with the runtime of the tests during its story. */
async function runExample(kubeconfig: string): Promise<void> {
  const operator = new Program([...runtimeCommand(), EXAMPLE], {
    env: { KUBECONFIG: kubeconfig },
  });
  try {
    await operator.says(/Operator started/);
    await tellStory(kubeconfig);
    assert.equal(await operator.end("SIGTERM"), 0, operator.describe());
  } finally {
    await operator.kill();
  }
}

test(
  "coracle dev runs the WebPage example, explains its use and ends by Ctrl-C",
  { skip: ON_REAL_CLUSTER && "it brings its own API server" },
  () =>
    withFolder(async (kubeconfig) => {
      const dev = new Program(
        coracle("dev", "--kubeconfig", kubeconfig, EXAMPLE),
      );
      try {
        await dev.says(/kubectl apply -f examples\/webpage\.yaml/);
        assert.match(dev.output, /kubectl get webpages/);
        assert.match(dev.output, /flowchart TD\n.*n0\["html"\]/);
        assert.match(dev.output, /n0 --> n1/);
        await tellStory(kubeconfig);
        assert.match(dev.output, /webpage webpage-[0-9a-f]+\/hello/);
        await dev.says(
          /html reconciled, server reconciled, service reconciled, ingress deleted/,
        );
        await dev.says(/Page is taken down/);
        assert.equal(await dev.end("SIGINT"), 0, dev.describe());
      } finally {
        await dev.kill();
      }
    }),
);

test("The WebPage example runs as a program with KUBECONFIG", () =>
  withFolder(async (kubeconfig) => {
    if (ON_REAL_CLUSTER) {
      return await runExample(process.env["KUBECONFIG"] ?? "");
    }
    const server = new Program(
      coracle(
        "apiserver",
        "--port=0",
        `--kubeconfig=${kubeconfig}`,
        "--simulate",
      ),
    );
    try {
      await server.says(/Serving on https:/);
      await runExample(kubeconfig);
      assert.equal(await server.end("SIGTERM"), 0, server.describe());
    } finally {
      await server.kill();
    }
  }));
