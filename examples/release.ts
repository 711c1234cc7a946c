import {
  type Context,
  defineKind,
  type ObjectOf,
  Operator,
} from "@coracle/operator";
import { Deployment } from "@coracle/operator/kinds";
import {
  changeMap,
  phased,
  phasedStatus,
  readyColumns,
} from "@coracle/operator/workflows";
import { z } from "zod";

const Release = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Release",
  spec: z.object({ image: z.string(), replicas: z.int().default(1) }),
  status: phasedStatus(),
  printerColumns: readyColumns,
});

type Release = ObjectOf<typeof Release>;

/** Annotation with the attempt that a Deployment is from. */
const ATTEMPT = "sample.coracle.dev/attempt";

/** Applies the Deployment of a spec. */
async function apply(
  ctx: Context<Release>,
  { image, replicas }: Release["spec"],
  attempt: string,
): Promise<Deployment> {
  const { name } = ctx.key;
  const labels = { app: name };
  const containers = [{ name: "web", image }];
  return await ctx.apply(Deployment, {
    metadata: { name, annotations: { [ATTEMPT]: attempt } },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    },
  });
}

const operator = new Operator();

operator.register(
  Release,
  phased(Release, {
    // All other fields need an upgrade.
    diff: changeMap({ replicas: "scale" }),

    observe: ({ ctx }) => ctx.get(Deployment),

    stable(found) {
      const { replicas = 1 } = found?.spec ?? {};
      const { readyReplicas = 0, observedGeneration } = found?.status ?? {};
      return observedGeneration === found?.metadata.generation &&
          readyReplicas >= replicas ||
        `${readyReplicas} of ${replicas} replicas are ready`;
    },

    async isDeployed({ ctx }, attempt) {
      const found = await ctx.get(Deployment);
      return found?.metadata.annotations?.[ATTEMPT] === attempt;
    },

    async deploy({ ctx }, { spec, attempt }) {
      await apply(ctx, spec, attempt);
    },

    async scale({ object, ctx }, { replicas }) {
      const { name } = object.metadata;
      await ctx.patch(Deployment, name, { spec: { replicas } });
    },

    recover: (_, { observed }) =>
      observed === undefined
        ? { reason: "Recovered", message: "The Deployment was gone" }
        : undefined,

    // What others change in the Deployment is taken back.
    async reconcileOtherChanges({ ctx }, { observed, deployed }) {
      const { generation, annotations } = observed?.metadata ?? {};
      const attempt = annotations?.[ATTEMPT];
      if (attempt === undefined) return false;
      const { metadata } = await apply(ctx, deployed, attempt);
      return metadata.generation !== generation;
    },

    // Longer than a slow node takes until its pods are ready.
    rollback: { after: "15m" },
  }),
  // A change of its Deployment triggers a run immediately.
  { owns: [Deployment], install: true },
);

await operator.run();
