import type {
  ApplyObject,
  ControllerHandle,
  Operator,
  Workflow,
} from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { Gadget, type OperatorFixture } from "./operator_fixture.ts";

/** Desired ConfigMap with the value of its gadget. */
export function valueMap(
  suffix: string,
  labels?: Readonly<Record<string, string>>,
): (gadget: Gadget) => ApplyObject<ConfigMap> {
  return ({ metadata, spec }) => ({
    metadata: { name: `${metadata.name}${suffix}`, ...(labels && { labels }) },
    data: { value: spec.value },
  });
}

/** Reads a ConfigMap from the server. */
export async function findMap(
  fixture: OperatorFixture,
  name: string,
  namespace = "default",
): Promise<ConfigMap | undefined> {
  return await fixture.client.find(ConfigMap, { namespace, name });
}

/** The value in a ConfigMap of {@linkcode valueMap}. */
export async function mapValue(
  fixture: OperatorFixture,
  name: string,
  namespace?: string,
): Promise<string | undefined> {
  return (await findMap(fixture, name, namespace))?.data?.["value"];
}

/** An operator that only runs a workflow. */
export interface WorkflowOperator {
  readonly operator: Operator;
  readonly controller: ControllerHandle<Gadget>;
  /** How often the reconciler behind the workflow has run. */
  readonly counter: { readonly runs: number };
}

/**
 * Creates an operator that only runs a workflow for gadgets, without starting
 * it.
 */
export function registerWorkflow(
  fixture: OperatorFixture,
  workflow: Workflow<Gadget>,
): WorkflowOperator {
  const counter = { runs: 0 };
  const operator = fixture.operator();
  const controller = operator.register(Gadget, {
    reconcile() {
      counter.runs++;
    },
  }, { workflow });
  return { operator, controller, counter };
}

/**
 * Writes to other kinds than gadgets, such as `patch configmaps a`.
 *
 * @param since How many requests there had been.
 */
export function writesBeside(
  fixture: OperatorFixture,
  since: number,
): string[] {
  return fixture.requests.slice(since)
    .filter(({ method, resource }) =>
      method !== "GET" && resource !== "gadgets"
    )
    .map(({ verb, resource, name }) => `${verb} ${resource} ${name}`);
}
