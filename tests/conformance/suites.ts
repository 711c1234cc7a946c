import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Release } from "../cluster/go_programs.ts";
import {
  buildPrograms,
  isExecutable,
  moduleFolder,
  programsFolder,
} from "../cluster/go_programs.ts";
import { PROJECT, runCommand } from "../support/child_process.ts";

/** A spec by its full text; those of controller-runtime after their package. */
export interface Spec {
  readonly name: string;
}

/** How a spec ended. */
export interface Outcome {
  readonly name: string;
  readonly state: "passed" | "failed" | "skipped" | "timedout";
  /** First line of the failure. */
  readonly failure?: string | undefined;
}

/** A suite of specs that others wrote. */
export interface Suite {
  readonly name: "e2e" | "controller-runtime";
  /** Controllers that run, as in the flag of kube-controller-manager. */
  readonly controllers: readonly string[];
  /** Whether each unit has a new server. */
  readonly isolated: boolean;
  /** Builds its programs. @returns False without a Go toolchain. */
  build(): Promise<boolean>;
  /** All specs that may pass without nodes. */
  candidates(): Promise<readonly Spec[]>;
  /** Groups specs that run in one process. */
  units(specs: readonly Spec[]): readonly (readonly Spec[])[];
  /** Runs the specs of a unit against a server. */
  run(
    specs: readonly Spec[],
    server: {
      readonly kubeconfig: string;
      readonly folder: string;
      /** Limit of the process in milliseconds. */
      readonly limit: number;
    },
  ): Promise<readonly Outcome[]>;
}

/** Milliseconds that a process may take to end after its limit. */
const GRACE_MS = 60_000;

/** What Ginkgo reports of a spec. */
interface SpecReport {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeText: string;
  readonly LeafNodeType: string;
  readonly LeafNodeLocation: {
    readonly FileName: string;
    readonly LineNumber: number;
  };
  readonly State: string;
  /** Nanoseconds. */
  readonly RunTime: number;
  readonly Failure?: { readonly Message: string } | undefined;
}

async function readReport(file: string): Promise<readonly SpecReport[]> {
  const text = await readFile(file, "utf8").catch(() => "[]");
  await rm(file, { force: true });
  const suites = JSON.parse(text) as {
    readonly SpecReports: readonly SpecReport[] | null;
  }[];
  return suites.flatMap(({ SpecReports }) => SpecReports ?? []);
}

function textOf({ ContainerHierarchyTexts, LeafNodeText }: SpecReport): string {
  return [...ContainerHierarchyTexts ?? [], LeafNodeText].join(" ");
}

function outcomeOf(name: string, report: SpecReport): Outcome {
  const { State, Failure } = report;
  if (State === "passed" || State === "skipped") return { name, state: State };
  return {
    name,
    state: State === "timedout" || State === "interrupted"
      ? "timedout"
      : "failed",
    failure: firstLine(Failure?.Message) ?? State,
  };
}

