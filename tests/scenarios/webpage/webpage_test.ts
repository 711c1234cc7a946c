import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Client } from "../../../core/client/client.ts";
import { loadConfig } from "../../../core/config/load_config.ts";
import { coracle, Program, runtimeCommand } from "../../support/program.ts";
import { tellWebPageStory } from "./webpage_story.ts";

const EXAMPLE = "examples/webpage.ts";

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

/** Tells the story to whoever the kubeconfig leads to. */
async function tellStory(kubeconfig: string): Promise<void> {
  const client = new Client(await loadConfig({ kubeconfig }));
  try {
    await tellWebPageStory(client, "default");
  } finally {
    await client.close();
  }
}

test("coracle dev runs the WebPage example, says how to try it, and ends by Ctrl-C", () =>
  withFolder(async (kubeconfig) => {
    const dev = new Program(
      coracle("dev", "--kubeconfig", kubeconfig, EXAMPLE),
    );
    try {
      await dev.says(/kubectl apply -f examples\/webpage\.yaml/);
      assert.match(dev.output, /kubectl get webpages/);
      await tellStory(kubeconfig);
      assert.match(dev.output, /webpage default\/hello/);
      assert.match(dev.output, /Page is taken down/);
      assert.equal(await dev.end("SIGINT"), 0, dev.describe());
    } finally {
      await dev.kill();
    }
  }));

test("The WebPage example runs as a file of its own, wherever KUBECONFIG leads", () =>
  withFolder(async (kubeconfig) => {
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
      assert.equal(await server.end("SIGTERM"), 0, server.describe());
    } finally {
      await server.kill();
    }
  }));
