/**
 * Configuration of clusters: kubeconfig files, service accounts of pods,
 * proxies and credentials, by the rules of kubectl.
 *
 * Errors name file, field and expected value, and never contain a secret. Files
 * and exec plugins are read again while a client runs. This folder imports only
 * `api` and the files at the top level of `core`; parts that few configurations
 * need are loaded lazily.
 *
 * @module
 */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { checkOption, checkOptions, type OptionRules } from "../api/options.ts";
import { type Clock, systemClock } from "../clock.ts";
import { type Logger, unfailingLogger } from "../logger.ts";
import { hostProcess } from "./host_process.ts";
import type { ClusterConfig } from "./cluster_config.ts";
import { mergeKubeconfigs, namesCluster } from "./kubeconfig.ts";
import { parseKubeconfig, readKubeconfig } from "./kubeconfig_file.ts";
import type { Environment } from "./proxy.ts";

/** Options of {@linkcode loadConfig}. */
export interface LoadConfigOptions {
  /**
   * Path of the kubeconfig file. Defaults to the files in `KUBECONFIG`, then to
   * `~/.kube/config`.
   */
  readonly kubeconfig?: string | undefined;
  /**
   * Name of the context. Defaults to the current context of the kubeconfig.
   */
  readonly context?: string | undefined;
  /**
   * Environment variables; `KUBECONFIG`, `KUBERNETES_SERVICE_HOST` and
   * `KUBERNETES_SERVICE_PORT`, `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` are
   * used.
   *
   * @default {process.env}
   */
  readonly environment?:
    | Readonly<Record<string, string | undefined>>
    | undefined;
  /**
   * Home folder of the user. By default it is `os.homedir()`; on Windows it is
   * the first of `HOME`, `HOMEDRIVE` with `HOMEPATH` and `USERPROFILE` that has a
   * kubeconfig, as for kubectl.
   */
  readonly home?: string | undefined;
  /**
   * Folder of the service account in a pod.
   *
   * @default {"/var/run/secrets/kubernetes.io/serviceaccount"}
   */
  readonly serviceAccount?: string | undefined;
  /**
   * Clock for the age of files and credentials.
   *
   * @default {systemClock}
   */
  readonly clock?: Clock | undefined;
  /**
   * Logger for warnings of credentials that cannot be renewed as they should.
   * Nothing is logged by default.
   */
  readonly logger?: Logger | undefined;
}

const SOURCE_RULES: OptionRules<Omit<LoadConfigOptions, "clock" | "logger">> = {
  kubeconfig: "name?",
  context: "name?",
  environment: "object?",
  home: "string?",
  serviceAccount: "string?",
};
const RULES: OptionRules<LoadConfigOptions> = {
  ...SOURCE_RULES,
  clock: "clock?",
  logger: "logger?",
};

const { context, environment, clock, logger } = RULES;
const TEXT_RULES = { context, environment, clock, logger };

/**
 * Loads the configuration of a cluster from the same sources as kubectl, in this
 * order: the option `kubeconfig`; the files in `KUBECONFIG`, merged;
 * `~/.kube/config`; the service account of the pod that this process runs in.
 * In a pod, files that are empty, or that name no cluster, are passed over.
 *
 * @throws {TypeError} If an option is unknown or of the wrong type.
 * @throws {Error} If there is no configuration, or it is invalid. The error names
 * file, field and expected value, and contains no secret.
 *
 * @example Load a kubeconfig
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
  const logger = options.logger && unfailingLogger(options.logger);
  const deps = { context: options.context, environment, clock, logger };
  const files = kubeconfigFiles(options, environment);
  const source = files.paths.join(delimiter);
  const found = (await Promise.all(files.paths.map(readKubeconfig)))
    .filter((file) => file !== undefined);
  const kubeconfig = mergeKubeconfigs(found);
  const isInPod = Boolean(environment["KUBERNETES_SERVICE_HOST"]);
  const isFound = found.length > 0;
  if (isFound && (!isInPod || namesCluster(kubeconfig, options.context))) {
    const { clusterConfig } = await import("./kubeconfig_cluster.ts");
    return await clusterConfig(kubeconfig, { ...deps, source });
  }
  const why = isFound
    ? `${source} names no cluster`
    : `there is no kubeconfig at ${source}`;
  if (!isInPod || (!isFound && files.namedBy === "option")) {
    throw new Error(
      `Cannot find a cluster: ${why}${
        isInPod ? "" : ", and this process does not run in a pod"
      } ("coracle dev FILE" runs an operator without a cluster)`,
    );
  }
  const { inClusterConfig } = await import("./in_cluster.ts");
  const { serviceAccount } = options;
  try {
    return await inClusterConfig({ ...deps, serviceAccount });
  } catch (error) {
    if (!isFound && files.namedBy === undefined) throw error;
    throw new Error(
      `Cannot find a cluster: ${why}, and the pod has no usable service account`,
      { cause: error },
    );
  }
}

/**
 * Loads the configuration of a cluster as {@linkcode loadConfig} does, and
 * ignores additional options.
 *
 * @returns The configuration, and the additional options with clock and logger.
 */
export async function loadCluster<Options extends LoadConfigOptions>(
  options: Options,
): Promise<{
  readonly config: ClusterConfig;
  readonly others: Omit<Options, keyof typeof SOURCE_RULES>;
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
  const source = { kubeconfig, context, environment, home, serviceAccount };
  const { clock, logger } = options;
  const config = await loadConfig({ ...source, clock, logger });
  return { config, others };
}

/**
 * Creates the configuration of a cluster from the text of a kubeconfig.
 *
 * @param text YAML or JSON. Relative paths refer to the working folder.
 * @param options Context, environment variables, clock and logger.
 * @throws {Error} If the kubeconfig is invalid.
 *
 * @example Load a kubeconfig from a secret
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
  options: Pick<
    LoadConfigOptions,
    "context" | "environment" | "clock" | "logger"
  > = {},
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
    logger: options.logger && unfailingLogger(options.logger),
    source,
  });
}

/** Returns the kubeconfig files, and what names them; undefined by default. */
function kubeconfigFiles(
  options: LoadConfigOptions,
  environment: Environment,
): { paths: readonly string[]; namedBy?: "option" | "environment" } {
  if (options.kubeconfig !== undefined) {
    return { paths: [options.kubeconfig], namedBy: "option" };
  }
  const named = (environment["KUBECONFIG"] ?? "").split(delimiter)
    .filter((path) => path !== "");
  if (named.length > 0) {
    return { paths: [...new Set(named)], namedBy: "environment" };
  }
  const homes = options.home === undefined
    ? homeFolders(environment)
    : [options.home];
  const paths = homes.map((home) => join(home, ".kube", "config"));
  const [last = ""] = paths.slice(-1);
  return { paths: [paths.slice(0, -1).find(existsSync) ?? last] };
}

/** Folders that may be the home of the user; the last one is that of the system. */
export function homeFolders(
  environment: Environment,
  platform: string = hostProcess.platform,
): readonly string[] {
  if (platform !== "win32") return [homedir()];
  const { HOME, HOMEDRIVE, HOMEPATH, USERPROFILE } = environment;
  const drive = HOMEDRIVE && HOMEPATH ? HOMEDRIVE + HOMEPATH : "";
  const folders = [HOME, drive, USERPROFILE, homedir()]
    .filter((folder) => folder !== undefined && folder !== "");
  return folders as string[];
}
