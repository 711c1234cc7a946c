import type { ReadOptions } from "../testing/plan/read_cluster.ts";
import { type Command, type FlagValues, UsageError } from "./command.ts";
import { EXPORT_FLAG, findOperatorFile } from "./operator_module.ts";
import {
  CLUSTER_FLAGS,
  namespacesOf,
  openCluster,
  progressLine,
} from "./plan_cluster.ts";
import { listOf, requireFile, textOf } from "./serving.ts";

const DEFAULT_LIMIT = "1GiB";
const UNITS = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 } as const;

export const snapshotCommand: Command = {
  name: "snapshot",
  operands: "[FILE]",
  count: [0, 1],
  summary: "read the objects of a cluster into a file",
  description:
    "Reads objects of a cluster into one compressed file, from which coracle plan\n" +
    "and tests run without the cluster: what the operator of FILE needs, or without\n" +
    "one all kinds, or those of --kind. Nothing is ever written to the cluster. The\n" +
    "values of Secrets are replaced by digests that nobody can reverse: equal values\n" +
    "have equal digests. With --pseudonyms, names of objects and namespaces are\n" +
    "replaced wherever they are written. What may not be read is left out and named.",
  flags: {
    "output FILE": "file to write, which only you may read",
    ...CLUSTER_FLAGS,
    "kind KIND…": "kinds to read, such as Deployment or Deployment.apps",
    "secrets": "keep the values of Secrets",
    "pseudonyms": "replace the names of objects and namespaces",
    "keep NAME…": "names that --pseudonyms leaves as they are",
    "limit SIZE": `largest size of the file (default ${DEFAULT_LIMIT})`,
    ...EXPORT_FLAG,
  },
  required: ["output"],
  async run({ flags, operands: [file], terminal }) {
    const output = textOf(flags, "output") ?? "";
    await requireFile(output);
    const limit = limitOf(flags);
    const isRenamed = flags["pseudonyms"] === true;
    const keep = listOf(flags, "keep");
    if (keep.length > 0 && !isRenamed) {
      throw new UsageError("Cannot use --keep without --pseudonyms");
    }
    const signal = terminal.interrupts();
    const chosen = await kindsOfFlags(flags, file);
    const { readCluster } = await import("../testing/plan/read_cluster.ts");
    const { emptyNote, mixedNote, Snapshot } = await import(
      "../testing/plan/snapshot.ts"
    );
    const { SnapshotFile } = await import("../testing/plan/snapshot_file.ts");
    const namespaces = namespacesOf(flags);
    const progress = progressLine(terminal);
    const cluster = await openCluster(flags);
    const target = new SnapshotFile(output, limit);
    // All names must be known before the first is replaced.
    const snapshot = isRenamed ? new Snapshot() : undefined;
    try {
      let info = await readCluster(cluster, snapshot ?? target, {
        ...chosen,
        namespaces,
        selector: textOf(flags, "selector"),
        hidesSecrets: flags["secrets"] !== true,
        now: Date.now,
        signal,
        onProgress: (resource, done, total) =>
          progress.show(`${resource}: ${done} of ${total} read`),
      });
      if (snapshot !== undefined) {
        const { Pseudonyms } = await import("../testing/plan/pseudonyms.ts");
        const { primaries } = chosen;
        const names = new Pseudonyms(snapshot.end(info), { primaries, keep });
        await names.write(snapshot, target);
        info = names.info(info);
      }
      await target.end(info);
      progress.end();
      const { resources, unread } = info;
      const count = resources.reduce((sum, { objects }) => sum + objects, 0);
      const kinds = resources.filter(({ objects }) => objects > 0).length;
      terminal.out(
        `Wrote ${output}: ${count} objects of ${kinds} kinds, ${target.bytes} bytes\n`,
      );
      for (const { resource, namespace, why } of unread) {
        const where = namespace === undefined ? "" : ` in ${namespace}`;
        terminal.say(`Not read: ${resource}${where}: ${why}\n`);
      }
      for (
        const note of [emptyNote(info, chosen.primaries ?? []), mixedNote(info)]
      ) {
        if (note !== undefined) terminal.say(`${note}\n`);
      }
      return 0;
    } catch (error) {
      await target.abandon();
      throw error;
    } finally {
      progress.end();
      await cluster.close();
    }
  },
};

async function kindsOfFlags(
  flags: FlagValues,
  file: string | undefined,
): Promise<Pick<ReadOptions, "kinds" | "primaries" | "isRequired">> {
  const named = listOf(flags, "kind");
  if (file !== undefined) {
    if (named.length > 0) {
      throw new UsageError(
        "Cannot use --kind with an operator file: the operator names its kinds",
      );
    }
    const path = await findOperatorFile(file);
    const { operatorSource } = await import(
      "../testing/check/operator_source.ts"
    );
    const source = await operatorSource(path, {
      export: textOf(flags, "export"),
    });
    const { kindsOf } = await import("../testing/plan/plan_operator.ts");
    return { kinds: kindsOf(source), primaries: source.primaries };
  }
  if (textOf(flags, "selector") !== undefined) {
    throw new UsageError(
      "Cannot use --selector without an operator file: it selects the operator's own objects",
    );
  }
  if (named.length === 0) return { kinds: undefined };
  return {
    isRequired: true,
    kinds: named.map((name) => {
      const [kind = "", ...group] = name.split(".");
      return { kind, group: group.length === 0 ? undefined : group.join(".") };
    }),
  };
}

function limitOf(flags: FlagValues): number {
  const text = textOf(flags, "limit") ?? DEFAULT_LIMIT;
  const [, number, unit] = /^(\d{1,6})(KiB|MiB|GiB)$/.exec(text) ?? [];
  const limit = Number(number) * UNITS[unit as keyof typeof UNITS];
  if (limit > 0) return limit;
  throw new UsageError(
    `Cannot use --limit: it must be a size such as 500MiB: received "${text}"`,
  );
}
