import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import type { OperatorHandle } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import {
  LatestLines,
  linkedOperators,
  serveLink,
} from "../../../dev/cli/window/operator_link.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";

test("LatestLines finds the lines about an object, and not about another", () => {
  const lines = new LatestLines();
  const about = [
    "12:00  gadgets default/web  Reconciled",
    '{"object":"default/web"}',
  ];
  const others = ["12:00  gadgets default/web-2  Reconciled", "my-default/web"];
  for (const line of [...about, ...others]) lines.add(`${line}\n`);
  assert.deepEqual(lines.about("default/web"), about);
});

test("LatestLines keeps the latest 2000 lines without colours", () => {
  const lines = new LatestLines();
  for (let number = 0; number <= 2_000; number++) {
    lines.add(`\x1b[1ma/b\x1b[0m ${number}\n`);
  }
  const kept = lines.about("a/b");
  assert.equal(kept.length, 2_000);
  assert.deepEqual([kept[0], kept.at(-1)], ["a/b 1", "a/b 2000"]);
});

/** Operator with one controller of ConfigMaps, which notes its runs. */
function fakeOperator(
  name: string,
  { triggered, pauseAnnotation }: {
    readonly triggered: string[];
    readonly pauseAnnotation?: string;
  },
): OperatorHandle {
  return {
    inspect: () => ({ name }),
    why: (key: string) => [{ controller: name, key }],
    controllerNamed: (wanted: string) =>
      wanted !== name ? undefined : {
        kind: ConfigMap,
        settings: { pauseAnnotation },
        trigger: (key: string) => void triggered.push(`${name} ${key}`),
      },
  } as object as OperatorHandle;
}

/** Links two operators with a source of the page, to a server if they need one. */
async function withLink(
  play: (link: {
    readonly source: ReturnType<typeof linkedOperators>;
    readonly file: string;
    readonly triggered: readonly string[];
    readonly lines: LatestLines;
  }) => Promise<void>,
  kubeconfig = "",
): Promise<void> {
  const file = join(temporaryFolder(), "link");
  const triggered: string[] = [];
  const lines = new LatestLines();
  const operators = [
    fakeOperator("first", { triggered }),
    fakeOperator("other", { triggered, pauseAnnotation: "test.dev/paused" }),
  ];
  const link = await serveLink({
    operators: () => operators,
    lines,
    kubeconfig,
    file,
  });
  try {
    await play({ source: linkedOperators(file), file, triggered, lines });
  } finally {
    await link.close();
  }
}

test("A link shows the operators of another process, and the lines of an object", () =>
  withLink(async ({ source, file, lines }) => {
    assert.equal(statSync(file).mode & 0o777, 0o600);
    lines.add("12:00  default/a&b  Reconciled");
    lines.add("12:00  default/a  Reconciled");
    assert.deepEqual(await source.state(), [{ name: "first" }, {
      name: "other",
    }]);
    assert.deepEqual(await source.object("default/a&b"), {
      histories: [
        { controller: "first", key: "default/a&b" },
        { controller: "other", key: "default/a&b" },
      ],
      logs: ["12:00  default/a&b  Reconciled"],
    });
  }));

test("A link reconciles an object in the controller of the request", () =>
  withLink(async ({ source, triggered }) => {
    const object = "default/a";
    await source.act?.({ action: "reconcile", controller: "other", object });
    assert.deepEqual(triggered, ["other default/a"]);
    for (
      const [request, message] of [
        [{ controller: "none", object }, /^Cannot act: .* must name a contr/],
        [{ controller: "other" }, /^Cannot act: .* must name a controller/],
        [null, /^Cannot act: .* must name a controller and an object$/],
        [
          { action: "pause", controller: "first", object },
          /^Cannot pause default\/a: first has no annotation$/,
        ],
        [
          { action: "stop", controller: "other", object },
          /^Cannot act: .* pause or resume: received "stop"$/,
        ],
      ] as const
    ) {
      await assert.rejects(async () => await source.act?.(request), {
        message,
      });
    }
    assert.equal(triggered.length, 1);
  }));

test("A link pauses an object by the annotation of its controller", async () => {
  const server = await ApiServer.start({ port: 0 });
  const { client } = server;
  const folder = temporaryFolder();
  const kubeconfig = writeText(folder, "kubeconfig", server.kubeconfig);
  const key = { name: "a", namespace: "default" };
  try {
    await client.create(ConfigMap, { metadata: key });
    await withLink(async ({ source }) => {
      const request = { controller: "other", object: "default/a" };
      const annotations = async () =>
        (await client.get(ConfigMap, key)).metadata.annotations;
      await source.act?.({ action: "pause", ...request });
      assert.deepEqual(await annotations(), { "test.dev/paused": "true" });
      await source.act?.({ action: "resume", ...request });
      assert.equal((await annotations())?.["test.dev/paused"], undefined);
      await assert.rejects(
        async () =>
          await source.act?.({ action: "pause", ...request, object: "b/c" }),
        /"c" not found/,
      );
    }, kubeconfig);
  } finally {
    await server.stop();
  }
});

test("A page of operators says that they are starting, or have ended", async () => {
  const missing = linkedOperators(join(temporaryFolder(), "link"));
  await assert.rejects(missing.state(), {
    message: "Cannot show the operator: it is starting",
  });
  let text = "";
  await withLink(async ({ source, file }) => {
    text = readFileSync(file, "utf8");
    assert.equal((await source.state()).length, 2);
    const { port } = JSON.parse(text);
    const unknown = await fetch(`http://127.0.0.1:${port}/other`, {
      headers: { "x-coracle-token": JSON.parse(text).token },
    });
    assert.equal(unknown.status, 404);
    await unknown.body?.cancel();
    const denied = await fetch(`http://127.0.0.1:${port}/state`);
    assert.equal(denied.status, 403);
    await denied.body?.cancel();
  });
  const file = writeText(temporaryFolder(), "link", text);
  await assert.rejects(linkedOperators(file).state(), {
    message: "Cannot show the operator: it is not running",
  });
});
