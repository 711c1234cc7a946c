/**
 * Compares plans with what then happens on a real control plane. Each example is
 * upgraded from an old version on a cluster of its own: `coracle plan` says what
 * the new version would do, then it runs, and each object of the cluster is
 * compared with the plan. The log of the API server shows that `coracle plan` and
 * `coracle snapshot` only read.
 *
 *     npm run test:plan-cluster -- --objects 2000 webpage greeting
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  mkdir,
  mkdtemp,
  readFile,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";
import {
  Client,
  loadConfig,
  systemClock,
  untyped,
  type UntypedObject,
} from "@coracle/operator/client";
import { clientSettings, openConnection } from "@coracle/operator/internal";
import { Namespace } from "@coracle/operator/kinds";
import {
  findingsOf,
  type PlanReport,
} from "../../../dev/testing/plan/plan_report.ts";
import type { Snapshot } from "../../../dev/testing/plan/snapshot.ts";
import { PROJECT, runCommand } from "../../support/child_process.ts";
import { commandLine } from "../../support/command_line.ts";
import { Program } from "../../support/program.ts";
import { until } from "../../support/until.ts";
import { readThrough } from "../../testing/plan/cluster_copy.ts";
import { happenedBetween, planned } from "../../testing/plan/happened.ts";
import {
  type ControlPlane,
  freePorts,
  startControlPlane,
} from "../control_plane.ts";
import {
  NAMESPACE,
  PLAN_CASES,
  type PlanCase,
  REFUSED,
  URL_TEXT,
} from "./plan_cases.ts";
import { GALLERY_CASES } from "./gallery_cases.ts";
import { isAtWork, SAYS_WORK } from "./say_work.ts";
import { nodeStandIn, startOutside } from "./stand_ins.ts";

/** User that plans and takes snapshots. */
const PLANNER = "planner";
const CONTROLLERS = [
  "garbage-collector-controller",
  "namespace-controller",
  "deployment-controller",
  "replicaset-controller",
  "statefulset-controller",
  "serviceaccount-controller",
  "root-ca-certificate-publisher-controller",
  "resourcequota-controller",
];
const LIMIT_MS = 60 * 60_000;
/** Time in which an operator starts on a busy machine, in milliseconds. */
const START_MS = 300_000;
/** Virtual time of the plans. */
const PLANNED_TIME = "10m";
/** Time after which objects are read though something is written, in milliseconds. */
const MOVING_MS = 10_000;
/** Objects that are written at a time. */
const WRITES = 16;

const say = (text: string) => void process.stdout.write(`${text}\n`);
/** Shows on standard error what a comparison of minutes does. */
const progress = (text: string) =>
  void process.stderr.write(
    `  ${Math.round(performance.now() / 1_000)} s: ${text}\n`,
  );

/** Cluster of one upgrade. */
interface Cluster {
  readonly plane: ControlPlane;
  readonly client: Client;
  /** Folder of the files of the upgrade. */
  readonly folder: string;
  /** Time without a change after which an operator is done, in milliseconds. */
  readonly still: number;
  read(): Promise<Snapshot>;
}

/** Writes a kubeconfig whose user acts as the planner. */
async function plannerConfig({ plane, folder }: Cluster): Promise<string> {
  const config = JSON.parse(await readFile(plane.kubeconfig, "utf8"));
  for (const { user } of config.users) {
    Object.assign(user, { as: PLANNER, "as-groups": ["system:masters"] });
  }
  const path = join(folder, "planner.kubeconfig");
  await writeFile(path, JSON.stringify(config), { mode: 0o600 });
  return path;
}

/** Writes the old version of an operator; its imports are those of the new one. */
async function writeOld(
  { file, old }: PlanCase,
  folder: string,
): Promise<string> {
  const source = join(PROJECT, "examples", file);
  let text = await readFile(source, "utf8");
  for (const [now, before] of old) {
    if (text.split(now).length !== 2) {
      throw new Error(
        `Cannot make an old version of ${file}: it must have once: ${now}`,
      );
    }
    text = text.replace(now, () => before);
  }
  text = text.replaceAll(
    /from "(\.[^"]+)"/g,
    (_, path) => `from "${pathToFileURL(join(dirname(source), path))}"`,
  );
  const path = join(folder, "old", file);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  await symlink(join(PROJECT, "node_modules"), join(folder, "node_modules"));
  return path;
}

