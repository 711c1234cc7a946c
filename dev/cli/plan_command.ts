import { milliseconds } from "@coracle/operator/client";
import type { Duration } from "@coracle/operator/client";
import {
  type Finding,
  FINDINGS,
  findingsOf,
  type PlanReport,
} from "../testing/plan/plan_report.ts";
import type { Snapshot } from "../testing/plan/snapshot.ts";
import {
  type Command,
  type CommandTerminal,
  type FlagValues,
  suggestion,
  UsageError,
} from "./command.ts";
import { EXPORT_FLAG, findOperatorFile } from "./operator_module.ts";
import {
  CLUSTER_FLAGS,
  namespacesOf,
  openCluster,
  progressLine,
} from "./plan_cluster.ts";
import { isEmptyPlan, planJson, planMarkdown, planText } from "./plan_text.ts";
import { planPage } from "./window/plan_page.ts";
import { listOf, requireOutput, textOf, writeOutput } from "./serving.ts";

const DEFAULT_DURATION = "1h";

export const planCommand: Command = {
  name: "plan",
  operands: "FILE",
  count: [1, 1],
  summary: "show what an operator would do to a cluster, without doing it",
  description:
    "Reads from a cluster what the operator of a file needs, runs the operator on a\n" +
    "copy in memory and on a virtual clock until it is quiet, and shows what it did\n" +
    "there: objects that would be created, changed and deleted, by whom, and what\n" +
    "would never settle or fail. Nothing is ever written to the cluster. Exit code 0:\n" +
    "nothing to do, 2: changes, 1: the plan failed, runs of the operator fail, or\n" +
    "--fail-on has found something. What --fail-on knows:\n" +
    Object.entries(FINDINGS).map(([name, text]) =>
      `  ${name.padEnd(9)} ${text}`
    ).join("\n"),
  flags: {
    ...CLUSTER_FLAGS,
    "snapshot FILE": "file of coracle snapshot to read instead of a cluster",
    "from OLD_FILE": "older version: show what differs from what it would do",
    "for TIME": `longest time to simulate (default ${DEFAULT_DURATION})`,
    "allow-fetch HOST…": "hosts outside of the cluster that may be reached",
    "fail-on KIND…": "findings that make it fail (default failure)",
    "show FILTER…": "details: all, a kind, an action, a namespace or a name",
    "json FILE": "write the plan as JSON; - for standard output",
    "markdown FILE": "write the plan as Markdown; - for standard output",
    "html FILE":
      "write the plan as a page for a browser; - for standard output",
    ...EXPORT_FLAG,
  },
  usageCode: 1,
  async run({ flags, operands: [file = ""], terminal }) {
    const path = await findOperatorFile(file);
    const from = textOf(flags, "from");
    const old = from === undefined ? undefined : await findOperatorFile(from);
    if (old === path) {
      throw new UsageError(
        `Cannot use --from: it must be an older version of ${file}: received the same file`,
      );
    }
    const failsOn = findingsOfFlag(flags);
    for (const name of ["json", "markdown", "html"]) {
      await requireOutput(textOf(flags, name) ?? "-");
    }
    const duration = durationOf(flags);
    const hosts = hostsOf(flags);
    const progress = progressLine(terminal);
    const source = await openSource(flags, progress);
    const { planOperator } = await import("../testing/plan/plan_operator.ts");
    let report: PlanReport;
    try {
      report = await planOperator({
        file: path,
        from: old,
        export: textOf(flags, "export"),
        duration,
        hosts,
        read: source.read,
        onProgress: progress.show,
      });
    } finally {
      progress.end();
      await source.close();
    }
    await write(report, file, flags, terminal);
    const found = findingsOf(report);
    const failures = failsOn.filter((finding) => found.has(finding));
    if (failures.length > 0) {
      terminal.say(
        `The plan fails: ${
          failures.map((finding) => FINDINGS[finding]).join("; ")
        }.\n`,
      );
      return 1;
    }
    return isEmptyPlan(report) ? 0 : 2;
  },
};

