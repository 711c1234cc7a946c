/**
 * Operator of `examples/greeting.ts` as it is written with client-node.
 *
 * @module
 */
import {
  ApiException,
  CoreV1Api,
  CustomObjectsApi,
  type KubeConfig,
  type KubernetesListObject,
  type KubernetesObject,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  type V1ConfigMap,
} from "@kubernetes/client-node";

interface Greeting extends KubernetesObject {
  spec: { name: string; loud: boolean };
  status?: { text?: string };
}

const GREETINGS = {
  group: "sample.coracle.dev",
  version: "v1",
  plural: "greetings",
};
const MERGE = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);

/** Starts the operator; returns a function that stops it. */
export async function start(config: KubeConfig): Promise<() => Promise<void>> {
  const core = config.makeApiClient(CoreV1Api);
  const custom = config.makeApiClient(CustomObjectsApi);

  async function reconcile(greeting: Greeting): Promise<void> {
    const { name = "", namespace = "", uid = "" } = greeting.metadata ?? {};
    const text = greeting.spec.loud
      ? `HELLO, ${greeting.spec.name.toUpperCase()}!`
      : `Hello, ${greeting.spec.name}.`;
    const owner = {
      apiVersion: "sample.coracle.dev/v1",
      kind: "Greeting",
      name,
      uid,
      controller: true,
    };
    const body: V1ConfigMap = {
      metadata: { name, ownerReferences: [owner] },
      data: { text },
    };
    try {
      await core.createNamespacedConfigMap({ namespace, body });
    } catch (error) {
      if (!(error instanceof ApiException) || error.code !== 409) throw error;
      const found = await core.readNamespacedConfigMap({ namespace, name });
      if (found.data?.["text"] !== text) {
        await core.patchNamespacedConfigMap({ namespace, name, body }, MERGE);
      }
    }
    if (greeting.status?.text === text) return;
    await custom.patchNamespacedCustomObjectStatus(
      { ...GREETINGS, namespace, name, body: { status: { text } } },
      MERGE,
    );
  }

  const greetings = makeInformer<Greeting>(
    config,
    "/apis/sample.coracle.dev/v1/greetings",
    () =>
      custom.listClusterCustomObject(GREETINGS) as Promise<
        KubernetesListObject<Greeting>
      >,
  );
  const configMaps = makeInformer(
    config,
    "/api/v1/configmaps",
    () => core.listConfigMapForAllNamespaces(),
  );

  // One run of an object at a time, one more if it changed in that time, and
  // retries with growing pauses.
  const running = new Map<string, boolean>();
  const timers = new Set<ReturnType<typeof setTimeout>>();
  let stopped = false;
  const later = (run: () => void, milliseconds: number) => {
    if (stopped) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      run();
    }, milliseconds);
    timers.add(timer);
  };
  async function enqueue(
    name: string,
    namespace: string,
    failures = 0,
  ): Promise<void> {
    const key = `${namespace}/${name}`;
    if (running.has(key)) return void running.set(key, true);
    running.set(key, false);
    const greeting = greetings.get(name, namespace);
    try {
      if (greeting !== undefined) await reconcile(greeting);
      if (running.get(key)) later(() => void enqueue(name, namespace), 0);
    } catch {
      const pause = Math.min(1_000 * 2 ** failures, 300_000);
      later(() => void enqueue(name, namespace, failures + 1), pause);
    }
    running.delete(key);
  }

  const onGreeting = ({ metadata }: Greeting) =>
    void enqueue(metadata?.name ?? "", metadata?.namespace ?? "");
  greetings.on("add", onGreeting);
  greetings.on("update", onGreeting);
  const onConfigMap = ({ metadata }: V1ConfigMap) => {
    const owner = metadata?.ownerReferences?.find(({ kind }) =>
      kind === "Greeting"
    );
    if (owner) void enqueue(owner.name, metadata?.namespace ?? "");
  };
  configMaps.on("update", onConfigMap);
  configMaps.on("delete", onConfigMap);
  for (const informer of [greetings, configMaps]) {
    // An informer that fails stays stopped until somebody starts it.
    informer.on("error", () => later(() => void informer.start(), 5_000));
    await informer.start();
  }
  return async () => {
    stopped = true;
    for (const timer of timers) clearTimeout(timer);
    await greetings.stop();
    await configMaps.stop();
  };
}