/** Kind of an object. */
function kindOf({ apiVersion = "", kind = "" }: UntypedObject) {
  const [version = "", group = ""] = apiVersion.split("/").toReversed();
  return untyped({ group, version, kind });
}

/** Creates an object, with its status. */
async function create(client: Client, object: UntypedObject): Promise<void> {
  const kind = kindOf(object);
  const { metadata } = await client.create(kind, object);
  const { status } = object;
  if (status !== undefined) {
    await client.status.patch(kind, metadata, { status });
  }
}

/** Writes a module whose operator is that of a file, with options of its own. */
async function writeWith(
  options: string,
  { file, path }: { readonly file: string; readonly path: string },
): Promise<string> {
  const text = [
    `import { operator as made } from "${pathToFileURL(file)}";`,
    `export const operator = (given = {}) => made({ ...${options}, ...given });`,
    "if (import.meta.main) await operator().run();",
  ];
  await writeFile(path, `${text.join("\n")}\n`);
  return path;
}

/** Does something for each item, a few at a time. */
async function forEach<T>(
  items: readonly T[],
  act: (item: T, index: number) => Promise<unknown>,
): Promise<void> {
  const rest = items.entries();
  await Promise.all(Array.from({ length: WRITES }, async () => {
    for (const [index, item] of rest) await act(item, index);
  }));
}

function revisions(snapshot: Snapshot): string {
  return Array.from(
    snapshot.objects(),
    ({ object: { metadata } }) => `${metadata.uid} ${metadata.resourceVersion}`,
  ).join("\n");
}

/** Number of the objects of a cluster. */
function sizeOf(snapshot: Snapshot): number {
  return [...snapshot.objects()].length;
}

/** Waits until nothing changes in a cluster, and an operator has no work. */
async function settle(
  { client, read, still }: Cluster,
  program?: Program,
): Promise<Snapshot> {
  let last = "";
  let since = performance.now();
  let seen: string | undefined;
  let settled:
    | { readonly revision: string | undefined; readonly snapshot: Snapshot }
    | undefined;
  let readAt = since;
  return await until("nothing changes in the cluster", async () => {
    if (program?.code !== undefined) throw new Error(program.describe());
    if (isAtWork(program?.output ?? "")) return false;
    // One number for all objects: to read them costs seconds of each server.
    const revision = await revisionOf(client);
    const isMoving = revision !== seen;
    seen = revision;
    if (isMoving && performance.now() - readAt < MOVING_MS) return false;
    if (revision !== settled?.revision) {
      const snapshot = await read();
      readAt = performance.now();
      settled = { revision, snapshot };
      const now = revisions(snapshot);
      if (now !== last) {
        last = now;
        since = readAt;
      }
    }
    return performance.now() - since > still && settled?.snapshot;
  }, { within: LIMIT_MS, every: 500 });
}

/** Revision of the store of a cluster, which each write of an object changes. */
async function revisionOf(client: Client): Promise<string | undefined> {
  const { metadata } = await client.list(Namespace, { limit: 1 });
  return metadata.resourceVersion;
}

/** Runs a version of an operator as a process until it is done, and what is then. */
async function run<T>(
  file: string,
  cluster: Cluster,
  { env, then }: {
    readonly env: Readonly<Record<string, string>>;
    readonly then: () => Promise<T>;
  },
): Promise<{ readonly after: Snapshot; readonly then: T }> {
  const program = new Program(["node", ...SAYS_WORK, file], {
    cwd: cluster.folder,
    env: { ...env, KUBECONFIG: cluster.plane.kubeconfig },
  });
  try {
    await program.says(/Operator started/, START_MS);
    const after = await settle(cluster, program);
    const found = { after, then: await then() };
    await program.end();
    return found;
  } finally {
    await program.kill();
    const log = `${file.replaceAll(/\W+/g, "_").slice(-40)}.log`;
    await writeFile(join(cluster.folder, log), program.output);
  }
}

/** Manager that sets fields of what the operator keeps. */
const RIVAL = "rival";
/** Manager of what the controllers of the cluster write. */
const CONTROLLER_MANAGER = "kube-controller-manager";
/** Times that fields are taken from the rival in a fight. */
const FIGHT_TIMES = 3;
/** Longest time in which an operator takes a field again, in milliseconds. */
const ANSWER_MS = 30_000;
/** Time between two looks at the fields of the rival: many gets, in milliseconds. */
const LOOK_MS = 2_000;

