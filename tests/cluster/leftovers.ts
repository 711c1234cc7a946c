import { setTimeout } from "node:timers/promises";
import { ApiError } from "../../core/api/api_error.ts";
import { Client } from "../../core/client/client.ts";
import { textOf } from "../../core/client/transport/chunk_queue.ts";
import { loadConfig } from "../../core/config/load_config.ts";
import type { TestReport } from "../support/junit_report.ts";

/** Time limit for what is being deleted, in milliseconds. */
const GONE_WITHIN_MS = 60_000;

/** Discovery of all groups in one answer. */
const DISCOVERY =
  "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/** Lists without the contents of the objects. */
const METADATA =
  "application/json;g=meta.k8s.io;v=v1;as=PartialObjectMetadataList";

/**
 * Objects that a control plane makes by itself, events, which it removes after an
 * hour, and the definition of gadgets, which scenarios share and which stays.
 */
const KEPT: readonly RegExp[] = [
  /\/events\//,
  /\/namespaces\/kube-/,
  /\/serviceaccounts\/default$/,
  /\/configmaps\/kube-root-ca\.crt$/,
  // The API server's own Service, which it makes a while after it is ready.
  /\/(?:services|endpoints|endpointslices|servicecidrs)\/kubernetes$/,
  /\/ipaddresses\//,
  /\/(?:flowschemas|prioritylevelconfigurations|clusterroles|clusterrolebindings)\/(?:system:|system-|probes|service-accounts|kube-)/,
  /\/(?:apiservices\/v1|customresourcedefinitions\/gadgets)\.sample\.coracle\.dev$/,
];

/** Part of an answer of the discovery. */
interface Discovered {
  readonly items: readonly {
    readonly metadata: { readonly name?: string };
    readonly versions: readonly {
      readonly version: string;
      readonly resources?: readonly {
        readonly resource: string;
        readonly verbs: readonly string[];
      }[];
    }[];
  }[];
}

/** Part of a list. */
interface Listed {
  readonly items:
    | readonly {
      readonly metadata: { readonly name: string; readonly namespace?: string };
    }[]
    | null;
}

/** Objects that test files leave in a cluster, which the next file would meet. */
export class Leftovers {
  readonly #client: Client;
  /** Paths of the objects before the file. */
  #before: ReadonlySet<string> = new Set();

  private constructor(client: Client) {
    this.#client = client;
  }

  /**
   * Notes the objects of a cluster that nobody else uses.
   *
   * @param kubeconfig Path of the kubeconfig of an administrator.
   */
  static async of(kubeconfig: string): Promise<Leftovers> {
    const leftovers = new Leftovers(
      new Client(await loadConfig({ kubeconfig })),
    );
    leftovers.#before = await leftovers.#objects();
    return leftovers;
  }

  /**
   * Paths of the objects that have come since the last call, once those are gone
   * that are being deleted.
   *
   * @param within Milliseconds for the deletions.
   */
  async since(within: number = GONE_WITHIN_MS): Promise<readonly string[]> {
    const end = performance.now() + within;
    for (;;) {
      const now = await this.#objects();
      const left = [...now].filter((path) => !this.#before.has(path));
      if (left.length === 0 || performance.now() > end) {
        this.#before = now;
        return left.toSorted();
      }
      await setTimeout(250);
    }
  }

  /** A failure if files have left something. */
  async reportOf(files: readonly string[]): Promise<TestReport> {
    const left = await this.since();
    const failed = left.length === 0 ? [] : [{
      name: "A test file removes what it made in the cluster",
      file: files[0] ?? "",
      message: `It has left:\n${left.join("\n")}`,
    }];
    return { passed: 0, failed, skipped: [] };
  }

  /** Closes the connections to the cluster. */
  close(): Promise<void> {
    return this.#client.close();
  }

  /** Paths of all objects but those that are kept. */
  async #objects(): Promise<ReadonlySet<string>> {
    const lists = new Map<string, string>();
    for (const root of ["/api", "/apis"]) {
      const { items } = await this.#read<Discovered>(root, DISCOVERY);
      for (const { metadata: { name = "" }, versions } of items) {
        for (const { version, resources = [] } of versions) {
          const path = [root, name, version].filter(Boolean).join("/");
          for (const { resource, verbs } of resources) {
            const key = `${resource}.${name}`;
            if (!verbs.includes("list") || lists.has(key)) continue;
            lists.set(key, `${path}/${resource}`);
          }
        }
      }
    }
    const paths = await Promise.all(
      [...lists.values()].map((list) => this.#list(list)),
    );
    return new Set(
      paths.flat().filter((path) => !KEPT.some((kept) => kept.test(path))),
    );
  }

  /** Paths of the objects of a list, or its own if it cannot be read. */
  async #list(list: string): Promise<readonly string[]> {
    const resource = list.split("/").at(-1);
    const root = list.slice(0, -`/${resource}`.length);
    try {
      const { items } = await this.#read<Listed>(list, METADATA);
      return items?.map(({ metadata: { name, namespace } }) =>
        namespace === undefined
          ? `${list}/${name}`
          : `${root}/namespaces/${namespace}/${resource}/${name}`
      ) ?? [];
    } catch (error) {
      // A definition may have been removed since the discovery.
      return ApiError.is(error) && error.status === 404 ? [] : [list];
    }
  }

  async #read<T>(path: string, accept: string): Promise<T> {
    const { body } = await this.#client.request({
      method: "GET",
      path,
      headers: { accept },
    });
    return JSON.parse(await textOf(body)) as T;
  }
}
