import { type Clock, systemClock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { ClusterConfig } from "./cluster_config.ts";
import { hostProcess } from "./host_process.ts";
import { fieldText, type FromFile, type Kubeconfig } from "./kubeconfig.ts";
import { parseKubeconfig } from "./kubeconfig_file.ts";

/** Where the kubeconfig of one of several clusters comes from. */
export interface MemberConfigDeps {
  /** What the kubeconfig is called in errors. */
  readonly source: string;
  /** Folder that relative paths refer to; undefined if it may not name any files. */
  readonly folder: string | undefined;
  readonly clock?: Clock | undefined;
  readonly logger?: Logger | undefined;
}

/**
 * Creates the configuration of a cluster from a kubeconfig that may come from others
 * than who runs this process. Without a folder it may not run programs, nor read
 * files: who writes it would run as this process, or send its files to a server.
 *
 * @throws {Error} If the kubeconfig is not valid; the error shows no secret.
 */
export async function memberConfig(
  text: string,
  { source, folder, clock = systemClock, logger }: MemberConfigDeps,
): Promise<ClusterConfig> {
  const kubeconfig = await parseKubeconfig(text, {
    file: source,
    folder: folder ?? "/",
  });
  if (folder === undefined) checkContained(kubeconfig);
  const { clusterConfig } = await import("./kubeconfig_cluster.ts");
  return await clusterConfig(kubeconfig, {
    environment: hostProcess.env,
    clock,
    logger,
    source,
  });
}

/** Refuses a kubeconfig that names a program or a file. */
function checkContained({ clusters, users }: Kubeconfig): void {
  const refuse = <T extends object>(
    entries: ReadonlyMap<string, FromFile<T>>,
    fields: readonly (keyof T & string)[],
    why: string,
  ) => {
    for (const entry of entries.values()) {
      const field = fields.find((name) => entry.value[name]);
      if (field === undefined) continue;
      throw new TypeError(`Cannot use ${fieldText(entry, field)}: ${why}`);
    }
  };
  const noFile =
    "it names a file of this process, so embed its content (kubectl config view --raw --flatten)";
  refuse(clusters, ["certificate-authority"], noFile);
  refuse(users, ["exec"], "it runs a program in this process, so use a token");
  refuse(users, ["tokenFile", "client-certificate", "client-key"], noFile);
}