async function write(
  report: PlanReport,
  file: string,
  flags: FlagValues,
  terminal: CommandTerminal,
): Promise<void> {
  const view = { show: listOf(flags, "show") };
  const texts = {
    json: () => `${planJson(report, 2)}\n`,
    markdown: () => planMarkdown(report, { ...view, operator: file }),
    html: () => planPage(report),
  };
  let isPrinted = false;
  for (const [name, text] of Object.entries(texts)) {
    const target = textOf(flags, name);
    if (target === "-") {
      terminal.out(text());
      isPrinted = true;
    } else if (target !== undefined) await writeOutput(target, text());
  }
  if (!isPrinted) terminal.out(planText(report, view));
}

/** Name or address, perhaps with a port. */
const HOST = /^(?:\[[\da-f:.]+\]|[a-z\d._-]+)(?::\d{1,5})?$/;

/** Hosts that may be reached, in the form of URLs. */
function hostsOf(flags: FlagValues): readonly string[] {
  return listOf(flags, "allow-fetch").map((text) => {
    const host = text.toLowerCase();
    if (HOST.test(host)) return host;
    throw new UsageError(
      `Cannot read --allow-fetch: it must name a host, such as api.example.com or 127.0.0.1:8080: received ${text}`,
    );
  });
}

/** Where a plan gets its objects from. */
interface Source {
  readonly read: Parameters<
    typeof import("../testing/plan/plan_operator.ts").planOperator
  >[0]["read"];
  close(): Promise<void>;
}

async function openSource(
  flags: FlagValues,
  progress: { show(text: string): void },
): Promise<Source> {
  const file = textOf(flags, "snapshot");
  if (file !== undefined) {
    const given = Object.keys(CLUSTER_FLAGS).map((flag) => flag.split(" ")[0]!)
      .find((name) => flags[name] !== undefined);
    if (given !== undefined) {
      throw new UsageError(
        `Cannot use --${given} with --snapshot: a snapshot is read as it is`,
      );
    }
    const { readSnapshot } = await import("../testing/plan/snapshot_file.ts");
    let snapshot: Promise<Snapshot> | undefined;
    return {
      read: () => snapshot ??= readSnapshot(file),
      close: () => Promise.resolve(),
    };
  }
  const [{ readCluster }, { Snapshot }] = await Promise.all([
    import("../testing/plan/read_cluster.ts"),
    import("../testing/plan/snapshot.ts"),
  ]);
  const namespaces = namespacesOf(flags);
  const cluster = await openCluster(flags);
  return {
    async read(kinds, { primaries }) {
      const snapshot = new Snapshot();
      return snapshot.end(
        await readCluster(cluster, snapshot, {
          kinds,
          primaries,
          namespaces,
          selector: textOf(flags, "selector"),
          hidesSecrets: false,
          now: Date.now,
          onProgress: (resource, done, total) =>
            progress.show(`${resource}: ${done} of ${total} read`),
        }),
      );
    },
    close: () => cluster.close(),
  };
}

function durationOf(flags: FlagValues): number {
  const text = textOf(flags, "for") ?? DEFAULT_DURATION;
  try {
    const duration = milliseconds(text as Duration, "for");
    if (duration > 0) return duration;
  } catch {
    // Reported below.
  }
  throw new UsageError(
    `Cannot use --for: it must be a time above zero, such as 10m or 1h: received "${text}"`,
  );
}

function findingsOfFlag(flags: FlagValues): readonly Finding[] {
  const names = listOf(flags, "fail-on");
  if (names.length === 0) return ["failure"];
  const known = Object.keys(FINDINGS);
  for (const name of names) {
    if (known.includes(name)) continue;
    throw new UsageError(
      `Cannot use --fail-on: it must be of ${
        known.join(", ")
      }: received "${name}"${suggestion(name, known)}`,
    );
  }
  return names as readonly Finding[];
}
