/**
 * Compares the definitions of ten public projects with those of an earlier release,
 * as `coracle crd --compare` does, and prints each incompatible change.
 *
 * `npm run test:crd-histories`; the definitions are those in the Go modules of the
 * projects, which `go` loads into `.cache/crd-histories` once. `--project REGEX`
 * takes some of them, and `--write FOLDER` writes the definitions of both releases
 * there, `MODULE/NAME.earlier.yaml` and `MODULE/NAME.later.yaml`, to try another tool with.
 *
 * @module
 */
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { parseAllDocuments, stringify } from "yaml";
import type { CrdManifest } from "@coracle/operator/crd";
import { incompatibleChanges } from "../../dev/cli/schema_changes.ts";
import { PROJECT, runCommand } from "../support/child_process.ts";
import { commandLine } from "../support/command_line.ts";

/** A project: its Go module, two releases, and the folder of its definitions. */
interface History {
  readonly module: string;
  readonly releases: readonly [earlier: string, later: string];
  readonly folder: string;
}

const HISTORIES: readonly History[] = [
  {
    module: "sigs.k8s.io/gateway-api",
    releases: ["v1.4.1", "v1.6.3"],
    folder: "config/crd/standard",
  },
  {
    module: "github.com/argoproj/argo-cd/v3",
    releases: ["v3.4.0", "v3.5.7"],
    folder: "manifests/crds",
  },
  {
    module: "github.com/fluxcd/source-controller",
    releases: ["v1.8.5", "v1.9.6"],
    folder: "config/crd/bases",
  },
  {
    module: "sigs.k8s.io/cluster-api",
    releases: ["v1.8.4", "v1.13.6"],
    folder: "config/crd/bases",
  },
  {
    module: "github.com/external-secrets/external-secrets",
    releases: ["v0.16.2", "v1.3.2"],
    folder: "config/crds/bases",
  },
  {
    module: "sigs.k8s.io/karpenter",
    releases: ["v1.0.8", "v1.12.1"],
    folder: "pkg/apis/crds",
  },
  {
    module: "github.com/kedacore/keda/v2",
    releases: ["v2.15.1", "v2.21.0"],
    folder: "config/crd/bases",
  },
  {
    module: "github.com/vmware-tanzu/velero",
    releases: ["v1.14.0", "v1.18.3"],
    folder: "config/crd/v1/bases",
  },
  {
    module: "istio.io/api",
    releases: ["v1.24.2", "v1.32.0"],
    folder: "kubernetes",
  },
  {
    module: "github.com/cert-manager/cert-manager",
    releases: ["v1.21.0", "v1.21.2"],
    folder: "deploy/crds",
  },
];

/** Folder of the modules, which are not part of the repository. */
const CACHE = join(PROJECT, ".cache", "crd-histories");
/** Time limit of a download, in milliseconds. */
const DOWNLOAD_LIMIT_MS = 10 * 60_000;

const { values } = commandLine("compare releases of definitions", {
  project: { type: "string", default: "" },
  write: { type: "string" },
});
const print = (line: string) => void process.stdout.write(`${line}\n`);
const chosen = new RegExp(values.project);

await mkdir(CACHE, { recursive: true });
for (const history of HISTORIES) {
  if (!chosen.test(history.module)) continue;
  const [earlier, later] = await Promise.all(
    history.releases.map((release) => definitionsAt(history, release)),
  ).catch((error: Error) => {
    print(`\n${error.message}`);
    process.exitCode = 1;
    return [];
  });
  if (earlier === undefined || later === undefined) continue;
  const both = [...earlier.keys()].filter((name) => later.has(name));
  print(
    `\n${history.module} ${
      history.releases.join(" → ")
    }: ${both.length} definitions`,
  );
  for (const name of earlier.keys()) {
    if (!later.has(name)) print(`  ${name}: the definition was removed`);
  }
  for (const name of both) {
    const before = earlier.get(name) as CrdManifest;
    const now = later.get(name) as CrdManifest;
    const changes = incompatibleChanges(now, before);
    for (const change of changes) print(`  ${change}`);
    if (values.write === undefined) continue;
    const folder = join(values.write, history.module.replaceAll("/", "-"));
    await mkdir(folder, { recursive: true });
    const file = (part: string) => join(folder, `${name}.${part}.yaml`);
    await writeFile(file("earlier"), stringify(before));
    await writeFile(file("later"), stringify(now));
  }
}

type Definitions = ReadonlyMap<string, CrdManifest>;

/** Definitions of a release, by their names. */
async function definitionsAt(
  { module, folder }: History,
  release: string,
): Promise<Definitions> {
  const { code, stdout, stderr } = await runCommand(
    ["go", "mod", "download", "-json", `${module}@${release}`],
    {
      cwd: CACHE,
      env: { GOMODCACHE: join(CACHE, "modules"), GOFLAGS: "-modcacherw" },
      limit: DOWNLOAD_LIMIT_MS,
    },
  );
  if (code !== 0) {
    throw new Error(`Cannot load ${module} ${release}: ${stderr || stdout}`);
  }
  const place = join(JSON.parse(stdout).Dir, folder);
  const found = new Map<string, CrdManifest>();
  for (const file of (await readdir(place)).toSorted()) {
    if (!/\.ya?ml$/.test(file)) continue;
    const text = await readFile(join(place, file), "utf8");
    for (const document of parseAllDocuments(text)) {
      const value = document.toJS() as CrdManifest | null;
      if (value?.kind === "CustomResourceDefinition") {
        found.set(value.metadata.name, value);
      }
    }
  }
  if (found.size === 0) throw new Error(`Cannot find definitions in ${place}`);
  return found;
}