function firstLine(text = ""): string | undefined {
  return text.split("\n").map((line) => line.trim()).find((line) => line)
    ?.slice(0, 300);
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

const GINKGO = ["--ginkgo.no-color", "--ginkgo.succinct"] as const;

/** Kubernetes' end-to-end suite, as far as it needs no nodes. */
export function endToEnd(release: Release): Suite {
  const programs = programsFolder(release);
  const program = join(programs, "e2e");
  const flags = [
    `--kubectl-path=${join(programs, "kubectl")}`,
    "--provider=local",
    "--num-nodes=0",
    "--allowed-not-ready-nodes=-1",
    "--dump-logs-on-failure=false",
    "--disable-log-dump",
    ...GINKGO,
  ];
  return {
    name: "e2e",
    controllers: ["*"],
    isolated: false,
    build: () => buildPrograms(release, ["e2e", "kubectl"]),
    async candidates() {
      const report = join(programs, "specs.json");
      const { code, stderr } = await runCommand([
        program,
        ...flags,
        "--kubeconfig=/dev/null",
        "--ginkgo.dry-run",
        `--ginkgo.json-report=${report}`,
      ]);
      if (code !== 0) throw new Error(`Cannot list specs: ${stderr}`);
      const source = await moduleFolder(`k8s.io/kubernetes@${release.version}`);
      const specs: Spec[] = [];
      for (const one of await readReport(report)) {
        if (one.LeafNodeType !== "It" || await needsNodes(one, source)) {
          continue;
        }
        const name = textOf(one);
        specs.push({ name });
      }
      return specs;
    },
    // A process for each: a limit then cuts short no other spec.
    units: (specs) => specs.map((spec) => [spec]),
    async run([spec], { kubeconfig, folder, limit }) {
      if (spec === undefined) return [];
      const { name } = spec;
      const report = join(folder, "e2e.json");
      const { code, stdout, stderr } = await runCommand([
        program,
        ...flags,
        `--kubeconfig=${kubeconfig}`,
        `--ginkgo.focus=${escaped(name)}$`,
        `--ginkgo.json-report=${report}`,
        `--ginkgo.timeout=${limit}ms`,
        "--ginkgo.grace-period=5s",
      ], { limit: limit + GRACE_MS, cwd: folder });
      const one = (await readReport(report)).find((one) =>
        textOf(one) === name
      );
      if (one) return [outcomeOf(name, one)];
      const failure = firstLine(stderr) ?? firstLine(stdout) ?? "no report";
      return [{ name, state: code === 124 ? "timedout" : "failed", failure }];
    },
  };
}

/** Files whose specs all run pods, or test other things than the API. */
const OTHER_FILES =
  /\/e2e\/(storage\/(testsuites|drivers|csimock|external|vsphere|utils)|network\/(netpol|scale|dual_stack|dns|proxy|networking|kube_proxy|conntrack|hostport|firewall|loadbalancer)|common\/(node|storage|network)\/(?!configmap|secrets|podtemplates|pods\.go|lease|runtimeclass|pod_admission|pod_hostname)|scheduling\/(?!limit_range|preemption)|instrumentation\/(?!events|core_events)|node\/(?!events|kubelet_authz|runtimeclass|node_lifecycle|pods\.go|ssh))/;
/** Specs of other files that run pods by helpers, or reach nodes. */
const OTHER_SPECS =
  /AdmissionWebhook|be consumable|SidecarContainers|PersistentVolumes(-local|-expansion| NFS)|Subpath|Volume metrics|PVC? Protection|Flexvolumes|EmptyDir wrapper|CronJob should (?!support CronJob API|not emit|delete|replace)|Daemon set .*(run and stop|retry|surge|update pod)|Port forwarding|Simple pod|all pod logs|Guestbook|Update Demo|Kubectl copy|StatefulSet |Traffic Distribution|(TTLAfterFinished j|\] J)ob should|iterative rollouts|eployment (should delete old|should support (proportional|rollover)|deployment reaping)|(Recreate|RollingUpdate)Deployment|basic image on each|adopt matching|release no longer|orphaning and adoption|functioning NodePort|up and down services|ports exposed by restartable|service-proxy-name|work after the service|named targetPorts|external IP is not assigned|different Service CIDRs|latency should not|SSH|kubelet API/;
/** Source of specs that wait for pods or nodes. */
const RUNS_PODS =
  /CreateSync|WaitFor\w*(Pod|Replica|Ready|Running|Complete|Endpoint|Daemon|Deployment|StatefulSet)|WaitTimeoutFor\w*Pod|e2enode\.|ExecCommand|ExecShell|RunHostCmd|e2eoutput\.|GetPodLogs|TestContainerOutput|PodClientNS|SkipUnlessProvider|SkipUnlessNodeCount|SkipUnlessSSH|RunRC|deployWebhook|deployCustomResourceWebhook|SetUpSampleAPIServer|EnsureJob|createPausePod|"run", /i;

