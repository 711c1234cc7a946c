/**
 * Operator that restarts workloads when a ConfigMap or Secret that they use has
 * changed, after the Reloader of Stakater, with its annotations: `auto` is for all that
 * the pods use, the others name objects.
 *
 *     metadata:
 *       annotations:
 *         reloader.stakater.com/auto: "true"
 *         configmap.reloader.stakater.com/reload: "prices,texts"
 *         secret.reloader.stakater.com/reload: "bank"
 */
import {
  type Kind,
  type KubernetesObject,
  Operator,
  type OperatorOptions,
  watch,
} from "@coracle/operator";
import {
  ConfigMap,
  DaemonSet,
  Deployment,
  type PodTemplateSpec,
  Secret,
  StatefulSet,
} from "@coracle/operator/kinds";
import { createHash } from "node:crypto";

const AUTO = "reloader.stakater.com/auto";
const NAMED = {
  ConfigMap: "configmap.reloader.stakater.com/reload",
  Secret: "secret.reloader.stakater.com/reload",
};
/** Hash of what the pods use: on the workload, and, once it has changed, on its pods. */
const HASH = "gallery.coracle.dev/config-hash";

interface Workload extends KubernetesObject {
  spec?: { template?: PodTemplateSpec | undefined } | undefined;
}
interface Content extends KubernetesObject {
  data?: Record<string, string> | undefined;
  binaryData?: Record<string, string> | undefined;
}

/** Names of the ConfigMaps and Secrets that the pods of a template use. */
function usedBy(
  template: PodTemplateSpec | undefined,
): Record<keyof typeof NAMED, string[]> {
  const { volumes = [], containers = [], initContainers = [] } =
    template?.spec ?? {};
  const all = [...containers, ...initContainers];
  const env = all.flatMap((one) => one.env ?? []);
  const envFrom = all.flatMap((one) => one.envFrom ?? []);
  const projected = volumes.flatMap(({ projected }) =>
    projected?.sources ?? []
  );
  const named = (names: readonly (string | undefined)[]) =>
    names.filter((name) => name !== undefined);
  return {
    ConfigMap: named([
      ...volumes.map(({ configMap }) => configMap?.name),
      ...projected.map(({ configMap }) => configMap?.name),
      ...env.map(({ valueFrom }) => valueFrom?.configMapKeyRef?.name),
      ...envFrom.map(({ configMapRef }) => configMapRef?.name),
    ]),
    Secret: named([
      ...volumes.map(({ secret }) => secret?.secretName),
      ...projected.map(({ secret }) => secret?.name),
      ...env.map(({ valueFrom }) => valueFrom?.secretKeyRef?.name),
      ...envFrom.map(({ secretRef }) => secretRef?.name),
    ]),
  };
}

/** Names of the objects of a kind whose changes restart a workload. */
function reloadedBy(
  { metadata: { annotations = {} }, spec }: Workload,
  kind: keyof typeof NAMED,
): readonly string[] {
  const used = annotations[AUTO] === "true" ? usedBy(spec?.template)[kind] : [];
  const named = (annotations[NAMED[kind]] ?? "").split(",")
    .map((name) => name.trim()).filter((name) => name !== "");
  return [...new Set([...used, ...named])].sort();
}

function reload(operator: Operator, kind: Kind<Workload>): void {
  const watched = <C extends Content>(content: Kind<C>) =>
    watch<Workload, C>(content, {
      references: (workload) => {
        const { namespace } = workload.metadata;
        return reloadedBy(workload, content.kind as keyof typeof NAMED)
          .map((name) => ({ namespace, name }));
      },
    });
  operator.register<Workload>(kind, {
    async reconcile(workload, ctx) {
      const hash = createHash("sha256");
      let isFound = false;
      for (const content of [ConfigMap, Secret] as Kind<Content>[]) {
        const of = content.kind as keyof typeof NAMED;
        for (const name of reloadedBy(workload, of)) {
          const found = await ctx.get(content, name);
          if (found === undefined) continue;
          isFound = true;
          const { data = {}, binaryData = {} } = found;
          const sorted = [data, binaryData].map((one) =>
            Object.entries(one).sort(([a], [b]) => a < b ? -1 : 1)
          );
          hash.update(JSON.stringify([of, name, sorted]));
        }
      }
      const { annotations } = workload.metadata;
      const [before, now] = [annotations?.[HASH], hash.digest("hex")];
      if (!isFound || before === now) return;
      // The first hash restarts nothing: nobody knows what the pods began with.
      const template = { metadata: { annotations: { [HASH]: now } } };
      await ctx.patch(kind, workload.metadata, {
        metadata: { annotations: { [HASH]: now } },
        ...before !== undefined && { spec: { template } },
      });
      if (before !== undefined) {
        ctx.events.normal("Reloaded", "Its configuration has changed");
      }
    },
  }, {
    watches: [watched(ConfigMap), watched(Secret)],
    watchedAnnotations: [AUTO, ...Object.values(NAMED)],
  });
}

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator(options);
  reload(operator, Deployment as Kind<Workload>);
  reload(operator, StatefulSet as Kind<Workload>);
  reload(operator, DaemonSet as Kind<Workload>);
  return operator;
}

if (import.meta.main) await operator().run();
