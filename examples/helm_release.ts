/**
 * Installs Helm charts as custom resources: `helm template` renders a chart, and the
 * operator applies its objects, mends what others change, prunes what an upgrade no
 * longer has, and uninstalls them with the release.
 *
 *     apiVersion: sample.coracle.dev/v1
 *     kind: HelmRelease
 *     metadata: { name: shop, namespace: default }
 *     spec: { chart: shop, values: { replicas: 2 } }
 *
 * CHARTS is the folder of the charts, and HELM the program.
 */
import { join } from "node:path";
import process from "node:process";
import {
  defineKind,
  type ObjectOf,
  Operator,
  type OperatorOptions,
  patchStatus,
  type UntypedObject,
} from "@coracle/operator";
import * as kinds from "@coracle/operator/kinds";
import {
  conditionedStatus,
  fromCommand,
  objectsDependent,
  readyColumns,
  Workflow,
} from "@coracle/operator/workflows";
import { z } from "zod";

const HelmRelease = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "HelmRelease",
  spec: z.object({
    // The name of a folder: nobody installs a chart that is not there.
    chart: z.string().regex(/^[a-z][a-z0-9-]*$/),
    values: z.record(z.string(), z.unknown()).default({}),
  }),
  status: conditionedStatus(),
  printerColumns: readyColumns,
});
type HelmRelease = ObjectOf<typeof HelmRelease>;

/** Renders the chart of a release. */
export type Render = (
  release: {
    readonly name: string;
    readonly namespace: string;
    readonly chart: string;
    readonly values: Readonly<Record<string, unknown>>;
  },
  signal: AbortSignal,
) => Promise<readonly UntypedObject[]>;

const CHARTS = process.env["CHARTS"] ?? "charts";

const HELM = process.env["HELM"] ?? "helm";

/** Renders by a command, which is Helm by default. */
export function helmTemplate(
  charts: string = CHARTS,
  helm: readonly string[] = [HELM],
): Render {
  const [program = HELM, ...args] = helm;
  return ({ name, namespace, chart, values }, signal) => {
    const options = ["--include-crds", "--no-hooks", "--values", "-"];
    const where = ["--namespace", namespace];
    // What comes from the release stands behind the dashes: it is no option.
    const what = ["--", name, join(charts, chart)];
    return fromCommand(
      [program, ...args, "template", ...where, ...options, ...what],
      { input: JSON.stringify(values), timeout: "30s", signal },
    );
  };
}

/** Kinds that charts may have; `coracle manifests` grants the rights for them. */
const KINDS = [
  kinds.ClusterRole,
  kinds.ClusterRoleBinding,
  kinds.ConfigMap,
  kinds.CronJob,
  kinds.CustomResourceDefinition,
  kinds.Deployment,
  kinds.HorizontalPodAutoscaler,
  kinds.Ingress,
  kinds.LimitRange,
  kinds.NetworkPolicy,
  kinds.PodDisruptionBudget,
  kinds.PriorityClass,
  kinds.Role,
  kinds.RoleBinding,
  kinds.Secret,
  kinds.Service,
  kinds.ServiceAccount,
  kinds.StatefulSet,
];

/** Operator for releases. */
export function operator(
  options: OperatorOptions = {},
  render: Render = helmTemplate(),
): Operator {
  const made = new Operator({ programs: [HELM], ...options });
  /** What was rendered last for each release, as Helm takes its time. */
  const rendered = new Map<
    string,
    { generation: number; objects: readonly UntypedObject[] }
  >();
  const workflow = new Workflow<HelmRelease>({ errors: "collect" }).add(
    "chart",
    objectsDependent({
      name: "helm-release",
      kinds: KINDS,
      async objects(release, ctx) {
        const { uid = "", generation = 0 } = release.metadata;
        const last = rendered.get(uid);
        if (last?.generation === generation) return last.objects;
        const { name, namespace = "" } = release.metadata;
        const what = { name, namespace, ...release.spec };
        const objects = await render(what, ctx.signal);
        rendered.set(uid, { generation, objects });
        ctx.log.info("Rendered a chart", { objects: objects.length });
        return objects;
      },
    }),
  );
  made.register(HelmRelease, {
    reconcile(release, ctx) {
      const conditions = workflow.resultOf(ctx).rollUp(release);
      const observedGeneration = release.metadata.generation;
      // A chart that cannot be rendered or applied says why, and is tried again.
      return patchStatus({ conditions, observedGeneration });
    },
    cleanup({ metadata: { uid = "" } }) {
      rendered.delete(uid);
    },
  }, { workflow, install: true });
  return made;
}

if (import.meta.main) await operator().run();
