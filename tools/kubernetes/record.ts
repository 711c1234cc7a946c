/**
 * Records what the embedded server reproduces from a real control plane:
 * `node tools/kubernetes/record.ts [--kubernetes 1.37]` starts that of
 * `tests/cluster`, writes the files of `data/`, and then what is generated from
 * them. Descriptions are not kept. With `--earlier` (`--kubernetes 1.36
 * --earlier`), it writes only how the release differs from these files, into
 * `earlier.json`.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { startControlPlane } from "../../tests/cluster/control_plane.ts";
import {
  DEFAULT_KUBERNETES,
  moduleFolder,
  releaseOf,
} from "../../tests/cluster/go_programs.ts";
import { runCommand } from "../../tests/support/child_process.ts";
import { WireClient } from "../../tests/transcripts/http_client.ts";
import { realTarget } from "../../tests/transcripts/real_target.ts";
import { earlierData, type RecordedData } from "./earlier_data.ts";
import { readGoFields } from "./go_presence.ts";
import {
  type DataColumn,
  type DiscoveredGroup,
  type KubernetesData,
  readKubernetesData,
  readMetaTypes,
} from "./kubernetes_data.ts";
import { readFieldNumbers } from "./protobuf_data.ts";
import { commandLine } from "../../tests/support/command_line.ts";

type Definitions = KubernetesData["definitions"];

/** Reads a document of the server. */
type Get = <T>(path: string, accept?: string) => Promise<T>;

const DISCOVERY =
  "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1";
/** Stable versions, which are all that the embedded server has. */
const STABLE_REGEXP = /^v\d+$/;

async function readDiscovery(get: Get): Promise<readonly DiscoveredGroup[]> {
  const groups: DiscoveredGroup[] = [];
  for (const path of ["/api", "/apis"]) {
    const { items } = await get<{ items: readonly DiscoveredGroup[] }>(
      path,
      DISCOVERY,
    );
    groups.push(...items);
  }
  return groups.flatMap(({ metadata, versions }) => {
    const stable = versions.filter(({ version }) => STABLE_REGEXP.test(version))
      .map(({ version, resources }) => ({ version, resources }));
    return stable.length === 0 ? [] : [{ metadata, versions: stable }];
  });
}

/** The path of each stable version of a group, such as `apis/apps/v1`. */
function versionPaths(groups: readonly DiscoveredGroup[]): readonly string[] {
  return groups.flatMap(({ metadata: { name }, versions }) =>
    versions.map(({ version }) =>
      name ? `apis/${name}/${version}` : `api/${version}`
    )
  );
}

async function readDefinitions(
  get: Get,
  paths: readonly string[],
): Promise<Definitions> {
  const definitions: Record<string, unknown> = {};
  for (const path of paths) {
    const { components } = await get<{ components: { schemas: object } }>(
      `/openapi/v3/${path}`,
    );
    Object.assign(definitions, withoutDescriptions(components.schemas));
  }
  return sorted(definitions) as Definitions;
}

/** A schema without descriptions; a property of that name stays. */
function withoutDescriptions(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDescriptions);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, member]) =>
        key !== "description" || typeof member !== "string"
      )
      .map(([key, member]) => [key, withoutDescriptions(member)]),
  );
}

async function readColumns(
  get: Get,
  groups: readonly DiscoveredGroup[],
): Promise<Record<string, readonly DataColumn[]>> {
  const columns: Record<string, readonly DataColumn[]> = {};
  for (const { metadata: { name }, versions } of groups) {
    for (const { version, resources } of versions) {
      for (const { resource, verbs } of resources) {
        if (!verbs.includes("list")) continue;
        const path = name ? `${name}/${version}` : version;
        const { columnDefinitions } = await get<
          { columnDefinitions: readonly DataColumn[] }
        >(`/${name ? "apis" : "api"}/${path}/${resource}`, TABLE);
        columns[`${path}/${resource}`] = columnDefinitions.map((
          { name, type, format, priority },
        ) => ({ name, type, format, priority }));
      }
    }
  }
  return sorted(columns);
}

