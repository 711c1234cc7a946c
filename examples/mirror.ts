/**
 * Operator that mirrors artifacts, in the style of Flux: it downloads a URL,
 * again only when its ETag has changed, verifies the digest and keeps the file in
 * the folder MIRROR_STORE.
 *
 *     apiVersion: sample.coracle.dev/v1
 *     kind: Mirror
 *     metadata: { name: tools }
 *     spec: { url: "https://example.com/tools.tar.gz", interval: 10m }
 *
 * `kubectl wait --for=condition=Ready mirror/tools` waits for it, and
 * `kubectl annotate mirror/tools reconcile.coracle.dev/requestedAt="$(date)"`
 * requests a run immediately.
 */
import {
  defineKind,
  milliseconds,
  type ObjectOf,
  Operator,
} from "@coracle/operator";
import {
  conditionedStatus,
  Failed,
  intervalSchedule,
  jittered,
  readyColumns,
  REQUESTED_AT,
  requireReady,
  Stalled,
  type StepContext,
  summarized,
} from "@coracle/operator/workflows";
import { createHash, randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { access, mkdir, readdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { z } from "zod";

const STORE = process.env["MIRROR_STORE"] ?? join(tmpdir(), "mirror");

const Mirror = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Mirror",
  spec: z.object({
    url: z.string(),
    digest: z.string().regex(/^sha256:[0-9a-f]{64}$/).optional(),
    interval: z.string().default("5m"),
    timeout: z.string().default("1m"),
    maxBytes: z.int().positive().default(100 * 2 ** 20),
    suspend: z.boolean().default(false),
    dependsOn: z.array(z.object({
      name: z.string(),
      namespace: z.string().optional(),
      readyExpr: z.string().optional(),
    })).default([]),
  }),
  status: conditionedStatus(z.object({
    artifact: z.object({
      digest: z.string(),
      bytes: z.int(),
      url: z.string(),
      etag: z.string().optional(),
    }),
  })),
  printerColumns: readyColumns,
});
type Mirror = ObjectOf<typeof Mirror>;
type Artifact = NonNullable<NonNullable<Mirror["status"]>["artifact"]>;

/** Downloaded artifact before it is moved to its place. */
interface Download extends Artifact {
  readonly file: string;
}

/** Reports errors of the spec, which are not retried. */
function checkSpec(pass: StepContext<Mirror>): void {
  const { spec } = pass.object;
  // What was verified before was perhaps of another spec, or another artifact.
  pass.remove("Verified");
  const invalid = (reason: string, message: string) =>
    new Stalled(reason, message);
  try {
    milliseconds(spec.timeout, "spec.timeout");
  } catch (error) {
    throw invalid("InvalidDuration", (error as Error).message);
  }
  if (!/^https?:$/.test(URL.parse(spec.url)?.protocol ?? "")) {
    throw invalid("InvalidURL", "spec.url must be one of http or https");
  }
}

/** Waits for a Mirror that is not ready, which is not a failure. */
async function awaitOthers(pass: StepContext<Mirror>): Promise<void> {
  const { object, ctx } = pass;
  const { dependsOn } = object.spec;
  await requireReady(Mirror, dependsOn, { object, ctx, interval: "3s" });
}

/** Downloads a new artifact, verifies it and moves it to its place. */
async function mirror(pass: StepContext<Mirror>): Promise<void> {
  const { object } = pass;
  const kept = await keptArtifact(pass);
  const came = await pass.failing(
    { type: "FetchFailed", reason: "Unreachable" },
    () => download(pass, kept),
  );
  const { digest, bytes, etag, url } = came ?? kept!;
  try {
    verify(pass, digest);
    if (came !== undefined) await store(object, came);
  } finally {
    if (came !== undefined) await rm(came.file, { force: true });
  }
  object.status!.artifact = { digest, bytes, url, ...(etag && { etag }) };
  pass.set({
    type: "Stored",
    status: "True",
    reason: "Stored",
    message: `${bytes} bytes, ${digest}`,
  });
}

