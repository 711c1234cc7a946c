/**
 * Parts of an operator with several replicas whose webhook loses no call: any
 * replica takes it and writes it down as an annotation, which wakes the leader,
 * or the next one if none exists at the moment.
 *
 * @module
 */
import {
  type DefinedKind,
  defineKind,
  type KubernetesObject,
  noUpdate,
  Operator,
  type OperatorOptions,
  patchStatus,
} from "@coracle/operator";
import { type WebhookOptions, webhookSource } from "@coracle/operator/sources";
import { z } from "zod";

/** Annotation with the time of the last call. */
const CALLED_AT = "sample.coracle.dev/called-at";

export interface Shop extends KubernetesObject {
  spec: { url: string };
  status?: { calledAt?: string | undefined } | undefined;
}

export const Shop: DefinedKind<Shop> = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Shop",
  spec: z.object({ url: z.string() }),
  status: z.object({ calledAt: z.string() }).partial(),
});

/** Webhook that writes each call down. */
export function calls(
  options: Pick<WebhookOptions, "check" | "host" | "port">,
): ReturnType<typeof webhookSource<Shop>> {
  return webhookSource<Shop>({
    ...options,
    name: "calls",
    path: "/called",
    async primaries(request, _known, client) {
      const { namespace, name } = z.object({
        namespace: z.string(),
        name: z.string(),
      }).parse(request.json());
      const annotations = { [CALLED_AT]: new Date().toISOString() };
      await client.patch(Shop, { namespace, name }, {
        metadata: { annotations },
      });
      return []; // The annotation triggers the run.
    },
  });
}

/** Replica of the operator, one leads and the others stand by. */
export function shops(
  source: ReturnType<typeof calls>,
  options: OperatorOptions,
): Operator {
  const operator = new Operator({
    leaderElection: { name: "shops" },
    ...options,
  });
  operator.register(Shop, {
    reconcile({ metadata }) {
      const calledAt = metadata.annotations?.[CALLED_AT];
      return calledAt === undefined ? noUpdate() : patchStatus({ calledAt });
    },
  }, { sources: [source], requestAnnotations: [CALLED_AT] });
  return operator;
}
