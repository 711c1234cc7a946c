/**
 * Applies a folder of manifests from a git repository: a job without a primary
 * that polls. What leaves the folder is deleted, and what others have changed is
 * mended each ten minutes. The ConfigMap `folder-sync` lists what was applied.
 * REPOSITORY is the folder of a clone, in which `git pull` works.
 */
import { execFile } from "node:child_process";
import process from "node:process";
import { promisify } from "node:util";
import {
  type Client,
  type ObjectKey,
  Operator,
  type OperatorOptions,
  type UntypedObject,
} from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { applySet, fromFiles } from "@coracle/operator/workflows";

const LEASE = { name: "folder-sync" };
const OWNER = { group: "sync.example.com", ...LEASE };

/** Where the manifests come from. */
export interface Repository {
  /** Fetches the newest state, and returns its revision. */
  pull(signal: AbortSignal): Promise<string>;
  /** Reads the manifests. */
  objects(): Promise<readonly UntypedObject[]>;
}

/** Repository in a folder that was cloned by git. */
function gitRepository(folder: string): Repository {
  const git = async (signal: AbortSignal, ...args: string[]) => {
    const limits = { signal, timeout: 60_000, maxBuffer: 1 << 20 };
    const all = ["-C", folder, ...args];
    return (await promisify(execFile)("git", all, limits)).stdout.trim();
  };
  return {
    async pull(signal) {
      await git(signal, "pull", "--ff-only", "--quiet");
      return await git(signal, "rev-parse", "HEAD");
    },
    objects: () => fromFiles(folder),
  };
}

type Named = Partial<ObjectKey> & {
  apiVersion?: string;
  kind?: string;
  metadata?: Partial<ObjectKey>;
};

/** List of the objects that were applied, in a ConfigMap. */
async function inventory(client: Client) {
  const metadata = { namespace: client.namespace, name: OWNER.name };
  const stored = await client.find(ConfigMap, metadata);
  let text = stored?.data?.["inventory"] ?? "[]";
  return {
    previous: JSON.parse(text),
    async keep(objects: readonly Named[]) {
      const lines = objects.map(({ apiVersion, kind, metadata, ...key }) => {
        const { namespace, name } = metadata ?? key;
        return JSON.stringify({ apiVersion, kind, namespace, name });
      });
      const next = `[${[...new Set(lines)].sort().join()}]`;
      if (next === text) return;
      await client.apply(ConfigMap, {
        metadata,
        data: { inventory: text = next },
      }, { fieldManager: OWNER.name, force: true });
    },
  };
}

/** Operator that applies the folder. */
export function folderSync(
  options: OperatorOptions = {},
  repository: Repository = gitRepository(process.env["REPOSITORY"] ?? "."),
): Operator {
  const operator = new Operator({ leaderElection: LEASE, ...options });
  let applied: { revision: string; at: number } | undefined;
  const limits = { every: "30s", timeout: "5m" } as const;
  operator.job("folder-sync", limits, async (ctx) => {
    const { client, clock, signal } = ctx;
    const revision = await repository.pull(signal);
    const isRecent = applied && clock.now() - applied.at < 600_000;
    if (isRecent && applied?.revision === revision) return;
    const objects = await repository.objects();
    const { previous, keep } = await inventory(client);
    // Before the first write, so that nothing is forgotten after a crash.
    await keep([...previous, ...objects]);
    const set = { owner: OWNER, fieldManager: OWNER.name, previous };
    const done = await applySet(client, objects, { ...set, signal, clock });
    await keep(done.inventory);
    applied = { revision, at: clock.now() };
    ctx.log.info("Applied the folder", { revision, objects: objects.length });
  });
  return operator;
}

if (import.meta.main) await folderSync().run();
