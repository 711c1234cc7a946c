import { z } from "zod";
import type { TestCluster } from "@coracle/dev";
import type {
  ControllerOptions,
  OperatorOptions,
  Reconciler,
} from "@coracle/operator/core";
import type { CustomResource, DefinedKind } from "@coracle/operator/crd";
import { patchStatus } from "../../core/controller/result.ts";
import { defineKind } from "../../core/crd/define_kind.ts";
import { ConfigMap } from "../../core/kinds/mod.ts";
import { Operator } from "../../core/operator/operator.ts";

/** Object with the desired greeting and its result. */
export type GreetingObject = CustomResource<
  { text: string },
  { said?: string | undefined }
>;

/** The kind that these scenarios are about: a text that becomes a ConfigMap. */
export const Greeting: DefinedKind<GreetingObject> = defineKind({
  group: "test.coracle.dev",
  version: "v1",
  kind: "Greeting",
  spec: z.object({ text: z.string().min(1) }),
  status: z.object({ said: z.string() }).partial(),
});

/** Reconciler that applies the ConfigMap and reports its text. */
export const GREETER: Reconciler<GreetingObject> = {
  async reconcile({ metadata: { name }, spec: { text } }, ctx) {
    await ctx.apply(ConfigMap, { metadata: { name }, data: { text } });
    return patchStatus({ said: text });
  },
};

/** Changes to the working operator. */
export interface GreetingOperatorOptions {
  readonly reconciler?: Reconciler<GreetingObject> | undefined;
  readonly controller?: ControllerOptions<GreetingObject> | undefined;
  readonly operator?: OperatorOptions | undefined;
}

/** An operator for greetings in the namespace of a test. */
export function greetingOperator(
  given: OperatorOptions,
  options: GreetingOperatorOptions = {},
): Operator {
  const operator = new Operator({ ...given, ...options.operator });
  operator.register(Greeting, options.reconciler ?? GREETER, {
    ...options.controller,
  });
  return operator;
}

/** Greetings as their user handles them. */
export class Greetings {
  readonly #cluster: TestCluster;

  /** @param cluster Where they are. */
  constructor(cluster: TestCluster) {
    this.#cluster = cluster;
  }

  /** Creates a greeting or changes its text. */
  async ask(name: string, text: string): Promise<void> {
    const { client, namespace } = this.#cluster;
    const metadata = { namespace, name };
    await client.apply(Greeting, { metadata, spec: { text } }, {
      fieldManager: "user",
    });
  }

  /** Waits until a greeting says, in its status and its ConfigMap, a text. */
  async says(name: string, text: string): Promise<void> {
    const { client, namespace } = this.#cluster;
    const key = { namespace, name };
    await this.#cluster.until(async () => {
      const greeting = await client.find(Greeting, key);
      const config = await client.find(ConfigMap, key);
      return greeting?.status?.said === text && config?.data?.["text"] === text;
    });
  }

  /** Takes a greeting away. */
  async forget(name: string): Promise<void> {
    const { client, namespace } = this.#cluster;
    await client.delete(Greeting, { namespace, name });
  }
}
