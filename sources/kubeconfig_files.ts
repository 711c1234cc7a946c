import { readdir } from "node:fs/promises";
import { join, parse } from "node:path";
import type { Duration } from "../core/api/duration.ts";
import {
  checkOption,
  checkOptions,
  type OptionTable,
  resolveOptions,
} from "../core/api/options.ts";
import { outsideWork, sleep } from "../core/clock.ts";
import { fileFault, readLimited } from "../core/config/limited_file.ts";
import { memberConfig } from "../core/config/member_config.ts";
import {
  type Cluster,
  type ClusterSet,
  type ClusterSetContext,
  isClusterName,
} from "../core/controller/clusters/cluster_set.ts";

/** Maximum size of a kubeconfig, in bytes. */
const MAX_BYTES = 1 << 20;

/** Extensions that are no part of the name of a cluster. */
const EXTENSIONS: readonly string[] = [
  ".conf",
  ".json",
  ".kubeconfig",
  ".yaml",
  ".yml",
];

type KubeconfigFilesOptions = NonNullable<
  Parameters<typeof kubeconfigFiles>[1]
>;

const OPTIONS: OptionTable<KubeconfigFilesOptions> = {
  every: { type: "duration", default: "10s" },
};

/** File with its cluster, while its text is the same. */
interface KnownFile {
  readonly text: string | undefined;
  readonly cluster: Cluster;
}

/**
 * Set of the clusters of a folder of kubeconfigs, such as a mounted Secret: one cluster
 * for the current context of each file, which has the name of the file without its
 * extension (`.yaml`, `.yml`, `.json`, `.conf` or `.kubeconfig`). Files whose names
 * begin with a dot are ignored. A file that is added or removed makes its cluster join
 * or leave, and one that changes replaces its credentials.
 *
 * The files may name others and exec plugins, as those of kubectl do.
 *
 * @param folder Path of the folder.
 * @param options How often the folder is read.
 * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or not valid.
 *
 * @example Reconcile ConfigMaps of the clusters of a folder
 * ```ts
 * import { Operator } from "@coracle/operator";
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { kubeconfigFiles } from "@coracle/operator/sources";
 *
 * const operator = new Operator();
 * operator.register(ConfigMap, {
 *   reconcile(map, ctx) {
 *     ctx.log.info("Seen", { cluster: ctx.cluster, name: map.metadata.name });
 *   },
 * }, { clusters: kubeconfigFiles("/etc/clusters") });
 * ```
 */
export function kubeconfigFiles(
  folder: string,
  options: {
    /**
     * Time between two reads of the folder.
     *
     * @default {"10s"}
     */
    readonly every?: Duration | undefined;
  } = {},
): ClusterSet {
  const subject = "kubeconfigFiles()";
  checkOption(folder, "name", { name: "folder", subject });
  checkOptions(options, OPTIONS, subject);
  const { every } = resolveOptions(options, OPTIONS);
  return (context) => follow(folder, Math.max(every, 100), context);
}

async function* follow(
  folder: string,
  every: number,
  context: ClusterSetContext,
): AsyncGenerator<readonly Cluster[], void, undefined> {
  const { clock, signal } = context;
  let known: ReadonlyMap<string, KnownFile> | undefined;
  const ignored = new Set<string>();
  while (!signal.aborted) {
    const files = await readFolder(
      folder,
      known ?? new Map(),
      ignored,
      context,
    );
    const last = known;
    const isSame = last !== undefined && last.size === files.size &&
      [...files].every(([name, file]) => last.get(name) === file);
    known = files;
    if (!isSame) yield Array.from(files.values(), ({ cluster }) => cluster);
    await sleep(every, { clock, signal }).catch(() => {});
  }
}

/** Reads the files of a folder; those that are as before are the same objects. */
async function readFolder(
  folder: string,
  known: ReadonlyMap<string, KnownFile>,
  ignored: Set<string>,
  { clock, log }: ClusterSetContext,
): Promise<ReadonlyMap<string, KnownFile>> {
  let names: readonly string[];
  try {
    names = await outsideWork(readdir(folder));
  } catch (error) {
    throw new Error(
      `Cannot read the folder of kubeconfigs ${folder}: received ${
        fileFault(error)
      }`,
    );
  }
  const files = new Map<string, KnownFile>();
  for (const file of names.toSorted()) {
    if (file.startsWith(".")) continue;
    const { name: stem, ext } = parse(file);
    const name = EXTENSIONS.includes(ext) ? stem : file;
    if (!isClusterName(name) || files.has(name)) {
      if (!ignored.has(file)) {
        ignored.add(file); // Once is enough.
        log.warn("A kubeconfig is ignored, since it does not name a cluster", {
          file: join(folder, file),
        });
      }
      continue;
    }
    const path = join(folder, file);
    const before = known.get(name);
    let text: string | undefined;
    let target: Cluster["target"];
    try {
      text = await readLimited(path, MAX_BYTES);
      // A file that it names may be there now.
      const isUsed = before?.text === text &&
        !(before?.cluster.target instanceof Error);
      if (before !== undefined && isUsed) {
        files.set(name, before);
        continue;
      }
      if (text === undefined) {
        throw new RangeError(
          `Cannot read kubeconfig ${path}: it must have at most ${MAX_BYTES} bytes`,
        );
      }
      target = await memberConfig(text, {
        source: path,
        folder,
        clock,
        logger: log,
      });
    } catch (error) {
      target = error as Error;
    }
    const isSame = before?.text === text && target instanceof Error &&
      before?.cluster.target instanceof Error &&
      before.cluster.target.message === target.message;
    files.set(
      name,
      before !== undefined && isSame
        ? before
        : { text, cluster: { name, target } },
    );
  }
  return files;
}
