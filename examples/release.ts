import { defineKind, Operator } from "@coracle/operator";
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

/** Annotation with the attempt that a Deployment is from. */
const ATTEMPT = "sample.coracle.dev/attempt";

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

    async deploy({ object, ctx }, { spec, attempt }) {
      const { name } = object.metadata;
      const labels = { app: name };
      const containers = [{ name: "web", image: spec.image }];
      await ctx.apply(Deployment, {
        metadata: { name, annotations: { [ATTEMPT]: attempt } },
        spec: {
          replicas: spec.replicas,
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec: { containers } },
        },
      });
    },

    async scale({ object, ctx }, { replicas }) {
      const { name } = object.metadata;
      await ctx.patch(Deployment, name, { spec: { replicas } });
    },

    recover: (_, { observed }) =>
      observed === undefined
        ? { reason: "Recovered", message: "The Deployment was gone" }
        : undefined,

    rollback: { after: "5m" },
  }),
  // A change of its Deployment triggers a run immediately.
  { owns: [Deployment], install: true },
);

await operator.run();
