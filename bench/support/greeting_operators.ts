import { Buffer } from "node:buffer";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pid } from "node:process";
import type { HttpResponse, OperatorOptions } from "@coracle/operator/core";
import { Client } from "../../core/client/client.ts";
import { openHttpTransport } from "../../core/client/transport/open_transport.ts";
import { loadConfig } from "../../core/config/load_config.ts";
import { patchStatus } from "../../core/controller/result.ts";
import { asBuffer } from "../../core/json/byte_range.ts";
import { LineSplitter } from "../../core/json/line_splitter.ts";
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
  coracle: (kubeconfig) => coracle(kubeconfig),
  "coracle-recorded": (kubeconfig) =>
    coracle(kubeconfig, { path: join(tmpdir(), `coracle-${pid}`, "runs") }),
  "coracle-cleanup": coracleCleanup,
  "coracle-workflow": coracleWorkflow,
  "client-node": clientNode,
  patch,
  "watch-patch": watchPatch,
};

async function coracle(
  kubeconfig: string,
  record?: OperatorOptions["record"],
): Promise<void> {
  const client = new Client(await loadConfig({ kubeconfig }));
  const operator = new Operator({ client, logger: silentLogger, record });
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

/** Sends a merge patch of a status; resolves with the answer. */
type Patch = (name: string, text: string) => Promise<HttpResponse>;

/** Opens Coracle's transport, and the ways to use it for Greetings. */
async function openTransport(kubeconfig: string): Promise<{
  readonly watch: () => Promise<HttpResponse>;
  readonly patch: Patch;
}> {
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
  return {
    watch: () =>
      transport.send({
        method: "GET",
        path: `${folder}?watch=true`,
        headers,
        mayPause: true,
      }),
    patch: (name, text) =>
      transport.send({
        method: "PATCH",
        path: `${folder}/${name}/status`,
        headers,
        body: JSON.stringify({ status: { text } }),
      }),
  };
}

/**
 * Only the PATCH of a status: by the transport of Coracle's client, ten at once,
 * with parsed answer.
 */
async function patch(kubeconfig: string, objects: number): Promise<WriteAll> {
  const { patch } = await openTransport(kubeconfig);
  return async (round) => {
    let next = 0;
    const work = async () => {
      while (next < objects) {
        const name = GREETINGS.name(next++);
        const response = await patch(name, `${round} ${name}`);
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

/** Name of a Greeting, its `spec.name` and its `status.text`, in a watch event. */
const EVENT =
  /"metadata":\{.*?"name":"(greeting-\d+)".*?"spec":\{"name":"([^"]*)"\}(?:.*?"status":\{"text":"([^"]*)"\})?/;

/**
 * Only what no operator can leave out: one watch and, ten at once, one PATCH per
 * changed Greeting, by the transport of Coracle's client. Nothing is parsed or
 * kept.
 */
async function watchPatch(kubeconfig: string): Promise<void> {
  const { watch, patch } = await openTransport(kubeconfig);
  const queue: (readonly [name: string, text: string])[] = [];
  let runs = 0;
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [name, text] = next;
      const response = await patch(name, text);
      await response.cancel();
      if (response.status !== 200) {
        throw new Error(`Cannot patch ${name}: received ${response.status}`);
      }
    }
    runs--;
  };
  const take = (line: string) => {
    const [, name = "", specName = "", stored] = EVENT.exec(line) ?? [];
    const text = greetingText({ name: specName });
    if (stored === text) return;
    queue.push([name, text]);
    if (runs === CONCURRENCY) return;
    runs++;
    void work();
  };
  const { body } = await watch();
  void (async () => {
    const splitter = new LineSplitter();
    for await (const chunk of body) {
      splitter.push(chunk);
      while (splitter.next()) {
        take(
          asBuffer(splitter.bytes).toString(
            "latin1",
            splitter.start,
            splitter.end,
          ),
        );
      }
    }
    throw new Error("Cannot watch: the server has ended the watch");
  })();
}