function sorted<T>(record: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(
    Object.entries(record).toSorted(([one], [two]) => one < two ? -1 : 1),
  );
}

/** The module of a definition and the folder of its package there. */
function packageOf(prefix: string): readonly [module: string, folder: string] {
  const [, module = "", path = ""] =
    /^io\.k8s\.(api|apimachinery|apiextensions-apiserver|kube-aggregator)\.(.*)$/
      .exec(prefix) ?? [];
  return [`k8s.io/${module}`, path.replaceAll(".", "/")];
}

async function main(): Promise<number> {
  const { values } = commandLine("record", {
    kubernetes: { type: "string", default: DEFAULT_KUBERNETES },
    earlier: { type: "boolean", default: false },
  });
  const plane = await startControlPlane(values);
  if (plane === undefined) {
    process.stderr.write(
      "Cannot record: no control plane and no Go toolchain to build one\n",
    );
    return 2;
  }
  process.stdout.write(`Records from ${plane.origin}\n`);
  try {
    process.env["KUBECONFIG"] = plane.kubeconfig;
    const client = new WireClient(await realTarget());
    const get = async <T>(path: string, accept = "application/json") => {
      const headers = { accept };
      const { status, body } = await client.send({
        method: "GET",
        path,
        headers,
      });
      if (status !== 200) throw new Error(`Cannot read ${path}: ${status}`);
      return body as T;
    };
    const groups = await readDiscovery(get);
    const definitions = await readDefinitions(get, versionPaths(groups));
    const columns = await readColumns(get, groups);
    client.close();
    const found = {
      groups,
      definitions,
      columns,
      ...await readModules(values.kubernetes, definitions),
    };
    if (values.earlier) {
      write("earlier", earlierData(readKubernetesData(), found));
    } else writeAll(found);
  } finally {
    await plane.stop();
  }
  const generate = ["node", join(FOLDER, "generate.ts")];
  const { code, stderr } = await runCommand(generate);
  if (code !== 0) throw new Error(`Cannot generate: ${stderr}`);
  await runCommand(["deno", "fmt", "-q", DATA]);
  return 0;
}

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
const DATA = join(FOLDER, "data");

function writeAll(found: RecordedData): void {
  write("discovery", found.groups);
  write("openapi", found.definitions);
  write("table_columns", found.columns);
  write("go_types", found.goFields);
  write("protobuf", found.fieldNumbers);
}

/** Reads what is only in the Go modules of the release. */
async function readModules(
  kubernetes: string,
  definitions: Definitions,
): Promise<Pick<RecordedData, "goFields" | "fieldNumbers">> {
  const version = releaseOf(kubernetes).version.replace("v1", "v0");
  const modules = new Map<string, string>();
  const folders: Record<string, string> = {};
  for (const name of Object.keys(definitions)) {
    const prefix = name.slice(0, name.lastIndexOf("."));
    const [module, folder] = packageOf(prefix);
    let root = modules.get(module);
    if (root === undefined) {
      root = await moduleFolder(`${module}@${version}`);
      modules.set(module, root);
    }
    folders[prefix] = join(root, folder);
  }
  const roots = [
    "api",
    "apimachinery",
    "apiextensions-apiserver",
    "kube-aggregator",
  ]
    .map((name) => modules.get(`k8s.io/${name}`) ?? "");
  return {
    goFields: sorted(readGoFields(folders, definitions)),
    fieldNumbers: readFieldNumbers(roots, {
      ...readMetaTypes(),
      ...definitions,
    }),
  };
}

function write(name: string, value: unknown): void {
  writeFileSync(
    join(DATA, `${name}.json`),
    JSON.stringify(value),
  );
}

process.exitCode = await main();
