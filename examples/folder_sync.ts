/**
 * Applies a folder of manifests from a git repository: a job without a primary
 * that polls. What leaves the folder is deleted, and what others have changed is
 * mended each four minutes. The ConfigMap `folder-sync` lists what was applied.
 * REPOSITORY is the folder of a clone, in which `git pull` works.
 */
import { execFile } from "node:child_process";
import process from "node:process";
import { promisify } from "node:util";
import {
  Operator,
  type OperatorOptions,
  type UntypedObject,
} from "@coracle/operator";
import { applySet, fromFiles } from "@coracle/operator/workflows";

const NAME = { name: "folder-sync" };
const SET = {
  owner: { group: "sync.example.com", ...NAME },
  inventory: NAME,
  fieldManager: NAME.name,
};

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

/** Operator that applies the folder. */
export function operator(
  options: OperatorOptions = {},
  repository: Repository = gitRepository(process.env["REPOSITORY"] ?? "."),
): Operator {
  const made = new Operator({
    leaderElection: NAME,
    programs: ["git"],
    ...options,
  });
  let applied: { revision: string; at: number } | undefined;
  const limits = { every: "1m", timeout: "5m" } as const;
  made.job(NAME.name, limits, async (ctx) => {
    const { client, clock, signal } = ctx;
    const revision = await repository.pull(signal);
    const isRecent = applied && clock.now() - applied.at < 240_000;
    if (isRecent && applied?.revision === revision) return;
    const objects = await repository.objects();
    await applySet(client, objects, { ...SET, signal, clock });
    applied = { revision, at: clock.now() };
    ctx.log.info("Applied the folder", { revision, objects: objects.length });
  });
  return made;
}

if (import.meta.main) await operator().run();