/** Sets the fields of the rival in an object; returns which are its own then. */
async function setByRival(
  client: Client,
  object: UntypedObject,
): Promise<string> {
  return ownsOfRival(
    await client.apply(kindOf(object), object, {
      fieldManager: RIVAL,
      force: true,
    }),
  );
}

function ownsOfRival({ metadata }: UntypedObject): string {
  const entries = metadata.managedFields?.filter(({ manager }) =>
    manager === RIVAL
  );
  return JSON.stringify(entries?.map(({ fieldsV1 }) => fieldsV1));
}

/**
 * Lets the rival set its fields back as often as it loses them. Returns the objects
 * whose fields the operator takes again and again.
 */
async function fight(
  { client, still }: Cluster,
  objects: readonly UntypedObject[],
): Promise<ReadonlySet<string>> {
  const owned = new Map<UntypedObject, string>();
  const taken = new Map<UntypedObject, number>();
  const isOpen = (object: UntypedObject) =>
    (taken.get(object) ?? 0) < FIGHT_TIMES;
  let last = performance.now();
  while (performance.now() - last < ANSWER_MS + still) {
    await forEach(objects.filter(isOpen), async (object) => {
      const before = owned.get(object);
      const now = before === undefined
        ? undefined
        : ownsOfRival(await client.get(kindOf(object), object.metadata));
      if (before !== undefined && now === before) return;
      last = performance.now();
      if (before !== undefined) {
        taken.set(object, (taken.get(object) ?? 0) + 1);
      }
      owned.set(object, await setByRival(client, object));
    });
    if (!objects.some(isOpen)) break;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  return new Set(objects.filter((object) => !isOpen(object)).map(objectText));
}

function objectText({ kind, metadata }: UntypedObject): string {
  const { namespace, name } = metadata;
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

/** Lets the cluster refuse changes of objects, by their names. */
async function refuse(
  client: Client,
  { refuses }: PlanCase,
): Promise<void> {
  if (refuses === undefined) return;
  const { group, resource, field } = refuses;
  const isDeletion = field === undefined;
  const optional = field?.split(".").map((name) => `?${name}`).join(".");
  const subject = isDeletion ? "oldObject" : "object";
  const apiVersion = "admissionregistration.k8s.io/v1";
  const metadata = { name: "plans.coracle.dev" };
  await create(client, {
    apiVersion,
    kind: "ValidatingAdmissionPolicy",
    metadata,
    spec: {
      matchConstraints: {
        resourceRules: [{
          apiGroups: [group],
          apiVersions: ["*"],
          operations: [isDeletion ? "DELETE" : "UPDATE"],
          resources: [resource],
        }],
      },
      validations: [{
        expression:
          `!(${subject}.metadata.?namespace.orValue("") + ${subject}.metadata.name).contains("${REFUSED}")${
            isDeletion ? "" : ` || object.${optional} == oldObject.${optional}`
          }`,
        message: `${field ?? resource} is frozen`,
      }],
    },
  });
  await create(client, {
    apiVersion,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata,
    spec: { policyName: metadata.name, validationActions: ["Deny"] },
  });
}

/** Verbs and resources of the planner in the log of an API server. */
async function requestsOf(log: string): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for (const line of (await readFile(log, "utf8")).split("\n")) {
    if (line === "") continue;
    const { impersonatedUser, verb, objectRef, requestURI } = JSON.parse(line);
    if (impersonatedUser?.username !== PLANNER) continue;
    const text = `${verb} ${objectRef?.resource ?? requestURI}`;
    found.set(text, (found.get(text) ?? 0) + 1);
  }
  return found;
}

type Changes = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Objects whose changes differ between two records. */
function differencesOf(
  planned: Changes,
  happened: Changes,
  unknown: Readonly<Record<string, string>> = {},
): readonly string[] {
  const known = (fields: Changes[string] = {}) => {
    const all = Object.entries(fields);
    const rest = all.filter(([path]) => !(path in unknown));
    // What changes only in fields that no plan can know may change or not.
    return all.length > 0 && rest.length === 0
      ? undefined
      : rest.sort(([a], [b]) => a < b ? -1 : 1);
  };
  return Object.keys({ ...planned, ...happened }).filter((key) =>
    !isDeepStrictEqual(
      planned[key] && known(planned[key]),
      happened[key] && known(happened[key]),
    )
  );
}

/** Upgrades an operator. Returns what was wrong. */
async function compare(
  name: string,
  one: PlanCase,
  { objects, cluster, url }: {
    readonly objects: number;
    readonly cluster: Cluster;
    readonly url: string;
  },
): Promise<readonly string[]> {
  const { client, folder, plane } = cluster;
  const problems: string[] = [];
  const env = Object.fromEntries(
    Object.entries(one.env ?? {}).map(([key, value]) => [
      key,
      value.replace("FOLDER", folder).replace("URL", url)
        .replace("EXAMPLES", join(PROJECT, "examples")),
    ]),
  );
  progress(`${name}: the control plane runs`);
  const empty = await settle(cluster);
  let old = await writeOld(one, folder);
  let file = join(PROJECT, "examples", one.file);
  if (one.options !== undefined) {
    const path = (name: string) => join(folder, `${name}.ts`);
    const [port] = await freePorts(1);
    const options = one.options.replaceAll("PORT", String(port));
    old = await writeWith(options, { file: old, path: path("older") });
    file = await writeWith(options, { file, path: path("newer") });
  }
  await client.create(Namespace, { metadata: { name: NAMESPACE } });
  for (const object of one.first ?? []) await create(client, object);
  // The old version installs its kinds, then gets its objects.
  const names = Array.from(
    { length: Math.max(5, Math.ceil(objects / one.objects)) },
    (_, index) => `p${index}${index % 5 === 2 ? REFUSED : ""}`,
  );
  if (one.setup !== undefined) {
    const { code, stderr } = await runCommand(["sh", "-ec", one.setup], {
      cwd: folder,
      env: { EXAMPLES: join(PROJECT, "examples"), COUNT: `${names.length}` },
    });
    assert.equal(code, 0, stderr);
  }
  const program = new Program(["node", ...SAYS_WORK, old], {
    cwd: folder,
    env: { ...env, KUBECONFIG: plane.kubeconfig },
  });
  try {
    await program.says(/Operator started/, START_MS);
    await forEach(names, async (name, index) => {
      for (const object of one.make(name, index)) {
        const text = JSON.stringify(object).replaceAll(URL_TEXT, url);
        await create(client, JSON.parse(text));
      }
    });
    progress("the objects are made");
    await settle(cluster, program);
    await program.end();
  } finally {
    await program.kill();
    await writeFile(join(folder, "old.log"), program.output);
  }
  progress("the old version is done");
  await refuse(client, one);
  const { rival } = one;
  const rivals = rival === undefined
    ? []
    : names.filter((_, index) => index % 5 === 1).map(rival);
  await forEach(rivals, (object) => setByRival(client, object));
  const before = await settle(cluster);
  const made = sizeOf(before) - sizeOf(empty);
  if (made < objects) problems.push(`The cluster has ${made} objects`);

  progress("the plan is made");
  const kubeconfig = await plannerConfig(cluster);
  const json = join(folder, "plan.json");
  const coracle = (...args: readonly string[]) =>
    runCommand(
      ["node", join(PROJECT, "dev/cli/bin.ts"), ...args]
        .concat("--kubeconfig", kubeconfig),
      { limit: LIMIT_MS, env },
    );
  const began = performance.now();
  const plan = await coracle(
    ...["plan", file, "--json", json, "--for", PLANNED_TIME],
    ...["--allow-fetch", "127.0.0.1"],
  );
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  await writeFile(join(folder, "plan.txt"), plan.stdout + plan.stderr);
  const report = JSON.parse(
    await readFile(json, "utf8").catch(() => {
      throw new Error(plan.stdout + plan.stderr);
    }),
  ) as PlanReport;
  progress("a snapshot is taken");
  const snapshot = await coracle(
    ...[
      "snapshot",
      file,
      "--output",
      join(folder, "cluster.snapshot"),
    ],
  );
  if (snapshot.code !== 0) problems.push(snapshot.stderr);

  progress("the new version runs");
  const { after, then: fought } = await run(file, cluster, {
    env,
    then: () => {
      progress("the new version is done, and the rival sets its fields back");
      return fight(cluster, rivals);
    },
  });
  const happened = happenedBetween(before, after);
  const wanted = planned(report);
  const different = differencesOf(wanted, happened, one.unknown);
  for (const key of different.slice(0, 10)) {
    const values = { planned: wanted[key], happened: happened[key] };
    problems.push(`${key} ${JSON.stringify(values)}`);
  }
  const fights = new Set(
    report.fights.filter(({ manager, answer }) =>
      manager === RIVAL && answer < ANSWER_MS
    ).map(({ object }) => object),
  );
  // The cluster's own controllers run here, and none of them is in a fight.
  const controllerFights = report.fights.filter(({ manager }) =>
    manager === CONTROLLER_MANAGER
  );
  const otherFights = [
    ...[...fights].filter((object) => !fought.has(object))
      .map((object) => `${object}: the plan has a fight that does not happen`),
    ...[...fought].filter((object) => !fights.has(object))
      .map((object) => `${object}: the plan lacks a fight`),
    ...controllerFights.map(({ object, fields }) =>
      `${object}: the plan has a fight for ${fields} with a controller`
    ),
  ];
  problems.push(...otherFights.slice(0, 10));
  const found = findingsOf(report);
  for (const finding of one.finds) {
    if (!found.has(finding)) problems.push(`The plan has no ${finding}`);
  }
  const requests = await requestsOf(plane.auditLog!);
  for (const [text, count] of requests) {
    if (/^(?:get|list|watch) |^create \w+reviews$/.test(text)) continue;
    problems.push(`The plan wrote: ${count} × ${text}`);
  }
  if (requests.size === 0) problems.push("No request of the plan in the log");
  const total = [...requests.values()].reduce((sum, one) => sum + one, 0);
  say(
    [
      name.padEnd(20),
      `${names.length} primaries, ${made} objects`,
      `${Object.keys(happened).length} changed`,
      `${different.length} differ from the plan`,
      `${fought.size} of ${rivals.length} fight on, ${otherFights.length} differ`,
      `found ${[...found].join(", ")}`,
      `plan ${seconds} s`,
      `${total} requests to read`,
    ].join("; "),
  );
  return problems;
}

async function withCluster<T>(
  { name, still }: { readonly name: string; readonly still: number },
  body: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  const plane = await startControlPlane({
    audits: true,
    controllers: CONTROLLERS,
  });
  if (plane?.auditLog === undefined) {
    throw new Error(
      "Cannot compare plans: it needs a control plane of its own, without KUBECONFIG",
    );
  }
  const folder = await mkdtemp(join(tmpdir(), `coracle-plan-${name}-`));
  const config = await loadConfig({ kubeconfig: plane.kubeconfig });
  const transport = openConnection(config, clientSettings(config, {}));
  const client = new Client({ transport }, { clock: systemClock });
  const node = nodeStandIn(client);
  try {
    await node.start();
    const read = () => readThrough(transport);
    return await body({ plane, client, folder, still, read });
  } finally {
    await node.stop();
    await client.close();
    await plane.stop();
    if (process.env["KEEP"] === undefined) {
      await rm(folder, { recursive: true });
    } else say(`Kept ${folder}`);
  }
}

const { integer, positionals } = commandLine("compare plans", {
  objects: { type: "string", default: "2000" },
  /** Seconds without a change after which an operator is done. */
  still: { type: "string", default: "6" },
}, "NAME…");
const cases = Object.entries({ ...PLAN_CASES, ...GALLERY_CASES });
const known = cases.map(([name]) => name);
const unknown = positionals.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  throw new Error(
    `Cannot compare plans: an example is one of ${known.join(", ")}: received ${
      unknown.join(", ")
    }`,
  );
}
const outside = await startOutside();
for (const [name, one] of cases) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  const options = { objects: integer("objects", 1), url: outside.url };
  const problems = await withCluster(
    { name, still: 1_000 * integer("still", 1) },
    (cluster) => compare(name, one, { ...options, cluster }),
  ).catch((error) => [String((error as Error).stack)]);
  for (const problem of problems) say(`  ${problem}`);
  if (problems.length > 0) process.exitCode = 1;
}
outside.close();
