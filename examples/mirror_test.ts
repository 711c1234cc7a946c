import { type Client, untyped } from "@coracle/operator";
import { Event } from "@coracle/operator/kinds";
import {
  type Conditioned,
  isReady,
  lintStatus,
  statusOf,
} from "@coracle/operator/workflows";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type ArtifactServer, startArtifactServer } from "./mirror_server.ts";
import { until, withExample } from "./run_example.ts";

interface Artifact {
  readonly digest: string;
}

type Mirror = Conditioned & {
  status?: Conditioned["status"] & { artifact?: Artifact };
};

const Mirror = untyped({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Mirror",
  plural: "mirrors",
  scope: "Namespaced",
});

/** Cluster, source and folder of a test. */
interface MirrorCase {
  readonly client: Client;
  readonly source: ArtifactServer;
  readonly store: string;
}

function digestOf(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

function mirrorTest(
  title: string,
  play: (fixture: MirrorCase) => Promise<void>,
): void {
  test(title, { timeout: 60_000 }, async () => {
    const store = await mkdtemp(join(tmpdir(), "coracle-mirror-"));
    const source = await startArtifactServer();
    try {
      await withExample(
        "mirror.ts",
        ({ client }) => play({ client, source, store }),
        { MIRROR_STORE: store },
      )();
    } finally {
      await source.stop();
      await rm(store, { recursive: true, force: true });
    }
  });
}

async function create(
  { client, source }: MirrorCase,
  name: string,
  spec: object = {},
): Promise<void> {
  const url = `http://127.0.0.1:${source.port}/${name}`;
  await client.create(Mirror, {
    metadata: { namespace: "default", name },
    spec: { url, interval: "1h", ...spec },
  });
}

async function read({ client }: MirrorCase, name: string): Promise<Mirror> {
  return await client.get(Mirror, { namespace: "default", name }) as Mirror;
}

/** Changes the spec, or requests a run by annotation. */
async function change(
  { client }: MirrorCase,
  name: string,
  part: { readonly spec?: object; readonly asks?: readonly string[] },
): Promise<void> {
  const annotations = Object.fromEntries(
    (part.asks ?? []).map((ask) => [`reconcile.coracle.dev/${ask}`, stamp()]),
  );
  await client.patch(Mirror, { namespace: "default", name }, {
    ...(part.spec && { spec: part.spec }),
    metadata: { annotations },
  });
}

let last = 0;
const tokens = new Map<number, string>();

/** Token of all annotations of one request. */
function stamp(): string {
  const token = tokens.get(last) ?? `token-${last}`;
  tokens.set(last, token);
  return token;
}

/** Waits for Ready as `Status Reason` in a consistent status. */
async function ready(
  fixture: MirrorCase,
  name: string,
  expected: RegExp,
): Promise<Mirror> {
  const seen = await until(`${name} to be ${expected}`, async () => {
    const object = await read(fixture, name);
    const found = object.status?.conditions?.find(({ type }) =>
      type === "Ready"
    );
    return found && expected.test(`${found.status} ${found.reason}`) && object;
  });
  assert.deepEqual(lintStatus(seen, { abnormal: ["FetchFailed"] }), []);
  return seen;
}

/** Requests a run, which is immediate after any failure. */
async function ask(fixture: MirrorCase, name: string): Promise<void> {
  last++;
  await change(fixture, name, { asks: ["requestedAt"] });
}

/** Stored files of a mirror. */
async function kept({ store }: MirrorCase, name: string): Promise<string[]> {
  const folder = join(store, "default", name);
  const files = await readdir(folder).catch(() => []);
  return await Promise.all(
    // It may be replaced at this moment.
    files.map((file) => readFile(join(folder, file), "utf8").catch(() => "")),
  );
}

mirrorTest(
  "The mirror follows its source by ETag, suspension and requests",
  async (fixture) => {
    const { source } = fixture;
    source.offer("/tools", "first");
    await create(fixture, "tools", { digest: digestOf("first") });
    const stored = await ready(fixture, "tools", /True Stored/);
    assert.equal(stored.status?.artifact?.digest, digestOf("first"));
    assert.equal(statusOf(stored).status, "Current");
    assert.deepEqual(await kept(fixture, "tools"), ["first"]);

    await ask(fixture, "tools");
    await until(
      "an answer to the request",
      async () =>
        (await read(fixture, "tools")).status?.lastHandledReconcileAt ===
          stamp(),
    );
    assert.deepEqual(source.answers, ["200 /tools", "304 /tools"]);

    last++;
    await change(fixture, "tools", { asks: ["requestedAt", "forceAt"] });
    await until("a forced download", () => source.answers.length === 3);
    assert.equal(source.answers[2], "200 /tools");

    await change(fixture, "tools", { spec: { suspend: true, digest: null } });
    source.offer("/tools", "second");
    await ask(fixture, "tools");
    await change(fixture, "tools", { spec: { suspend: false } });
    await until(
      "the second artifact",
      async () => (await kept(fixture, "tools"))[0] === "second",
    );
    assert.equal(source.answers.length, 4, "not while it was suspended");

    const { items } = await fixture.client.list(Event, {
      namespace: "default",
    });
    const reasons = items.map(({ reason }) => reason).filter((reason) =>
      reason === "NewArtifact"
    );
    assert(reasons.length >= 1);
    await fixture.client.delete(Mirror, {
      namespace: "default",
      name: "tools",
    });
    await until(
      "the files to go",
      async () => (await kept(fixture, "tools")).length === 0,
    );
  },
);

mirrorTest(
  "The mirror reports errors of users and servers in conditions, and recovers",
  async (fixture) => {
    const { source } = fixture;
    source.offer("/tools", "text");
    await create(fixture, "tools", {
      digest: digestOf("other"),
      timeout: "300ms",
    });
    const wrong = await ready(fixture, "tools", /False WrongDigest/);
    assert.equal(statusOf(wrong).status, "InProgress");
    assert.deepEqual(
      await kept(fixture, "tools"),
      [],
      "nothing unverified is kept",
    );

    source.manners = "hangs";
    await change(fixture, "tools", { spec: { digest: digestOf("text") } });
    await ready(fixture, "tools", /False Timeout/);
    source.manners = "stops";
    await ask(fixture, "tools");
    await until("an answer that stops", () => source.answers.length > 1);
    await ready(fixture, "tools", /False Timeout/);
    for (const manners of ["huge", "endless"] as const) {
      source.manners = manners;
      last++;
      await change(fixture, "tools", {
        spec: { timeout: "10s", maxBytes: 2 ** 20 + last },
      });
      await ready(fixture, "tools", /False TooLarge/);
    }
    const { port } = source;
    await source.stop();
    await ask(fixture, "tools");
    await ready(fixture, "tools", /False Unreachable/);
    assert.deepEqual(
      await readdir(fixture.store),
      [],
      "no part is left behind",
    );

    const again = await startArtifactServer(port);
    try {
      again.offer("/tools", "text");
      await ask(fixture, "tools");
      const healed = await ready(fixture, "tools", /True Stored/);
      assert(isReady(healed.status!.conditions!));
      assert.deepEqual(await kept(fixture, "tools"), ["text"]);
    } finally {
      await again.stop();
    }
  },
);

mirrorTest(
  "The mirror waits for dependencies and stalls on errors of its spec",
  async (fixture) => {
    fixture.source.offer("/base", "base");
    fixture.source.offer("/tools", "tools");
    await create(fixture, "tools", { dependsOn: [{ name: "base" }] });
    const waiting = await ready(fixture, "tools", /False DependencyNotReady/);
    assert.equal(statusOf(waiting).status, "InProgress");
    await create(fixture, "base", { url: "ftp://127.0.0.1/base" });
    const stalled = await ready(fixture, "base", /False InvalidURL/);
    assert.equal(statusOf(stalled).status, "Failed");
    await change(fixture, "base", {
      spec: { url: `http://127.0.0.1:${fixture.source.port}/base` },
    });
    await ready(fixture, "base", /True Stored/);
    await ready(fixture, "tools", /True Stored/);
    fixture.source.offer("/odd", "odd");
    await create(fixture, "odd", { interval: "soon" });
    await ready(fixture, "odd", /False InvalidSchedule/);
    await change(fixture, "odd", {
      spec: { interval: "1h", timeout: "never" },
    });
    await ready(fixture, "odd", /False InvalidDuration/);
  },
);