/** Whether a spec says in its labels or source that it needs nodes. */
async function needsNodes(
  report: SpecReport,
  source: string,
): Promise<boolean> {
  const { FileName, LineNumber } = report.LeafNodeLocation;
  const name = textOf(report);
  if (OTHER_FILES.test(FileName) || OTHER_SPECS.test(name)) return true;
  if (/\[(Slow|Disruptive|Feature:|LinuxOnly|Alpha)/.test(name)) return true;
  const inModule = /\/(test\/.*)$/.exec(FileName)?.[1] ?? "";
  const text = await readFile(join(source, inModule), "utf8").catch(() => "");
  const lines = text.split("\n").slice(LineNumber - 1);
  const indent = /^\s*/.exec(lines[0] ?? "")?.[0] ?? "";
  const end = lines.findIndex((line, index) =>
    index > 0 && line.startsWith(`${indent}})`)
  );
  return RUNS_PODS.test(lines.slice(0, end + 1).join("\n"));
}

/** Packages of controller-runtime whose suites need an API server. */
const PACKAGES: readonly string[] = [
  "builder",
  "cache",
  "client",
  "client/apiutil",
  "cluster",
  "controller",
  "controller/controllerutil",
  "envtest",
  "handler",
  "internal/controller",
  "internal/recorder",
  "manager",
  "manager/internal/integration",
  "metrics/filters",
  "reconcile",
  "source",
  "webhook",
];

/** Package of a spec of controller-runtime. */
function unitOf({ name }: Spec): string {
  return name.split(": ")[0] ?? "";
}

/** The suites of controller-runtime's packages. */
export function controllerRuntime(version: string): Suite {
  const binaries = join(PROJECT, ".cache", `controller-runtime-${version}`);
  const module = `sigs.k8s.io/controller-runtime@${version}`;
  const fileOf = (unit: string) =>
    join(binaries, `${unit.replaceAll("/", "_")}.test`);
  const run: Suite["run"] = async ([first], server) => {
    const { kubeconfig, folder, limit } = server;
    if (first === undefined) return [];
    const unit = unitOf(first);
    const report = join(folder, "specs.json");
    const { stdout, stderr } = await runCommand([
      fileOf(unit),
      ...GINKGO,
      `--ginkgo.json-report=${report}`,
      `--ginkgo.timeout=${limit}ms`,
      "--test.v",
    ], {
      cwd: join(await moduleFolder(module), "pkg", unit),
      limit: limit + GRACE_MS,
      env: { KUBECONFIG: kubeconfig, USE_EXISTING_CLUSTER: "true" },
    });
    const outcomes = (await readReport(report))
      .filter((one) => one.LeafNodeType === "It" && one.State !== "pending")
      .map((one) => outcomeOf(`${unit}: ${textOf(one)}`, one));
    const failure = firstLine(stderr) ?? "no report";
    for (
      const [, state, name] of stdout.matchAll(
        /^\s*--- (PASS|FAIL): (\S+)/gm,
      )
    ) {
      // The function that runs Ginkgo is no spec.
      if (outcomes.length > 0 && !name?.includes("/")) continue;
      const passed = state === "PASS";
      outcomes.push({
        name: `${unit}: ${name}`,
        state: passed ? "passed" : "failed",
        failure: passed ? undefined : failure,
      });
    }
    return outcomes;
  };
  return {
    name: "controller-runtime",
    // As envtest, for which the suites are written.
    controllers: [],
    isolated: true,
    async build() {
      await mkdir(binaries, { recursive: true });
      for (const unit of PACKAGES) {
        if (await isExecutable(fileOf(unit))) continue;
        if ((await runCommand(["go", "version"])).code !== 0) return false;
        const { code, stderr } = await runCommand([
          "nice",
          "go",
          "test",
          "-c",
          "-trimpath",
          `-o=${fileOf(unit)}`,
          `./pkg/${unit}`,
        ], { cwd: await moduleFolder(module), limit: 60 * 60_000 });
        if (code !== 0) throw new Error(`Cannot build ${unit}: ${stderr}`);
      }
      return true;
    },
    candidates: () =>
      Promise.resolve(PACKAGES.map((unit) => ({ name: `${unit}: ` }))),
    units: (specs) => [...Map.groupBy(specs, unitOf).values()],
    run,
  };
}
