/** Correct: a workflow of two nodes, one after the other. */
import {
  defineKind,
  type ObjectOf,
  Operator,
  patchStatus,
} from "@coracle/operator";
import { ConfigMap, Service } from "@coracle/operator/kinds";
import { kubernetesDependent, Workflow } from "@coracle/operator/workflows";
import { z } from "zod";
import type { CorpusEntry } from "../entry.ts";

export const entry: CorpusEntry = {
  expects: ["ConfigMap sample", "Service sample"],
};

const Gadget = defineKind({
  group: "corpus.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({ color: z.string(), port: z.int().min(80).max(90) }),
  status: z.object({ done: z.boolean() }).partial(),
});
type Gadget = ObjectOf<typeof Gadget>;

const config = kubernetesDependent<Gadget, ConfigMap>(ConfigMap, {
  desired: ({ metadata: { name }, spec: { color } }) => ({
    metadata: { name },
    data: { color },
  }),
});
const service = kubernetesDependent<Gadget, Service>(Service, {
  desired: ({ metadata: { name }, spec: { port } }) => ({
    metadata: { name },
    spec: { selector: { app: name }, ports: [{ port }] },
  }),
});

const workflow = new Workflow<Gadget>()
  .add("config", config)
  .add("service", service, { dependsOn: ["config"] });

const operator: Operator = new Operator();
operator.register(Gadget, {
  reconcile: (_, ctx) => patchStatus({ done: workflow.resultOf(ctx).done }),
}, {
  workflow,
  install: true,
});
export default operator;
