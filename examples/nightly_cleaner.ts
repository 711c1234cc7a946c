/**
 * Deletes finished Jobs that are a week old, each night at three in Berlin: a job
 * without a primary. A night that the operator has missed is made up at its start,
 * as the ConfigMap `nightly-cleaner` tells when it ran last.
 */
import { Operator, type OperatorOptions } from "@coracle/operator";
import { ConfigMap, Job, type Job as JobObject } from "@coracle/operator/kinds";

const KEPT_MS = 7 * 24 * 3_600_000;

/** End of a Job, in milliseconds since 1970; undefined while it runs. */
function endOf({ status }: JobObject): number | undefined {
  const ended = status?.conditions?.find(({ type, status }) =>
    (type === "Complete" || type === "Failed") && status === "True"
  );
  return ended && Date.parse(ended.lastTransitionTime ?? "");
}

/** Operator that deletes old Jobs. */
export function operator(options: OperatorOptions = {}): Operator {
  const made = new Operator({
    leaderElection: { name: "cleaner" },
    ...options,
  });
  made.job("nightly-cleaner", {
    cron: "0 3 * * *",
    timeZone: "Europe/Berlin",
    state: { kind: ConfigMap, name: "nightly-cleaner" },
    timeout: "10m",
  }, async (ctx) => {
    const oldest = ctx.clock.wallTime() - KEPT_MS;
    let deleted = 0;
    for (const namespace of namespacesOf(options)) {
      for (const job of await ctx.list(Job, namespace)) {
        const end = endOf(job);
        if (end === undefined || end >= oldest) continue;
        const { uid = "" } = job.metadata;
        await ctx.delete(Job, job.metadata, { uid });
        deleted++;
      }
    }
    ctx.log.info("Cleaned up", { deleted });
  });
  return made;
}

/** Namespaces to clean; `"*"` for all. */
function namespacesOf({ namespaces }: OperatorOptions): readonly string[] {
  return Array.isArray(namespaces) ? namespaces : ["*"];
}

if (import.meta.main) await operator().run();
