import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { checkOption, checkOptions, type OptionRules } from "../api/options.ts";
import { type Clock, systemClock } from "../clock.ts";
import { hostProcess } from "./host_process.ts";
import type { ClusterConfig } from "./cluster_config.ts";
import { mergeKubeconfigs } from "./kubeconfig.ts";
import type { Environment } from "./proxy.ts";
import { parseKubeconfig, readKubeconfig } from "./read_kubeconfig.ts";

/** Options of {@linkcode loadConfig}. */
export interface LoadConfigOptions {
  /**
   * The kubeconfig file to use.
   *
   * @default {what `KUBECONFIG` names, else `~/.kube/config`}
   */
  readonly kubeconfig?: string | undefined;
  /**
   * The context to use.
   *
   * @default {the kubeconfig's current one}
   */
  readonly context?: string | undefined;
  /**
   * The variables `KUBECONFIG`, `HTTPS_PROXY` and the like.
   *
   * @default {process.env}
   */
  readonly environment?: Environment | undefined;
  /**
   * The home of the user.
   *
   * @default {os.homedir()}
   */
  readonly home?: string | undefined;
  /**
   * The folder of a pod's service account.
   *
   * @default {"/var/run/secrets/kubernetes.io/serviceaccount"}
   */
  readonly serviceAccount?: string | undefined;
  /**
   * Tells when files and credentials are old.
   *
   * @default {the machine's clock}
   */
  readonly clock?: Clock | undefined;
}

/** What the options must be. */
const PLACE_RULES: OptionRules<Omit<LoadConfigOptions, "clock">> = {
  kubeconfig: "name?",
  context: "name?",
  environment: "object?",
  home: "string?",
  serviceAccount: "string?",
};
const RULES: OptionRules<LoadConfigOptions> = {
  ...PLACE_RULES,
  clock: "clock?",
};

const TEXT_RULES: OptionRules<
  Pick<LoadConfigOptions, "context" | "environment" | "clock">
> = { context: "name?", environment: "object?", clock: "clock?" };

/**
 * Finds the cluster to work with, as kubectl does: the given kubeconfig, else
 * the files that `KUBECONFIG` names, merged, else `~/.kube/config`, else the
 * cluster that this process runs in.
 *
 * @throws {TypeError} If an option is unknown or of another type.
 *
 * @throws {Error} If there is none, or one that cannot be used; the error names
 * file, field and what is expected, and no secret.
 *
 * @example The cluster of a kubeconfig
 * ```ts
 * import { loadConfig } from "@coracle/operator/core";
 *
 * try {
 *   await loadConfig({ kubeconfig: "/nowhere/kubeconfig" });
 *   throw new Error("Unexpected success");
 * } catch (error) {
 *   if (!String(error).includes("/nowhere/kubeconfig")) throw error;
 * }
 * ```
 */
export async function loadConfig(
  options: LoadConfigOptions = {},
): Promise<ClusterConfig> {
  checkOptions(options, RULES, "loadConfig()");
  const { environment = hostProcess.env, clock = systemClock } = options;
  const parts = { context: options.context, environment, clock };
  const { files, required } = kubeconfigFiles(options, environment);
  const kubeconfigs = (await Promise.all(files.map(readKubeconfig)))
    .filter((file) => file !== undefined);
  if (kubeconfigs.length > 0) {
    const { clusterConfig } = await import("./kubeconfig_cluster.ts");
    return await clusterConfig(mergeKubeconfigs(kubeconfigs), {
      ...parts,
      source: files.join(delimiter),
    });
  }
  if (!required && environment["KUBERNETES_SERVICE_HOST"]) {
    const { serviceAccount } = options;
    const { inClusterConfig } = await import("./in_cluster.ts");
    return await inClusterConfig({ environment, clock, serviceAccount });
  }
  throw new Error(
    `Cannot find a cluster: there must be a kubeconfig, or this must run in a pod ("coracle dev FILE" runs an operator without a cluster): received no file ${
      files.join(delimiter)
    }`,
  );
}

/**
 * Finds the cluster as {@linkcode loadConfig} does.
 *
 * @param options Among others, those that say which one.
 * @returns It, and all options but those that only say which one.
 */
export async function loadCluster<Options extends LoadConfigOptions>(
  options: Options,
): Promise<{
  readonly config: ClusterConfig;
  readonly others: Omit<Options, keyof typeof PLACE_RULES>;
}> {
  checkOption(options, "object", { name: "options", subject: "a client" });
  const {
    kubeconfig,
    context,
    environment,
    home,
    serviceAccount,
    ...others
  } = options;
  const place = { kubeconfig, context, environment, home, serviceAccount };
  const config = await loadConfig({ ...place, clock: options.clock });
  return { config, others };
}

/**
 * The cluster that the text of a kubeconfig names.
 *
 * @param text YAML or JSON. Relative paths in it start from the working folder.
 * @param options Which context, and where time comes from.
 * @throws {Error} If it cannot be used.
 *
 * @example A cluster from a secret
 * ```ts
 * import { configFromText } from "@coracle/operator/core";
 *
 * const config = await configFromText(`
 *   current-context: remote
 *   contexts: [{ name: remote, context: { cluster: there, user: me } }]
 *   clusters: [{ name: there, cluster: { server: "https://10.0.0.1" } }]
 *   users: [{ name: me, user: { token: "a-token" } }]
 * `);
 * if (config.server !== "https://10.0.0.1") throw new Error("Wrong server");
 * ```
 */
export async function configFromText(
  text: string,
  options: Pick<LoadConfigOptions, "context" | "environment" | "clock"> = {},
): Promise<ClusterConfig> {
  checkOption(text, "string", { name: "text", subject: "configFromText()" });
  checkOptions(options, TEXT_RULES, "configFromText()");
  const { environment = hostProcess.env, clock = systemClock, context } =
    options;
  const source = "the given kubeconfig";
  const origin = { file: source, folder: hostProcess.cwd() };
  const kubeconfig = await parseKubeconfig(text, origin);
  const { clusterConfig } = await import("./kubeconfig_cluster.ts");
  return await clusterConfig(kubeconfig, {
    context,
    environment,
    clock,
    source,
  });
}

/** Which files to read, and whether one of them must be there. */
function kubeconfigFiles(
  options: LoadConfigOptions,
  environment: Environment,
): { files: string[]; required: boolean } {
  if (options.kubeconfig !== undefined) {
    return { files: [options.kubeconfig], required: true };
  }
  const named = (environment["KUBECONFIG"] ?? "").split(delimiter)
    .filter((path) => path !== "");
  if (named.length > 0) return { files: [...new Set(named)], required: true };
  const home = options.home ?? homedir();
  return { files: [join(home, ".kube", "config")], required: false };
}