/** Stored artifact whose ETag may be sent to the server. */
async function keptArtifact(
  pass: StepContext<Mirror>,
): Promise<Artifact | undefined> {
  const { object, forced } = pass;
  const artifact = object.status?.artifact;
  if (artifact === undefined || forced) return undefined;
  if (artifact.url !== object.spec.url) return undefined;
  try {
    await access(join(folderOf(object), fileName(artifact)));
    return artifact;
  } catch {
    await pass.progress("The stored artifact is gone", { drift: true });
    return undefined;
  }
}

/** Downloads the URL; undefined if the artifact has not changed. */
async function download(
  { object, signal }: StepContext<Mirror>,
  known: Artifact | undefined,
): Promise<Download | undefined> {
  const { url, timeout, maxBytes } = object.spec;
  const late = AbortSignal.timeout(milliseconds(timeout));
  const file = join(STORE, `${randomUUID()}.part`);
  try {
    const response = await fetch(url, {
      headers: known?.etag === undefined ? {} : { "if-none-match": known.etag },
      signal: AbortSignal.any([signal, late]),
    });
    if (response.status === 304 && known !== undefined) return undefined;
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      throw new Failed("Refused", `the server answers ${response.status}`);
    }
    const tooLarge = new Failed("TooLarge", `more than ${maxBytes} bytes`);
    if (Number(response.headers.get("content-length")) > maxBytes) {
      await response.body.cancel();
      throw tooLarge;
    }
    const hash = createHash("sha256");
    let bytes = 0;
    await mkdir(STORE, { recursive: true });
    await pipeline(
      Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]),
      async function* (chunks: AsyncIterable<Uint8Array>) {
        for await (const chunk of chunks) {
          bytes += chunk.length;
          if (bytes > maxBytes) throw tooLarge;
          hash.update(chunk);
          yield chunk;
        }
      },
      createWriteStream(file),
    );
    const etag = response.headers.get("etag") ?? undefined;
    const digest = `sha256:${hash.digest("hex")}`;
    return { file, digest, bytes, url, ...(etag && { etag }) };
  } catch (error) {
    await rm(file, { force: true });
    if (late.aborted) throw new Failed("Timeout", `not here within ${timeout}`);
    // The message of fetch is only that it failed; the cause has the reason.
    const why = error instanceof TypeError ? error.cause ?? error : error;
    throw why;
  }
}

/** Sets Verified, a gate: while it is False, Ready is False for its reason. */
function verify(pass: StepContext<Mirror>, digest: string): void {
  const wanted = pass.object.spec.digest;
  if (wanted === undefined) return pass.remove("Verified");
  if (digest === wanted) {
    pass.set({ type: "Verified", status: "True", reason: "SameDigest" });
    return;
  }
  const [reason, message] = ["WrongDigest", `it is ${digest}, not ${wanted}`];
  pass.set({ type: "Verified", status: "False", reason, message });
  throw new Failed(reason, message);
}

/** Moves a file to its place and removes the former one. */
async function store(object: Mirror, came: Download): Promise<void> {
  const folder = folderOf(object);
  await mkdir(folder, { recursive: true });
  await rename(came.file, join(folder, fileName(came)));
  for (const name of await readdir(folder)) {
    if (name !== fileName(came)) await rm(join(folder, name));
  }
}

function folderOf({ metadata }: Mirror): string {
  return join(STORE, metadata.namespace ?? "", metadata.name);
}

function fileName({ digest }: Artifact): string {
  return digest.slice("sha256:".length);
}

const operator = new Operator();

operator.register(
  Mirror,
  summarized<Mirror>(Mirror, {
    schedule: ({ spec }) => intervalSchedule(jittered(spec.interval)),
    suspended: ({ spec }) => spec.suspend,
    summaries: [{
      target: "Ready",
      of: ["FetchFailed", "Stored"],
      abnormal: ["FetchFailed"],
    }],
    gates: ["Verified"],
    notification: {
      revision: ({ status }) => status?.artifact?.digest,
      failures: ["FetchFailed"],
    },
    cleanup: [
      ({ object }) => rm(folderOf(object), { recursive: true, force: true }),
    ],
  }, [checkSpec, awaitOthers, mirror]),
  {
    requestAnnotations: [REQUESTED_AT],
    install: true,
  },
);

await operator.run();
