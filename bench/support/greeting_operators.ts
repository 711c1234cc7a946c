import { Buffer } from "node:buffer";
import { Client } from "../../core/client/client.ts";
import { openHttpTransport } from "../../core/client/transport/open_transport.ts";
import { loadConfig } from "../../core/config/load_config.ts";
import { patchStatus } from "../../core/controller/result.ts";
import { silentLogger } from "../../core/logger.ts";
import { Operator } from "../../core/operator/operator.ts";
import { CONCURRENCY, Greeting, greetingText } from "./greeting.ts";
import { GREETINGS } from "./load_target.ts";
import { WebApp, webAppWorkflow } from "./web_app.ts";
import { loadRival } from "./rival.ts";

/** Writes the status of every Greeting once. */
type WriteAll = (round: string) => Promise<void>;

/** Starts an operator; it may be one that writes only on request. */
type Start = (kubeconfig: string, objects: number) => Promise<WriteAll | void>;

/** Operators in TypeScript. */
export const OPERATORS: Readonly<Record<string, Start>> = {
  coracle,
  "coracle-cleanup": coracleCleanup,
  "coracle-workflow": coracleWorkflow,
  "client-node": clientNode,
  patch,
};

async function coracle(kubeconfig: string): Promise<void> {
  const client = new Client(await loadConfig({ kubeconfig }));
  const operator = new Operator({ client, logger: silentLogger });
  operator.register(Greeting, {
    reconcile: ({ spec }) => patchStatus({ text: greetingText(spec) }),
  }, { concurrency: CONCURRENCY });
  await operator.start();
}

/** As `coracle`, with a finalizer. */
async function coracleCleanup(kubeconfig: string): Promise<void> {
  const client = new Client(await loadConfig({ kubeconfig }));
  const operator = new Operator({ client, logger: silentLogger });
  operator.register(Greeting, {
    reconcile: ({ spec }) => patchStatus({ text: greetingText(spec) }),
    cleanup: () => {},
  }, { concurrency: CONCURRENCY });
  await operator.start();
}

/** An operator of apps with ten dependents. */
async function coracleWorkflow(kubeconfig: string): Promise<void> {
  const client = new Client(await loadConfig({ kubeconfig }));
  const operator = new Operator({ client, logger: silentLogger });
  operator.register(WebApp, { reconcile() {} }, {
    concurrency: CONCURRENCY,
    workflow: webAppWorkflow(),
  });
  await operator.start();
}

/** Part of client-node that is used. */
interface ClientNode {
  readonly KubeConfig: new () => {
    loadFromFile(file: string): void;
    makeApiClient(api: unknown): CustomObjectsApi;
  };
  readonly CustomObjectsApi: unknown;
  readonly PatchStrategy: { readonly MergePatch: string };
  setHeaderOptions(name: string, value: string): unknown;
  makeInformer(
    config: unknown,
    path: string,
    list: () => Promise<unknown>,
  ): {
    on(event: string, callback: (object: Greeting) => void): void;
    start(): Promise<void>;
  };
}

interface CustomObjectsApi {
  listClusterCustomObject(of: unknown): Promise<unknown>;
  patchNamespacedCustomObjectStatus(
    of: unknown,
    options: unknown,
  ): Promise<unknown>;
}

/** A loop by hand, as with the official client: ten runs at once. */
async function clientNode(kubeconfig: string): Promise<void> {
  const rival = await loadRival<ClientNode>("@kubernetes/client-node");
  const config = new rival.KubeConfig();
  config.loadFromFile(kubeconfig);
  const api = config.makeApiClient(rival.CustomObjectsApi);
  const { group, version, plural } = Greeting;
  const merge = rival.setHeaderOptions(
    "Content-Type",
    rival.PatchStrategy.MergePatch,
  );
  const reconcile = async ({ metadata, spec, status }: Greeting) => {
    const text = greetingText(spec);
    if (status?.text === text) return;
    const { name, namespace } = metadata;
    await api.patchNamespacedCustomObjectStatus(
      { group, version, plural, namespace, name, body: { status: { text } } },
      merge,
    );
  };
  const queue: Greeting[] = [];
  let runs = 0;
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      await reconcile(next);
    }
    runs--;
  };
  const take = (greeting: Greeting) => {
    queue.push(greeting);
    if (runs === CONCURRENCY) return;
    runs++;
    void work();
  };
  const informer = rival.makeInformer(
    config,
    `/apis/${group}/${version}/${plural}`,
    () => api.listClusterCustomObject({ group, version, plural }),
  );
  informer.on("add", take);
  informer.on("update", take);
  informer.on("error", (error) => {
    throw error;
  });
  await informer.start();
}

/**
 * Only the PATCH of a status: by the transport of Coracle's client, ten at once,
 * with parsed answer.
 */
async function patch(kubeconfig: string, objects: number): Promise<WriteAll> {
  const { server, certificateAuthority, credentials } = await loadConfig({
    kubeconfig,
  });
  if (typeof certificateAuthority === "function") {
    throw new TypeError(
      "Cannot patch: the authority must be in the kubeconfig",
    );
  }
  const { token } = credentials === undefined || !("current" in credentials)
    ? credentials ?? {}
    : await credentials.current();
  const transport = await openHttpTransport({ server, certificateAuthority });
  const { folder } = GREETINGS;
  const headers = Object.freeze({
    accept: "application/json",
    authorization: `Bearer ${token}`,
    "content-type": "application/merge-patch+json",
  });
  return async (round) => {
    let next = 0;
    const work = async () => {
      while (next < objects) {
        const name = GREETINGS.name(next++);
        const response = await transport.send({
          method: "PATCH",
          path: `${folder}/${name}/status`,
          headers,
          body: JSON.stringify({ status: { text: `${round} ${name}` } }),
        });
        const chunks: Uint8Array[] = [];
        for await (const chunk of response.body) chunks.push(chunk);
        const text = new TextDecoder().decode(Buffer.concat(chunks));
        if (response.status !== 200) {
          throw new Error(`Cannot patch ${name}: received ${text}`);
        }
        JSON.parse(text);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
  };
}
